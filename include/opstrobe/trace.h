/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/trace.h: the trace, the one noun everything meets in. A columnar, in-memory table of events with strings,
 * tracks (threads and streams), links, memory records, counters and metadata. Recording makes one, reading a file makes
 * one; every analysis, writer and view takes one.
 *
 * A trace is immutable once built, except for its metadata; reading it from several threads at once is safe. All
 * pointers it gives are borrowed and live until ops_trace_unref frees it. Times are integer nanoseconds since the Unix
 * epoch. Ids of strings, tracks and input lists are dense indexes; OPS_NONE stands for "none" in id columns.
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

/* One list of event kinds: enum and Kineto's category text (`cat` in Chrome JSON). A file may say it in other words
 * ("Kernel", "mtia_runtime"): then the category column has them. Append, never reorder.
 *
 * RUNTIME and DRIVER are calls on the host that hand work to a device, whatever its make; KERNEL, GPU_MEMCPY and GPU_MEMSET
 * are that work, on a stream; TRACE is the span of a session, MARK an instant without category such as "Record Window
 * End"; OTHER is all that a file has besides. */
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
	OPS_EVENT_ASYNC = 1,      /* said to be asynchronous, or ended on another thread; takes no part in the tree */
	OPS_EVENT_UNFINISHED = 2, /* still open when the session stopped; end_ns is the stop */
	OPS_EVENT_HIDDEN = 4,     /* bookkeeping that tables and events() leave out (spec 2.2 rule 1), TRACE and MARK
	                           * among it; not in the tree */
	OPS_EVENT_FOLDED = 8,     /* only child of an operator of the same name; merged into it in tree and tables */
};

/* The columns. Rows are sorted by start_ns ascending, then end_ns descending, then recording order. NULL for an optional
 * column that this trace does not have. */
struct ops_events {
	size_t count;
	const int64_t *start_ns;
	const int64_t *end_ns;           /* >= start_ns; equal for instants */
	const int64_t *self_ns;          /* duration less that of the children in the tree; 0 for what is not in it */
	const int64_t *sequence_nr;      /* autograd sequence number, -1 none */
	const uint32_t *name;            /* string id */
	const uint32_t *track;           /* where it started */
	const uint32_t *parent;          /* row of the enclosing event on the same track, always above, or OPS_NONE */
	const uint32_t *inputs;          /* input list id or OPS_NONE */
	const uint32_t *forward_thread;  /* torch's logical thread number of the forward operator, 0 none */
	const uint16_t *flags;           /* enum ops_event_flag */
	const uint8_t *kind;             /* enum ops_event_kind */
	const uint8_t *scope;            /* at::RecordScope: 0 FUNCTION, 1 BACKWARD_FUNCTION, 7 USER_SCOPE, … */
	const uint32_t *overload;        /* optional: string id of the overload name ("" when none) */
	const uint32_t *end_track;       /* optional: where it ended */
	const uint32_t *args;            /* optional: string id of a range's argument text, or OPS_NONE */
	const uint32_t *storages;        /* optional: string id of the storages of its inputs, see ops_event_storage; OPS_NONE */
	const uint64_t *id;              /* optional: the file's "External id"; without it the id is row + 1. That of what
	                                  * runs for an operator (RUNTIME, KERNEL, …) is the operator's */

	const uint32_t *extra;           /* optional, string id: named values that were recorded with an event, or what else
	                                  * a file's args say, as members of a JSON object without the braces; or OPS_NONE.
	                                  * See ops_event_arg */
	const uint32_t *call_stack;      /* optional, string id: what TorchScript, or its file, says of the event's stack:
	                                  * frames, innermost first, each with a ';' behind; or OPS_NONE */

	/* Python calls; all optional. The stack of an event is the walk up `parent` through the PYTHON_FUNCTION rows. */
	const uint32_t *function;        /* of a PYTHON_FUNCTION: index into ops_trace_functions, OPS_NONE unknown */
	const uint32_t *call_line;       /* of any event: the line of the enclosing Python function's source that called it;
	                                  * 0 unknown */
	const uint32_t *python_id;       /* of a PYTHON_FUNCTION: 1, 2, … in order of rows in a recording; OPS_NONE none */
	const uint32_t *python_parent;   /* the caller's python_id, OPS_NONE none */
	const uint32_t *python_module;   /* number of the nn.Module whose call this is, OPS_NONE none */
	const uint32_t *module;          /* index into ops_trace_modules of the module that python_module numbers, OPS_NONE
	                                  * unknown: numbers count the modules of a class, and classes may share a name */

