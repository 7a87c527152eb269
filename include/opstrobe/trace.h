/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/trace.h: the trace, a table of events in columns, with strings, tracks (threads and streams), links, memory records,
 * counters and metadata. opstrobe/read.h makes traces, opstrobe/query.h and opstrobe/write.h use them.
 *
 *     const struct ops_events *events = ops_trace_events(trace);
 *     for (size_t row = 0; row < events->count; row++) {
 *             struct ops_string name = ops_trace_string(trace, events->name[row]);
 *             printf("%.*s %lld\n", (int)name.size, name.bytes, (long long)(events->end_ns[row] - events->start_ns[row]));
 *     }
 *
 * A trace does not change, except for its metadata, so any number of threads may read it. All pointers are borrowed and valid until
 * the last ops_trace_unref. Times are nanoseconds since the Unix epoch. Ids of strings, tracks and input lists are indexes;
 * OPS_NONE in a column of ids means "none".
 */
#ifndef OPSTROBE_TRACE_H
#define OPSTROBE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/inputs.h>
#include <opstrobe/storage.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ops_trace;

/* Event kinds, with Kineto's name of the category (`cat` in Chrome JSON). If a file has another name ("Kernel", "mtia_runtime"), the
 * category column has it. Later versions append kinds and never reorder them.
 *
 * RUNTIME and DRIVER are calls on the host that submit work to a device of any vendor; KERNEL, GPU_MEMCPY and GPU_MEMSET are that
 * work, on a stream. TRACE is the span of a session; MARK is an instant without a category, such as "Record Window End"; OTHER is
 * everything else in a file. */
#define OPS_EVENT_KINDS(X)                                                                         \
	X(CPU_OP, "cpu_op")                                                                        \
	X(USER_ANNOTATION, "user_annotation")                                                      \
	X(PYTHON_FUNCTION, "python_function")                                                      \
	X(CPU_INSTANT, "cpu_instant_event")                                                        \
	X(KERNEL, "kernel")                                                                        \
	X(GPU_MEMCPY, "gpu_memcpy")                                                                \
	X(GPU_MEMSET, "gpu_memset")                                                                \
	X(GPU_USER_ANNOTATION, "gpu_user_annotation")                                              \
	X(RUNTIME, "cuda_runtime")                                                                 \
	X(DRIVER, "cuda_driver")                                                                   \
	X(SYNC, "cuda_sync")                                                                       \
	X(OVERHEAD, "overhead")                                                                    \
	X(TRACE, "Trace")                                                                          \
	X(MARK, "")                                                                                \
	X(OTHER, "")

enum ops_event_kind {
#define OPS_EVENT_KIND_ENUM(name, category) OPS_EVENT_##name,
	OPS_EVENT_KINDS(OPS_EVENT_KIND_ENUM)
#undef OPS_EVENT_KIND_ENUM
	OPS_EVENT_KIND_COUNT
};

enum ops_event_flag {
	OPS_EVENT_ASYNC = 1,      /* asynchronous, or ended on another thread; not in the tree */
	OPS_EVENT_UNFINISHED = 2, /* still open when the session stopped; end_ns is the stop */
	OPS_EVENT_HIDDEN = 4,     /* bookkeeping that tables and events() omit, such as TRACE and MARK; not in the
	                           * tree */
	OPS_EVENT_FOLDED = 8,     /* only child of an operator of the same name; merged into it in tree and tables */
	OPS_EVENT_CUT = 16,       /* was open already when the trace begins; start_ns is that moment */
};

/* The events in columns, a row each. Rows are sorted by start_ns, then by end_ns descending, then in recording order. Optional columns
 * are NULL if the trace does not have them. */
