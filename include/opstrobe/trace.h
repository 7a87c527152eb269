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

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/inputs.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define OPS_NONE UINT32_MAX

struct ops_trace;

/* One list of event kinds: enum and Kineto's category text (`cat` in Chrome JSON). Device kinds come later with their
 * collectors and readers: append, never reorder. */
#define OPS_EVENT_KINDS(X)                                                                         \
	X(CPU_OP, "cpu_op")                                                                        \
	X(USER_ANNOTATION, "user_annotation")                                                      \
	X(PYTHON_FUNCTION, "python_function")                                                      \
	X(CPU_INSTANT, "cpu_instant_event")

enum ops_event_kind {
#define OPS_EVENT_KIND_ENUM(name, category) OPS_EVENT_##name,
	OPS_EVENT_KINDS(OPS_EVENT_KIND_ENUM)
#undef OPS_EVENT_KIND_ENUM
	OPS_EVENT_KIND_COUNT
};

enum ops_event_flag {
	OPS_EVENT_ASYNC = 1,      /* said to be asynchronous, or ended on another thread; takes no part in the tree */
	OPS_EVENT_UNFINISHED = 2, /* still open when the session stopped; end_ns is the stop */
	OPS_EVENT_HIDDEN = 4,     /* bookkeeping that tables and events() leave out (spec 2.2 rule 1); not in the tree */
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
	const uint64_t *id;              /* optional: the file's "External id"; without it the id is row + 1 */
};

enum ops_track_kind { OPS_TRACK_THREAD, OPS_TRACK_STREAM };

/* A thread or a device stream. */
struct ops_track {
	enum ops_track_kind kind;
	int64_t pid;     /* process id; device ordinal for a stream */
	int64_t tid;     /* Linux thread id; stream id */
	uint32_t number; /* torch's logical thread number (1, 2, …), unique in the trace; 0 for streams */
	uint32_t name;   /* string id; "" when unknown */
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

struct ops_counter_record {
	int64_t time_ns;
	double value;
	uint32_t name;
	uint32_t track;
};

/* An arrow from one event to another, both as rows, `from` above `to`. Sorted by `from`; no two share an end. */
enum ops_link_kind { OPS_LINK_FORWARD_BACKWARD };
struct ops_link {
	uint32_t from;
	uint32_t to;
	enum ops_link_kind kind;
};

/* What was recorded and when. */
struct ops_trace_info {
	int64_t start_ns;
	int64_t stop_ns;
	int64_t pid;
	uint64_t lost;            /* records that could not be kept */
	const char *host_name;    /* "" when unknown */
	const char *process_name; /* name of the executable, "" when unknown */
};

struct ops_string {
	const char *bytes; /* any bytes, also NUL; not necessarily UTF-8; a NUL follows the last */
	size_t size;
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
const struct ops_counter_record *ops_trace_counters(const struct ops_trace *trace, size_t *ret_count);
const struct ops_link *ops_trace_links(const struct ops_trace *trace, size_t *ret_count);

/* An input list in the form of inputs.h (equal lists have equal ids); id must be in range. Their number second. */
struct ops_string ops_trace_inputs(const struct ops_trace *trace, uint32_t id);
size_t ops_trace_inputs_count(const struct ops_trace *trace);

/* Category text of a kind ("cpu_op"), and a dtype's C++ name as torch writes it ("float", "long int"). Static. */
const char *ops_event_kind_category(enum ops_event_kind kind);
const char *ops_dtype_name(uint8_t dtype);

/* --- metadata: key → JSON text, in order of first setting ------------------------------------------------------- */

/* Sets (or replaces) a key. `json` must be one valid JSON value, else OPS_INVALID names the byte. Not thread-safe against
 * readers of the metadata. */
enum ops_code ops_trace_set_metadata(struct ops_trace *trace, const char *key, size_t key_size, const char *json,
                                     size_t json_size, struct ops_error *error);
/* Whether ops_trace_set_metadata would take this pair, for those who collect metadata before there is a trace. */
enum ops_code ops_metadata_check(const char *key, size_t key_size, const char *json, size_t json_size,
                                 struct ops_error *error);
size_t ops_trace_metadata_count(const struct ops_trace *trace);
void ops_trace_metadata(const struct ops_trace *trace, size_t i, struct ops_string *ret_key, struct ops_string *ret_json);

/* --- validation ------------------------------------------------------------------------------------------------- */

/* Checks every invariant stated above: order, nesting, self times, every id in range, links that point backwards or at
 * the wrong kind. OPS_CORRUPT with the first violation named, and the row. Linear in the trace. */
enum ops_code ops_trace_check(const struct ops_trace *trace, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