	const int64_t *correlation;      /* optional: what a RUNTIME or DRIVER call and its device work have in common; -1
	                                  * none */

	/* Both optional, and only in traces that were read from a file. */
	const uint32_t *category;        /* string id of a category that is not the kind's own, or OPS_NONE */
	const uint32_t *index;           /* place in the file's traceEvents, from 0; OPS_NONE unknown */
};

enum ops_track_kind { OPS_TRACK_THREAD, OPS_TRACK_STREAM };

/* Files have rows that belong to no process or thread and name a text instead ("Spans", "PyTorch Profiler"). */
enum ops_track_flag {
	OPS_TRACK_PID_TEXT = 1, /* `pid` is the id of a string */
	OPS_TRACK_TID_TEXT = 2, /* likewise */
	OPS_TRACK_COROUTINE = 4, /* of ranges that were open while other coroutines ran on their thread: no thread of the system.
	                          * `tid` is a number that no thread has, and the name says whose ranges they are */
};
#define OPS_COROUTINE_TIDS INT64_C(1000000000) /* such a track's `tid` is this plus its `number` */

/* A thread or a device stream. */
struct ops_track {
	enum ops_track_kind kind;
	uint32_t flags;  /* enum ops_track_flag */
	int64_t pid;     /* process id; device ordinal for a stream */
	int64_t tid;     /* Linux thread id; stream id */
	uint32_t number; /* torch's logical thread number (1, 2, …), unique in the trace; 0 for streams */
	uint32_t name;   /* string id; "" when unknown */
};

/* What a file says of a process or device. Only in traces that were read from a file. */
struct ops_process {
	uint32_t flags; /* OPS_TRACK_PID_TEXT */
	uint32_t name;  /* string ids, OPS_NONE when not said */
	uint32_t labels;
	uint32_t has_sort_index;
	int64_t pid;
	int64_t sort_index; /* where viewers show it */
};

/* A function that was called: one of Python, or a C function called from Python. No two are equal. Rows of PYTHON_FUNCTION
 * are named "path(line): name", the path as short as sys.path allows, or "<built-in function len>"; and besides, without
 * a function, "Python GC". */
struct ops_function {
	uint32_t name; /* string id: "Class.method" */
	uint32_t file; /* string id: of the whole path, or "<string>"; "" for a C function */
	uint32_t line; /* the first, 0 unknown */
};

/* What is known of a row's function; the texts are borrowed, and no NUL follows them. */
struct ops_function_text {
	struct ops_string name;
	struct ops_string file;
	uint32_t line;
};

/* An allocator report, in time order. `track` is the thread that reported. */
struct ops_memory_record {
	int64_t time_ns;
	uint64_t address;
	int64_t bytes; /* > 0 allocated, < 0 freed; for an out-of-memory record the size asked for */
	uint64_t total_allocated;
	uint64_t total_reserved;
	uint32_t track;
	int16_t device_index; /* -1 for the CPU */
	uint8_t device_type;  /* c10::DeviceType, spec 1.1 */
	uint8_t out_of_memory;
};

/* A ref names a row of the event table or, with this bit set, a memory record by its index. */
#define OPS_MEMORY_REF 0x80000000u

/* What the program said that it holds a storage for (`storage.role`), in time order. Two records have the address 0: with
 * OPS_ROLE_TENSOR the program had named all its tensors by then, so what turns up later is new; with OPS_ROLE_NONE it names
 * all from then on, so what it does not is gone. */
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

/* A torch.nn.Module that was called while recording, or that belongs to one that was. A module stands above those that it
 * holds, these in order of their definition. What it holds is as it was when the recording stopped, or when the module was
 * last seen. */
