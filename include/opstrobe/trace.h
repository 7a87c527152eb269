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

/* Event kinds, with Kineto's name of the category (`cat` in Chrome JSON). If a file uses another name ("Kernel", "mtia_runtime"),
 * it is in the category column. Later versions append kinds and never reorder them.
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
	OPS_EVENT_CUT = 16,       /* was already open when the trace begins; start_ns is that moment */
};

/* The events in columns, one row for each event. Rows are sorted by start_ns, then by end_ns descending, then in recording order.
 * Optional columns are NULL if the trace does not have them. */
struct ops_events {
	size_t count;
	const int64_t *start_ns;
	const int64_t *end_ns;           /* >= start_ns; equal for instants */
	const int64_t *self_ns;          /* duration minus that of its children; 0 for rows that are not in the tree */
	const int64_t *sequence_nr;      /* autograd sequence number, -1: none */
	const uint32_t *name;            /* string id */
	const uint32_t *track;           /* track on which it started */
	const uint32_t *parent;          /* row of the enclosing event on the same track, always a lower row; or OPS_NONE */
	const uint32_t *inputs;          /* input list id or OPS_NONE */
	const uint32_t *forward_thread;  /* torch's logical thread number of the forward operator, 0: none */
	const uint16_t *flags;           /* enum ops_event_flag */
	const uint8_t *kind;             /* enum ops_event_kind */
	const uint8_t *scope;            /* at::RecordScope: 0 FUNCTION, 1 BACKWARD_FUNCTION, 7 USER_SCOPE, … */
	const uint32_t *overload;        /* optional: string id of the overload name ("" if none) */
	const uint32_t *end_track;       /* optional: track on which it ended */
	const uint32_t *args;            /* optional: string id of a range's argument text, or OPS_NONE */
	const uint32_t *storages;        /* optional: storages of its inputs, for ops_event_storage; or OPS_NONE */
	const uint64_t *id;              /* optional: "External id" of the file; without this column the id is row + 1. A RUNTIME,
	                                  * KERNEL, … event has the id of its operator */
	const uint32_t *extra;           /* optional: string id of further arguments, as members of a JSON object without the
	                                  * braces, for ops_event_arg; or OPS_NONE */
	const uint32_t *call_stack;      /* optional: string id of the call stack that TorchScript, the file, or a recording without
	                                  * Python calls gives the event: frames, innermost first, each followed by ';'; or
	                                  * OPS_NONE */

	/* Python calls; all optional. The ancestors of an event that are PYTHON_FUNCTION rows are its stack. */
	const uint32_t *function;        /* PYTHON_FUNCTION: index into ops_trace_functions; OPS_NONE: unknown */
	const uint32_t *call_line;       /* line in the source of the enclosing Python function that made this call; 0: unknown */
	const uint32_t *python_id;       /* PYTHON_FUNCTION: 1, 2, … in order of rows in a recording; OPS_NONE: none */
	const uint32_t *python_parent;   /* python_id of the caller; OPS_NONE: none */
	const uint32_t *python_module;   /* number of the nn.Module that is called; OPS_NONE: none */
	const uint32_t *module;          /* index into ops_trace_modules of the module numbered python_module; OPS_NONE: unknown.
	                                  * Numbers count the modules of a class, and classes may share a name */

	const int64_t *correlation;      /* optional: number that a RUNTIME or DRIVER call shares with its device work; -1: none */

	/* Optional; only in traces read from files. */
	const uint32_t *category;        /* string id of a category that is not the kind's own, or OPS_NONE */
	const uint32_t *index;           /* position in the file's traceEvents, from 0; OPS_NONE: unknown */
};

enum ops_track_kind { OPS_TRACK_THREAD, OPS_TRACK_STREAM };

/* Some events of files have a pid or tid that is a text ("Spans", "PyTorch Profiler") instead of a process or thread. */
enum ops_track_flag {
	OPS_TRACK_PID_TEXT = 1, /* `pid` is a string id */
	OPS_TRACK_TID_TEXT = 2, /* `tid` is a string id */
	OPS_TRACK_COROUTINE = 4, /* ranges of a coroutine during which other coroutines ran on its thread. No thread has this
	                          * `tid`; the name is that of the coroutine */
};
#define OPS_COROUTINE_TIDS INT64_C(1000000000) /* `tid` of a coroutine's track: this plus its `number` */