struct ops_events {
	size_t count;
	const int64_t *start_ns;
	const int64_t *end_ns;           /* >= start_ns; equal for instants */
	const int64_t *self_ns;          /* duration without that of its children; 0 for rows that are not in the tree */
	const int64_t *sequence_nr;      /* autograd sequence number, -1 none */
	const uint32_t *name;            /* string id */
	const uint32_t *track;           /* where it started */
	const uint32_t *parent;          /* row of the enclosing event on the same track, a lower one; or OPS_NONE */
	const uint32_t *inputs;          /* input list id or OPS_NONE */
	const uint32_t *forward_thread;  /* torch's logical thread number of the forward operator, 0 none */
	const uint16_t *flags;           /* enum ops_event_flag */
	const uint8_t *kind;             /* enum ops_event_kind */
	const uint8_t *scope;            /* at::RecordScope: 0 FUNCTION, 1 BACKWARD_FUNCTION, 7 USER_SCOPE, … */
	const uint32_t *overload;        /* optional: string id of the overload name ("" when none) */
	const uint32_t *end_track;       /* optional: where it ended */
	const uint32_t *args;            /* optional: string id of a range's argument text, or OPS_NONE */
	const uint32_t *storages;        /* optional: storages of its inputs, for ops_event_storage; or OPS_NONE */
	const uint64_t *id;              /* optional: "External id" of the file; without this column the id is row + 1. A
	                                  * RUNTIME, KERNEL, … has the id of its operator */
	const uint32_t *extra;           /* optional: string id of other arguments, as members of a JSON object without the braces,
	                                  * for ops_event_arg; or OPS_NONE */
	const uint32_t *call_stack;      /* optional: string id of the stack that TorchScript or the file has of the event: frames,
	                                  * innermost first, each followed by ';'; or OPS_NONE */

	/* Python calls; all optional. The stack of an event is the walk up `parent` through the PYTHON_FUNCTION rows. */
	const uint32_t *function;        /* of a PYTHON_FUNCTION: index into ops_trace_functions, OPS_NONE unknown */
	const uint32_t *call_line;       /* of any event: the line of the enclosing Python function's source that called it;
	                                  * 0 unknown */
	const uint32_t *python_id;       /* of a PYTHON_FUNCTION: 1, 2, … in order of rows in a recording; OPS_NONE none */
	const uint32_t *python_parent;   /* the caller's python_id, OPS_NONE none */
	const uint32_t *python_module;   /* number of the nn.Module whose call this is, OPS_NONE none */
	const uint32_t *module;          /* index into ops_trace_modules of the module that python_module numbers, OPS_NONE
	                                  * unknown: numbers count the modules of a class, and classes may share a name */

	const int64_t *correlation;      /* optional: number that a RUNTIME or DRIVER call shares with its device work; -1 none */

	/* Optional; only in traces of files. */
	const uint32_t *category;        /* string id of a category that is not the kind's own, or OPS_NONE */
	const uint32_t *index;           /* place in the file's traceEvents, from 0; OPS_NONE unknown */
};

enum ops_track_kind { OPS_TRACK_THREAD, OPS_TRACK_STREAM };

/* Files have events without a process or thread, whose pid or tid is a text ("Spans", "PyTorch Profiler"). */
enum ops_track_flag {
	OPS_TRACK_PID_TEXT = 1, /* `pid` is the id of a string */
	OPS_TRACK_TID_TEXT = 2, /* likewise */
	OPS_TRACK_COROUTINE = 4, /* ranges of a coroutine during which others ran on its thread. No thread has this `tid`; the
	                          * name is that of the coroutine */
};
#define OPS_COROUTINE_TIDS INT64_C(1000000000) /* `tid` of such a track: this plus its `number` */

/* A thread or a device stream. */
struct ops_track {
	enum ops_track_kind kind;
	uint32_t flags;  /* enum ops_track_flag */
	int64_t pid;     /* process id; device ordinal for a stream */
	int64_t tid;     /* Linux thread id; stream id */
	uint32_t number; /* torch's logical thread number (1, 2, …), unique in the trace; 0 for streams */
	uint32_t name;   /* string id; "" when unknown */
};

/* A process or device of a file. */
struct ops_process {
	uint32_t flags; /* OPS_TRACK_PID_TEXT */
	uint32_t name;  /* string ids, or OPS_NONE */
	uint32_t labels;
	uint32_t has_sort_index;
	int64_t pid;
	int64_t sort_index; /* where viewers show it */
};

/* A Python function, or a C function that Python called. No two are equal. PYTHON_FUNCTION events are named "path(line): name", with
 * the path relative to sys.path, or "<built-in function len>". "Python GC" has no function. */
struct ops_function {
	uint32_t name; /* string id: "Class.method" */
	uint32_t file; /* string id: of the whole path, or "<string>"; "" for a C function */
	uint32_t line; /* the first, 0 unknown */
};