struct ops_module {
	uint32_t name;       /* string ids: the name of its rows, "nn.Module: Linear_0"; "" if it was not called */
	uint32_t class_name; /* with its module: "torch.nn.modules.linear.Linear" */
	uint32_t path;       /* by attributes: "encoder.layers.0"; the name of its class for one that no other module
	                      * holds. What stands for the module that it wraps (DDP, FSDP, torch.compile) has the path
	                      * of that module */
	uint32_t parent;     /* index of the module that holds it, which is lower; OPS_NONE none */
	uint32_t number;     /* "Python module id" of its rows, OPS_NONE if it was not called */
	uint32_t unused;
	uint64_t address;
	uint64_t parameter_count; /* elements of the parameters in it and in all below, what is shared counted once */
	uint64_t parameter_bytes;
	uint64_t own_parameter_count; /* of the parameters that it holds itself */
	uint64_t own_parameter_bytes;
};

/* A further path to a module that is held more than once. In order of modules. */
struct ops_module_alias {
	uint32_t module;
	uint32_t path;
};

/* An arrow from one event to another, both as rows. Sorted by `from`, then `to`. In a recorded trace no two share
 * their `to` but dependencies do, and those from forward to backward do not share their `from`, which is above `to`; a trace that was read from
 * a file has the arrows that its file draws. */
enum ops_link_kind {
	OPS_LINK_FORWARD_BACKWARD, /* "fwdbwd": a forward operator to its backward node */
	OPS_LINK_LAUNCH,           /* "ac2g": a RUNTIME or DRIVER call to what it started on the device */
	OPS_LINK_OTHER,
	OPS_LINK_DEPENDENCY,       /* "ac2g", work of a CUDA graph to work of the same launch that waits for it */
};
struct ops_link {
	uint32_t from;
	uint32_t to;
	enum ops_link_kind kind;
	uint32_t category; /* string id of a category that is not the kind's own, or OPS_NONE */
};

/* What a reader met that is not as it should be and went on: once for each thing that is, in order of this list. */
#define OPS_NOTES(X)                                                                               \
	X(TRUNCATED, "the text ends early; what came before is read")                              \
	X(GZIP_TRUNCATED, "the compressed data end early")                                         \
	X(GZIP_TRAILING, "bytes behind the end of the compressed data")                            \
	X(COMMA, "a comma too many")                                                               \
	X(CONTROL_CHARACTER, "a control character in a string that should be escaped")             \
	X(NOT_UTF8, "a string that is not UTF-8")                                                  \
	X(BARE_WORD, "NaN, Infinity or N/A without quotes")                                        \
	X(TRAILING_TEXT, "text behind the end of the document")                                    \
	X(NOT_AN_EVENT, "an entry of traceEvents that is no event; left out")                      \
	X(UNKNOWN_PHASE, "an event of an unknown phase; left out")                                 \
	X(BAD_TIME, "an event without a usable time; left out")                                    \
	X(BAD_DURATION, "a duration that is negative or no number; taken for 0")                   \
	X(UNMATCHED_END, "the end of an event that did not begin; left out")                       \
	X(UNMATCHED_BEGIN, "an event that does not end; ended with the trace")                     \
	X(UNMATCHED_ARROW, "an arrow with an end that is on no event; left out")                   \
	X(BAD_VALUE, "a counter's value that is no number; left out")                              \
	X(BAD_METADATA, "a row of metadata that says nothing usable; left out")

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

/* A reason why figures of a trace differ from what happened: records that were lost while recording, or a note of the
 * reader that changes figures. Notes that do not (a comma too many) are no diagnostics. */
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
	uint64_t lost;            /* records that could not be kept */
	const char *host_name;    /* "" when unknown */
	const char *process_name; /* name of the executable, "" when unknown */
	int64_t base_ns;          /* what the times of the file count from; 0 when it was read from none */
	uint64_t file_events;     /* entries of its traceEvents, of whatever kind; 0 likewise */
};

/* --- life ------------------------------------------------------------------------------------------------------- */

/* Atomic reference count; NULL is allowed in unref and then ignored. */
struct ops_trace *ops_trace_ref(struct ops_trace *trace);
void ops_trace_unref(struct ops_trace *trace);

/* --- reading ---------------------------------------------------------------------------------------------------- */