/* A thread or a device stream. */
struct ops_track {
	enum ops_track_kind kind;
	uint32_t flags;  /* enum ops_track_flag */
	int64_t pid;     /* process id; device ordinal for a stream */
	int64_t tid;     /* Linux thread id; stream id */
	uint32_t number; /* torch's logical thread number (1, 2, …), unique in the trace; 0 for streams */
	uint32_t name;   /* string id; "" if unknown */
};

/* A process or device in a file. */
struct ops_process {
	uint32_t flags; /* OPS_TRACK_PID_TEXT */
	uint32_t name;  /* string ids, or OPS_NONE */
	uint32_t labels;
	uint32_t has_sort_index;
	int64_t pid;
	int64_t sort_index; /* position in viewers */
};

/* A Python function, or a C function that Python called. No two are equal. PYTHON_FUNCTION events are named "path(line): name", with
 * the path relative to sys.path, or "<built-in function len>". "Python GC" has no function. */
struct ops_function {
	uint32_t name; /* string id: "Class.method" */
	uint32_t file; /* string id: the complete path, or "<string>"; "" for a C function */
	uint32_t line; /* first line; 0: unknown */
};

/* The function of an event. Texts are borrowed and not NUL-terminated. */
struct ops_function_text {
	struct ops_string name;
	struct ops_string file;
	uint32_t line;
};

/* Allocator reports, in time order. `track` is the thread that reported. */
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

/* A ref is a row of the event table or, with this bit set, the index of a memory record. */
#define OPS_MEMORY_REF 0x80000000u

/* The role of a storage in the program (`storage.role`), in time order. Records with the address 0 are markers. OPS_ROLE_TENSOR:
 * all tensors that existed at the start have been listed. OPS_ROLE_NONE: a complete list follows, and tensors that are not in it
 * are freed. */
struct ops_role_record {
	int64_t time_ns;
	struct ops_storage storage;
	uint32_t name; /* string id; "" if it has none */
	uint32_t track;
};

struct ops_counter_record {
	int64_t time_ns;
	double value;
	uint32_t name;
	uint32_t track;
	uint32_t series; /* string id: name of one value of a counter that has several in a file; "" for the value called "value" */
};

/* A torch.nn.Module that was called during the recording, or that such a module contains. A module precedes its children, which
 * are in order of definition. The members describe the module at the stop of the recording, or when it was last seen. */
struct ops_module {
	uint32_t name;       /* string ids: name of its rows, "nn.Module: Linear_0"; "" if it was not called */
	uint32_t class_name; /* qualified: "torch.nn.modules.linear.Linear" */
	uint32_t path;       /* attribute path: "encoder.layers.0"; for a root, the name of its class. A wrapper (DDP, FSDP,
	                      * torch.compile) has the path of the module that it wraps */
	uint32_t parent;     /* index of the module that contains it, always lower; OPS_NONE: none */
	uint32_t number;     /* "Python module id" of its rows, OPS_NONE if it was not called */
	uint32_t unique_path; /* the path, after the name of the root if modules of several roots have the same path: "Decoder.net.0" */
	uint64_t address;
	uint64_t parameter_count; /* elements of the parameters of the module and its descendants; shared parameters count once */
	uint64_t parameter_bytes;
	uint64_t own_parameter_count; /* without the parameters of its descendants */
	uint64_t own_parameter_bytes;
};

/* An additional path to a module that is reachable by several. Sorted by module. */
struct ops_module_alias {
	uint32_t module;
	uint32_t path;
};

/* A link from one event to another; `from` and `to` are rows. Sorted by `from`, then `to`. In a recording, at most one link other
 * than a dependency leads to an event; links from forward to backward have distinct `from`, and `from` < `to`. A file may have
 * any links. */
enum ops_link_kind {
	OPS_LINK_FORWARD_BACKWARD, /* "fwdbwd": a forward operator to its backward node */
	OPS_LINK_LAUNCH,           /* "ac2g": a RUNTIME or DRIVER call to the device work that it started */
	OPS_LINK_OTHER,
	OPS_LINK_DEPENDENCY,       /* "ac2g": work of a CUDA graph to dependent work of the same launch */
};
struct ops_link {
	uint32_t from;
	uint32_t to;
	enum ops_link_kind kind;
	uint32_t category; /* string id of a category that is not the kind's own, or OPS_NONE */
};