/* The function of an event. Texts are borrowed and do not end with a NUL. */
struct ops_function_text {
	struct ops_string name;
	struct ops_string file;
	uint32_t line;
};

/* An allocator report, in time order. `track` is the thread that reported. */
struct ops_memory_record {
	int64_t time_ns;
	uint64_t address;
	int64_t bytes; /* > 0 allocated, < 0 freed; for an out-of-memory record the requested size */
	uint64_t total_allocated;
	uint64_t total_reserved;
	uint32_t track;
	int16_t device_index; /* -1 for the CPU */
	uint8_t device_type;  /* c10::DeviceType */
	uint8_t out_of_memory;
};

/* A ref names a row of the event table or, with this bit set, a memory record by its index. */
#define OPS_MEMORY_REF 0x80000000u

/* The role of a storage in the program (`storage.role`), in time order. Records with the address 0 are markers: with OPS_ROLE_TENSOR, all
 * tensors that existed at the start have been listed; with OPS_ROLE_NONE, a complete list follows, and tensors that are not in it
 * are freed. */
struct ops_role_record {
	int64_t time_ns;
	struct ops_storage storage;
	uint32_t name; /* string id, "" when it has none */
	uint32_t track;
};

struct ops_counter_record {
	int64_t time_ns;
	double value;
	uint32_t name;
	uint32_t track;
	uint32_t series; /* string id: which of the values a counter has in a file; "" for the one called "value" */
};

/* A torch.nn.Module that was called while recording, or that such a module contains. A module precedes its children, which are in order
 * of definition. Contents are those at the stop of the recording, or when the module was last seen. */
struct ops_module {
	uint32_t name;       /* string ids: the name of its rows, "nn.Module: Linear_0"; "" if it was not called */
	uint32_t class_name; /* with its module: "torch.nn.modules.linear.Linear" */
	uint32_t path;       /* by attributes: "encoder.layers.0"; for a root, the name of its class. A wrapper (DDP, FSDP,
	                      * torch.compile) has the path of the module that it wraps */
	uint32_t parent;     /* index of the module that contains it, a lower one; OPS_NONE none */
	uint32_t number;     /* "Python module id" of its rows, OPS_NONE if it was not called */
	uint32_t unused;
	uint64_t address;
	uint64_t parameter_count; /* elements of its parameters and those of its descendants; shared ones count once */
	uint64_t parameter_bytes;
	uint64_t own_parameter_count; /* without those of its descendants */
	uint64_t own_parameter_bytes;
};

/* Another path to a module that is reachable by several. Sorted by module. */
struct ops_module_alias {
	uint32_t module;
	uint32_t path;
};

/* A link from one event to another; `from` and `to` are rows. Sorted by `from`, then `to`. In a recording, each event has at most one
 * link to it, dependencies excepted; links from forward to backward have distinct `from`, and `from` < `to`. A file may have any
 * links. */
enum ops_link_kind {
	OPS_LINK_FORWARD_BACKWARD, /* "fwdbwd": a forward operator to its backward node */
	OPS_LINK_LAUNCH,           /* "ac2g": a RUNTIME or DRIVER call to what it started on the device */
	OPS_LINK_OTHER,
	OPS_LINK_DEPENDENCY,       /* "ac2g": work of a CUDA graph to work of the same launch that depends on it */
};
struct ops_link {
	uint32_t from;
	uint32_t to;
	enum ops_link_kind kind;
	uint32_t category; /* string id of a category that is not the kind's own, or OPS_NONE */
};