const struct ops_events *ops_trace_events(const struct ops_trace *trace);
const struct ops_trace_info *ops_trace_info(const struct ops_trace *trace);
struct ops_string ops_trace_string(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_string_count(const struct ops_trace *trace);
/* The id of a string in this trace, or OPS_NONE. */
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
/* Whether the trace has all that was recorded: no record was lost, and its file did not end early. */
bool ops_trace_is_complete(const struct ops_trace *trace);
/* Lists the diagnostics of a trace, `source` in each; returns their number. */
size_t ops_trace_diagnostics(const struct ops_trace *trace, const char *source,
                             struct ops_diagnostic ret_items[OPS_DIAGNOSTICS_MAX]);
/* The category of an event: that of its kind unless its file says otherwise. */
struct ops_string ops_event_category(const struct ops_trace *trace, uint32_t row);
/* The function that a PYTHON_FUNCTION calls, by its column or, in a trace that has none, taken from its name. False when
 * neither tells. */
bool ops_event_function(const struct ops_trace *trace, uint32_t row, struct ops_function_text *ret_function);
/* The row of the Python function (not a C function) that called an event: the nearest above it; OPS_NONE when none did. */
uint32_t ops_event_caller(const struct ops_trace *trace, uint32_t row);
/* The file and line of the innermost Python function around an event, or itself, that is not torch's own: where the user's
 * code called it, or the function's first line where no call's line is known. Where there are no Python functions, as in files
 * of torch before 1.12, what the stack says that the file has of the event, or of the next around it. Empty, and line 0,
 * without such. */
struct ops_string ops_event_line(const struct ops_trace *trace, uint32_t row, uint32_t *ret_line);
/* Finds an argument that no column has; `*ret_json` is its value as JSON text, borrowed. False when there is none. Linear
 * in the event's arguments; equal ids of `extra` have equal arguments. */
bool ops_event_arg(const struct ops_trace *trace, uint32_t row, const char *key, struct ops_string *ret_json);

/* Storage `i` of an event's inputs; false when there are no more. */
bool ops_event_storage(const struct ops_trace *trace, uint32_t row, size_t i, struct ops_storage *ret_storage);

/* An input list in the form of inputs.h (equal lists have equal ids); id must be in range. Their number second. */
struct ops_string ops_trace_inputs(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_inputs_count(const struct ops_trace *trace);

/* Category text of a kind ("cpu_op"), and a dtype's C++ name as torch writes it ("float", "long int"). Static. */
const char *ops_event_kind_category(enum ops_event_kind kind);
const char *ops_dtype_name(uint8_t dtype);
/* Bytes of an element of a dtype; 0 unknown, or less than one. */
size_t ops_dtype_bytes(uint8_t dtype);

/* When the first event, allocation or counter is, in the trace's clock: what times on screen and in text count from. 0 for a
 * trace without any. */
int64_t ops_trace_origin(const struct ops_trace *trace);

/* --- metadata: key → JSON text, in order of first setting ------------------------------------------------------- */

/* Sets (or replaces) a key. `json` must be one valid JSON value, else OPS_INVALID names the byte. Not thread-safe against
 * readers of the metadata. */
enum ops_code ops_trace_set_metadata(struct ops_trace *trace, const char *key, size_t key_size, const char *json,
                                     size_t json_size, struct ops_error *error);
size_t ops_trace_metadata_count(const struct ops_trace *trace);
void ops_trace_metadata(const struct ops_trace *trace, size_t i, struct ops_string *ret_key, struct ops_string *ret_json);
/* The value of a key; false when the trace has it not. */
bool ops_trace_find_metadata(const struct ops_trace *trace, const char *key, struct ops_string *ret_json);

/* --- validation ------------------------------------------------------------------------------------------------- */

/* Checks every invariant stated above: order, nesting, self times, every id in range, links that point backwards or at
 * the wrong kind. OPS_CORRUPT with the first violation named, and the row. Linear in the trace. */
enum ops_code ops_trace_check(const struct ops_trace *trace, struct ops_error *error);

/* Where the traces of a run come from that are too many to be held at once. */
struct ops_trace_source {
	/* Trace `i` of those that the call was given, as a reference of the caller's: mostly one after the other from 0 on, each
	 * as often as it is needed. */
	enum ops_code (*take)(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error);
	void *context;
};

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