/* Problems that leave a file readable. A trace has each kind at most once, in this order. */
#define OPS_NOTES(X)                                                                               \
	X(TRUNCATED, "the text ends early; what came before is read")                              \
	X(GZIP_TRUNCATED, "the compressed data end early")                                         \
	X(GZIP_TRAILING, "bytes behind the end of the compressed data")                            \
	X(COMMA, "a comma too many")                                                               \
	X(CONTROL_CHARACTER, "a control character in a string that should be escaped")             \
	X(NOT_UTF8, "a string that is not UTF-8")                                                  \
	X(BARE_WORD, "NaN, Infinity or N/A without quotes")                                        \
	X(TRAILING_TEXT, "text after the end of the document")                                    \
	X(NOT_AN_EVENT, "an entry that is not an event; left out")                                     \
	X(UNKNOWN_PHASE, "an event of an unknown phase; left out")                                 \
	X(BAD_TIME, "an event without a usable time; left out")                                    \
	X(BAD_DURATION, "a duration that is negative or no number; taken for 0")                   \
	X(UNMATCHED_END, "the end of an event that did not begin; left out")                       \
	X(UNMATCHED_BEGIN, "an event that does not end; ended with the trace")                     \
	X(UNMATCHED_ARROW, "a link to an event that is not in the file; left out")                     \
	X(BAD_VALUE, "a counter's value that is not a number; left out")                          \
	X(BAD_METADATA, "metadata without a usable value; left out")                                \
	X(SAMPLED, "a stack that is a sample; how often functions were called, and what ran between samples, is not known") \
	X(NO_ORDER, "a stack without a time; placed after the one before it, so order and gaps mean nothing") \
	X(NOT_TIME, "a weight of a stack that is not known to be a time; shown as nanoseconds")     \
	X(OTHER_EVENT, "a sample of another event than the first one; left out")                   \
	X(NO_TIMES, "an operator without a time; placed by the order of calls, so durations mean nothing")

enum ops_note_kind {
#define OPS_NOTE_ENUM(name, text) OPS_NOTE_##name,
	OPS_NOTES(OPS_NOTE_ENUM)
#undef OPS_NOTE_ENUM
	OPS_NOTE_COUNT
};
struct ops_note {
	enum ops_note_kind kind;
	uint64_t count; /* number of occurrences */
	uint64_t byte;  /* position of the first occurrence in the (uncompressed) text */
};

/* A reason why figures of a trace may be wrong: lost records, or a problem of the file that affects figures (a superfluous comma
 * does not). */
struct ops_diagnostic {
	const char *kind;    /* "lost", "truncated", …; static */
	const char *message; /* static */
	uint64_t count;      /* number of occurrences */
	uint64_t byte;       /* position of the first occurrence in the (uncompressed) text; 0 for "lost" */
	const char *source;  /* path of the trace's file, borrowed */
};
#define OPS_DIAGNOSTICS_MAX (OPS_NOTE_COUNT + 1) /* for one trace */

/* What was recorded, and when. */
struct ops_trace_info {
	int64_t start_ns;
	int64_t stop_ns;
	int64_t pid;
	uint64_t lost;            /* number of lost records */
	const char *host_name;    /* "" if unknown */
	const char *process_name; /* name of the executable; "" if unknown */
	int64_t base_ns;          /* origin of the times in the file; 0 for a recording */
	uint64_t file_events;     /* number of entries of traceEvents in the file; 0 for a recording */
};

/* --- lifetime --------------------------------------------------------------------------------------------------- */

/* Atomic reference count. ops_trace_unref ignores NULL. */
struct ops_trace *ops_trace_ref(struct ops_trace *trace);
void ops_trace_unref(struct ops_trace *trace);

/* --- access ----------------------------------------------------------------------------------------------------- */