/* Problems of a file that leave it readable. A trace has each kind at most once, in this order. */
#define OPS_NOTES(X)                                                                               \
	X(TRUNCATED, "the text ends early; what came before is read")                              \
	X(GZIP_TRUNCATED, "the compressed data end early")                                         \
	X(GZIP_TRAILING, "bytes behind the end of the compressed data")                            \
	X(COMMA, "a comma too many")                                                               \
	X(CONTROL_CHARACTER, "a control character in a string that should be escaped")             \
	X(NOT_UTF8, "a string that is not UTF-8")                                                  \
	X(BARE_WORD, "NaN, Infinity or N/A without quotes")                                        \
	X(TRAILING_TEXT, "text after the end of the document")                                    \
	X(NOT_AN_EVENT, "an entry of traceEvents that is not an event; left out")                      \
	X(UNKNOWN_PHASE, "an event of an unknown phase; left out")                                 \
	X(BAD_TIME, "an event without a usable time; left out")                                    \
	X(BAD_DURATION, "a duration that is negative or no number; taken for 0")                   \
	X(UNMATCHED_END, "the end of an event that did not begin; left out")                       \
	X(UNMATCHED_BEGIN, "an event that does not end; ended with the trace")                     \
	X(UNMATCHED_ARROW, "an arrow with an end that is on no event; left out")                   \
	X(BAD_VALUE, "a counter's value that is not a number; left out")                          \
	X(BAD_METADATA, "metadata without a usable value; left out")                                \
	X(SAMPLED, "a stack that is a sample; how often functions were called, and what ran between samples, is not known") \
	X(NO_ORDER, "a stack without a time; placed after the one before it, so order and gaps mean nothing") \
	X(NOT_TIME, "a weight of a stack that is not known to be a time; shown as nanoseconds")     \
	X(OTHER_EVENT, "a sample of another event than the first one; left out")

enum ops_note_kind {
#define OPS_NOTE_ENUM(name, text) OPS_NOTE_##name,
	OPS_NOTES(OPS_NOTE_ENUM)
#undef OPS_NOTE_ENUM
	OPS_NOTE_COUNT
};
struct ops_note {
	enum ops_note_kind kind;
	uint64_t count; /* how often */
	uint64_t byte;  /* where first, in the (uncompressed) text */
};

/* A reason why figures of a trace may be wrong: lost records, or a problem of the file that affects figures (a superfluous comma does
 * not). */
struct ops_diagnostic {
	const char *kind;    /* "lost", "truncated", …; static */
	const char *message; /* static */
	uint64_t count;      /* how often */
	uint64_t byte;       /* where first, in the (uncompressed) text; 0 for "lost" */
	const char *source;  /* the path of its file, borrowed */
};
#define OPS_DIAGNOSTICS_MAX (OPS_NOTE_COUNT + 1) /* of one trace */

/* What was recorded and when. */
struct ops_trace_info {
	int64_t start_ns;
	int64_t stop_ns;
	int64_t pid;
	uint64_t lost;            /* number of lost records */
	const char *host_name;    /* "" when unknown */
	const char *process_name; /* name of the executable, "" when unknown */
	int64_t base_ns;          /* origin of the times in the file; 0 for a recording */
	uint64_t file_events;     /* number of entries of traceEvents in the file; 0 for a recording */
};

/* --- life ------------------------------------------------------------------------------------------------------- */

/* Atomic reference count. ops_trace_unref ignores NULL. */
struct ops_trace *ops_trace_ref(struct ops_trace *trace);
void ops_trace_unref(struct ops_trace *trace);

/* --- reading ---------------------------------------------------------------------------------------------------- */