const struct ops_events *ops_trace_events(const struct ops_trace *trace);
const struct ops_trace_info *ops_trace_info(const struct ops_trace *trace);
struct ops_string ops_trace_string(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_string_count(const struct ops_trace *trace);
/* Returns the id of a string, or OPS_NONE if the trace does not contain it. */
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
/* Returns a description, such as "a comma too many". Static. */
const char *ops_note_text(enum ops_note_kind kind);
/* Returns whether the trace has a note of this kind. */
bool ops_trace_has_note(const struct ops_trace *trace, enum ops_note_kind kind);
/* Returns whether no record was lost and the file did not end early. */
bool ops_trace_is_complete(const struct ops_trace *trace);
/* Lists the diagnostics of a trace and returns their number. `source` is the path of its file; the diagnostics borrow it. */
size_t ops_trace_diagnostics(const struct ops_trace *trace, const char *source,
                             struct ops_diagnostic ret_items[OPS_DIAGNOSTICS_MAX]);
/* Returns the category that the file gives an event, or that of its kind. */
struct ops_string ops_event_category(const struct ops_trace *trace, uint32_t row);
/* Finds the function of a PYTHON_FUNCTION event in its column or, failing that, in its name. Returns false if both lack it. */
bool ops_event_function(const struct ops_trace *trace, uint32_t row, struct ops_function_text *ret_function);
/* Returns the row of the innermost Python function (not a C function) that encloses an event, or OPS_NONE. */
uint32_t ops_event_caller(const struct ops_trace *trace, uint32_t row);
/* Returns the file and line of the user's code that called an event: the innermost enclosing Python function, or the event
 * itself, that is not part of torch. If the line of the call is unknown, it is the first line of the function. Without Python
 * functions, uses the call stack that the file gives the event or an enclosing one. Returns an empty text and line 0 if there is
 * none, or if out of memory: the first call visits all events, and keeps what it finds with the trace. */
struct ops_string ops_event_line(const struct ops_trace *trace, uint32_t row, uint32_t *ret_line);
/* Finds an argument that has no column. `*ret_json` is its value as JSON, borrowed. Returns false if the event does not have it.
 * Linear in the number of arguments; equal ids of `extra` have equal arguments. */
bool ops_event_arg(const struct ops_trace *trace, uint32_t row, const char *key, struct ops_string *ret_json);

/* Finds storage `i` of the inputs of an event. Returns false if there are fewer. */
bool ops_event_storage(const struct ops_trace *trace, uint32_t row, size_t i, struct ops_storage *ret_storage);

/* Return an input list, for opstrobe/inputs.h, and the number of lists. Equal lists have equal ids. */
struct ops_string ops_trace_inputs(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_inputs_count(const struct ops_trace *trace);

/* Return the category of a kind ("cpu_op"), the C++ name of a dtype, which torch writes to traces ("float", "c10::BFloat16"), and its
 * name in Python without "torch." ("float32", "bfloat16"), which readers see. Static; empty for an unknown dtype. */
const char *ops_event_kind_category(enum ops_event_kind kind);
const char *ops_dtype_name(uint8_t dtype);
const char *ops_dtype_python_name(uint8_t dtype);
/* Returns the size of an element; 0 if the dtype is unknown or smaller than a byte. */
size_t ops_dtype_bytes(uint8_t dtype);

/* Returns the time of the first event, allocation or counter, which tables and viewers show as 0. Returns 0 for an empty trace. */
int64_t ops_trace_origin(const struct ops_trace *trace);
/* Returns the end of the last event, or the time of the last allocation or counter if that is later. The end of the profiler's window,
 * "Record Window End", does not count: nothing happens between the last event and it. Returns 0 for an empty trace. */
int64_t ops_trace_end(const struct ops_trace *trace);

/* --- metadata: key → JSON text, in insertion order -------------------------------------------------------------- */

/* Sets or replaces a key. OPS_INVALID, with the byte, if `json` is not one valid JSON value. No other thread may read the metadata
 * meanwhile. */
enum ops_code ops_trace_set_metadata(struct ops_trace *trace, const char *key, size_t key_size, const char *json,
                                     size_t json_size, struct ops_error *error);
size_t ops_trace_metadata_count(const struct ops_trace *trace);
void ops_trace_metadata(const struct ops_trace *trace, size_t i, struct ops_string *ret_key, struct ops_string *ret_json);
/* Finds the value of a key. Returns false if the trace does not have it. */
bool ops_trace_find_metadata(const struct ops_trace *trace, const char *key, struct ops_string *ret_json);

/* --- validation ------------------------------------------------------------------------------------------------- */

/* Checks all invariants of this header: order, nesting, self times, ranges of ids, kinds and directions of links. The error,
 * OPS_CORRUPT, names the first violation and its row. Linear in the size of the trace. */
enum ops_code ops_trace_check(const struct ops_trace *trace, struct ops_error *error);

/* --- runs that do not fit into memory ----------------------------------------------------------------------------- */

/* A source of the traces of a run. */
struct ops_trace_source {
	/* Returns trace `i`, with a reference that the caller of `get` releases. Called for one trace after another, and again
	 * if a trace is needed again. If it fails, the query fails with its error. */
	enum ops_code (*get)(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error);
	void *context;
};

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