const struct ops_events *ops_trace_events(const struct ops_trace *trace);
const struct ops_trace_info *ops_trace_info(const struct ops_trace *trace);
struct ops_string ops_trace_string(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_string_count(const struct ops_trace *trace);
/* Returns the id of a string, or OPS_NONE. */
uint32_t ops_trace_find_string(const struct ops_trace *trace, const char *bytes, size_t size);
const struct ops_track *ops_trace_tracks(const struct ops_trace *trace, size_t *ret_count);
const struct ops_memory_record *ops_trace_memory(const struct ops_trace *trace, size_t *ret_count);
const struct ops_role_record *ops_trace_roles(const struct ops_trace *trace, size_t *ret_count);
const struct ops_counter_record *ops_trace_counters(const struct ops_trace *trace, size_t *ret_count);
const struct ops_link *ops_trace_links(const struct ops_trace *trace, size_t *ret_count);
const struct ops_function *ops_trace_functions(const struct ops_trace *trace, size_t *ret_count);
const struct ops_process *ops_trace_processes(const struct ops_trace *trace, size_t *ret_count);
const struct ops_module *ops_trace_modules(const struct ops_trace *trace, size_t *ret_count);
const struct ops_module_alias *ops_trace_module_aliases(const struct ops_trace *trace, size_t *ret_count);
const struct ops_note *ops_trace_notes(const struct ops_trace *trace, size_t *ret_count);
/* "a comma too many". Static. */
const char *ops_note_text(enum ops_note_kind kind);
/* Returns whether no record was lost and the file did not end early. */
bool ops_trace_is_complete(const struct ops_trace *trace);
/* Lists the diagnostics of a trace and returns their number. Each has `source`, the path of its file, which is borrowed. */
size_t ops_trace_diagnostics(const struct ops_trace *trace, const char *source,
                             struct ops_diagnostic ret_items[OPS_DIAGNOSTICS_MAX]);
/* Returns the category of an event: that of its file, or of its kind. */
struct ops_string ops_event_category(const struct ops_trace *trace, uint32_t row);
/* Returns the function of a PYTHON_FUNCTION event, from its column or else from its name. Returns false if both lack it. */
bool ops_event_function(const struct ops_trace *trace, uint32_t row, struct ops_function_text *ret_function);
/* Returns the row of the innermost Python function (not a C function) around an event, or OPS_NONE. */
uint32_t ops_event_caller(const struct ops_trace *trace, uint32_t row);
/* Returns the file and line of the user's code that called an event: the innermost Python function around it, or the event itself, that
 * is not part of torch. The line is the first of the function if that of the call is unknown. Without Python functions, the call stack
 * that the file has of the event, or of one around it, is used. Returns an empty text, and line 0, if there is none. */
struct ops_string ops_event_line(const struct ops_trace *trace, uint32_t row, uint32_t *ret_line);
/* Finds an argument that has no column. `*ret_json` is its value as JSON, borrowed. Returns false if there is none. Linear in the number
 * of arguments; equal ids of `extra` have equal arguments. */
bool ops_event_arg(const struct ops_trace *trace, uint32_t row, const char *key, struct ops_string *ret_json);

/* Returns storage `i` of the inputs of an event; false if there are fewer. */
bool ops_event_storage(const struct ops_trace *trace, uint32_t row, size_t i, struct ops_storage *ret_storage);

/* Returns an input list, for opstrobe/inputs.h, and the number of lists. Equal lists have equal ids. */
struct ops_string ops_trace_inputs(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_inputs_count(const struct ops_trace *trace);

/* Returns the category of a kind ("cpu_op"), and the C++ name of a dtype as torch writes it ("float", "long int"). Static. */
const char *ops_event_kind_category(enum ops_event_kind kind);
const char *ops_dtype_name(uint8_t dtype);
/* Returns the bytes of an element; 0 if the dtype is unknown or smaller than a byte. */
size_t ops_dtype_bytes(uint8_t dtype);

/* Returns the time of the first event, allocation or counter, which is 0 in tables and on screen. Returns 0 for an empty trace. */
int64_t ops_trace_origin(const struct ops_trace *trace);

/* --- metadata: key → JSON text, in order of first setting ------------------------------------------------------- */

/* Sets or replaces a key. OPS_INVALID, with the byte, if `json` is not one valid JSON value. No other thread may read the metadata
 * meanwhile. */
enum ops_code ops_trace_set_metadata(struct ops_trace *trace, const char *key, size_t key_size, const char *json,
                                     size_t json_size, struct ops_error *error);
size_t ops_trace_metadata_count(const struct ops_trace *trace);
void ops_trace_metadata(const struct ops_trace *trace, size_t i, struct ops_string *ret_key, struct ops_string *ret_json);
/* Returns the value of a key; false if the trace does not have it. */
bool ops_trace_find_metadata(const struct ops_trace *trace, const char *key, struct ops_string *ret_json);

/* --- validation ------------------------------------------------------------------------------------------------- */

/* Checks all invariants of this header: order, nesting, self times, ranges of ids, kinds and directions of links. OPS_CORRUPT names the first
 * violation and its row. Linear in the size of the trace. */
enum ops_code ops_trace_check(const struct ops_trace *trace, struct ops_error *error);

/* --- runs that do not fit into memory ----------------------------------------------------------------------------- */

/* A source of the traces of a run. */
struct ops_trace_source {
	/* Returns trace `i`, with a reference that the caller of `take` releases. Called for one trace after the other, and again if a
	 * trace is needed again. A failure ends the query with its error. */
	enum ops_code (*take)(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error);
	void *context;
};

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
