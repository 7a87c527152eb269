/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/analyze.h: analyses of a trace. Every function here takes a finished trace and does not change it.
 */
#ifndef OPSTROBE_INTERNAL_ANALYZE_H
#define OPSTROBE_INTERNAL_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- function events: the list that torch calls events() -------------------------------------------------------- */

/* A function event is an event row, or a memory record that no event encloses (and every out-of-memory record), which is shown as
 * a zero-length `[memory]` / `[OutOfMemory]` event: a ref with OPS_MEMORY_REF. */

/* Returns the visible events (neither hidden nor folded) and those memory records, sorted by (start, -end). The caller frees
 * `*ret_refs` with ops_free. */
enum ops_code ops_function_events(const struct ops_trace *trace, uint32_t **ret_refs, size_t *ret_count,
                                  struct ops_error *error);
/* Like ops_function_events, but stops when the monotonic clock passes `deadline_ns`: then `*ret_complete` is false, and the list
 * holds only the first events. The list is empty if the deadline has passed at the call. */
enum ops_code ops_function_events_until(const struct ops_trace *trace, int64_t deadline_ns, uint32_t **ret_refs,
                                        size_t *ret_count, bool *ret_complete, struct ops_error *error);

/* --- stacks -------------------------------------------------------------------------------------------------------- */

/* A chain is a frame and the chain of its caller. Chains are numbers; 0 is the chain without frames. Callers have smaller numbers
 * than their callees. */
struct ops_frame {
	uint32_t caller;
	uint32_t name; /* see ops_stack_text */
};

/* The Python stack of each event: the functions that enclose it, without the event itself. Events in a backward node have the
 * stack of the node's forward operator. The trace must outlive the object. */
struct ops_stacks;
enum ops_code ops_stacks_new(const struct ops_trace *trace, struct ops_stacks **ret_stacks, struct ops_error *error);
void ops_stacks_free(struct ops_stacks *stacks); /* NULL is allowed */

/* Returns the chain of a function event, or 0 for a memory ref. */
uint32_t ops_stack_of(const struct ops_stacks *stacks, uint32_t ref);
const struct ops_frame *ops_stack_frames(const struct ops_stacks *stacks, size_t *ret_count);
/* Returns a frame's name, as in "train.py(3): step"; borrowed from the trace or the stacks. Names are numbers below the count. */
struct ops_string ops_stack_text(const struct ops_stacks *stacks, uint32_t name);
size_t ops_stack_name_count(const struct ops_stacks *stacks);

/* Returns whether the trace has anything that stacks can be built from. */
bool ops_trace_has_stacks(const struct ops_trace *trace);
/* Returns the rows that the stacks of these events are built from, including those of the events, ascending. A trace of only
 * these rows has the same stacks. The caller frees `*ret_rows` with ops_free. */
enum ops_code ops_stack_rows(const struct ops_trace *trace, const uint32_t *refs, size_t count, uint32_t **ret_rows,
                             size_t *ret_count, struct ops_error *error);

/* --- averages ---------------------------------------------------------------------------------------------------- */

/* One row of a table: an event, or the sum of a group of events. Times in ns, memory in bytes. */
struct ops_average {
	int64_t cpu_time_total_ns; /* 0 for device events */
	int64_t self_cpu_time_total_ns;
	int64_t device_time_total_ns;
	int64_t self_device_time_total_ns;
	int64_t cpu_memory_usage;
	int64_t self_cpu_memory_usage;
	int64_t device_memory_usage;
	int64_t self_device_memory_usage;
	int64_t flops; /* 0: unknown */
	uint64_t count;
	uint32_t name;        /* string id; OPS_NONE for "Total" and for memory refs, see ops_average_name */
	uint32_t first;       /* ref of the first function event of the group */
	uint32_t overload;    /* string id, OPS_NONE unless grouped by overload name (or an event's own) */
	uint32_t inputs;      /* input list id of the shape; OPS_NONE unless grouped by shape (or an event's own) */
	uint32_t stack_frames; /* number of frames of the first event's stack that are shown, innermost first; 0 unless grouped by
	                        * stack, OPS_ALL_FRAMES for an event */
	uint8_t device_type;  /* c10::DeviceType */
	uint8_t scope;
	uint8_t is_async;
	uint8_t is_user_annotation;
	uint8_t is_legacy;
	uint8_t key; /* enum ops_average_key */
};

enum ops_average_key {
	OPS_KEY_NAME,         /* `name` is the key; "ProfilerStep#12" is shown as "ProfilerStep*" */
	OPS_KEY_MEMORY,       /* "[memory]" */
	OPS_KEY_OUT_OF_MEMORY, /* "[OutOfMemory]" */
	OPS_KEY_TOTAL,        /* "Total" */
};

#define OPS_ALL_FRAMES UINT32_MAX

struct ops_averages_options {
	bool by_input_shape;
	bool by_overload_name;
 	uint32_t by_stack_frames; /* group by this many innermost frames; 0: not by stack */
	const struct ops_stacks *stacks; /* required for grouping by stack, else NULL */
};

/* For each row of ops_trace_events: the memory that its thread reported during the event, children included (inclusive interval),
 * time on devices, and FLOPs. Built once for a trace and cached by the caller. All arrays have events->count elements. */
struct ops_event_costs {
	int64_t *cpu_memory;    /* NULL if the trace has no memory records */
	int64_t *device_memory; /* NULL if the trace has no memory records */
	int64_t *self_cpu_memory;
	int64_t *self_device_memory;
	uint32_t *launcher;        /* for device work: row of the operator that launched it, or OPS_NONE; NULL if nothing ran on a
	                            * stream */
	int64_t *device_time;      /* ns; for host events: time of the work launched inside, children included. This and the next
	                            * are NULL if both launcher and legacy are NULL */
	int64_t *self_device_time; /* time of the work that the event itself launched */
	uint8_t *legacy;           /* 1: device_time was measured by events around it (torch's is_legacy); NULL if no row is */
	bool with_flops;
};
enum ops_code ops_event_costs_init(struct ops_event_costs *costs, const struct ops_trace *trace, bool with_flops,
                                   struct ops_error *error);
/* Returns whether a row is on a stream: device work, an annotation of it, or waiting. Such a row has no CPU time and, in lists
 * and tables, neither parent nor children. */
bool ops_event_on_device(const struct ops_trace *trace, uint32_t row);
#define OPS_DEVICE_NAME_BYTES 64
/* Metadata key of a trace that has such times: the name of the device, as a string, and for readers how the times were measured. */
#define OPS_DEVICE_TIMES_KEY "device_times_of"
/* Returns torch's name, for `use_device`, of the device on which rows of the trace ran or were timed by events around operators:
 * "cuda" or "mtia". Returns NULL if there is none. `device` is a buffer of OPS_DEVICE_NAME_BYTES for names that are not static. */
const char *ops_trace_device(const struct ops_trace *trace, char *device);
void ops_event_costs_release(struct ops_event_costs *costs); /* zeroed or released costs are allowed */

/* Returns the row of one function event (count 1). */
void ops_average_of_event(const struct ops_trace *trace, const struct ops_event_costs *costs, uint32_t ref,
                          struct ops_average *ret_row);

/* Groups `refs` in order of first occurrence; sums are plain (torch's rule: nested calls of the same name count twice in totals).
 * The caller frees `*ret_rows` with ops_free. */
enum ops_code ops_averages(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
                           size_t count, const struct ops_averages_options *options, struct ops_average **ret_rows,
                           size_t *ret_count, struct ops_error *error);
/* Like ops_averages, for all function events of a trace. */
enum ops_code ops_key_averages(const struct ops_trace *trace, bool with_flops, const struct ops_averages_options *options,
                               struct ops_average **ret_rows, size_t *ret_count, struct ops_error *error);

/* Returns the sum of all rows under the key "Total". */
void ops_total_average(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
                       size_t count, struct ops_average *ret_row);

/* Returns the floating-point operations that torch.profiler estimates for an event's operator: of products, convolutions, attention
 * and arithmetic, not of other elementwise operators and reductions. Returns 0 if unknown, and inside an operator that has a value
 * already, so that sums count a call once. Formulas and sources: derive/operators.c. */
int64_t ops_event_flops(const struct ops_trace *trace, uint32_t event);

/* --- table text --------------------------------------------------------------------------------------------------- */

/* Rows of a table, fetched one at a time, so that a table of ten million events needs no array of rows. */
struct ops_rows {
	size_t count;
	void (*get)(const void *context, size_t i, struct ops_average *ret_row);
	/* Returns whether row i has a parent in the tree (for top_level_events_only). NULL: no row has. */
	bool (*has_parent)(const void *context, size_t i);
	const void *context;
};

/* Returns rows that are averages; borrows them. */
struct ops_average_list {
	const struct ops_average *rows;
	size_t count;
};
struct ops_rows ops_rows_of_averages(const struct ops_average_list *list);

/* The function events of a trace, one row each, with their costs. Must be released even if building it failed; borrows the trace. */
struct ops_event_list {
	const struct ops_trace *trace;
	struct ops_event_costs costs;
	uint32_t *refs;
	size_t count;
};
enum ops_code ops_event_list_init(struct ops_event_list *list, const struct ops_trace *trace, bool with_flops,
                                  struct ops_error *error);
void ops_event_list_release(struct ops_event_list *list);
/* Borrows the list. */
struct ops_rows ops_rows_of_events(const struct ops_event_list *list);

/* The options of torch's EventList.table. Start from OPS_TABLE_OPTIONS_DEFAULT. */
struct ops_table_options {
	const char *sort_by; /* an attribute of torch's FunctionEventAvg, to sort by in descending order; NULL: given order */
	int64_t row_limit;   /* negative: all */
	int64_t max_src_column_width;
	int64_t max_name_column_width;
	int64_t max_shapes_column_width;
	const char *header;  /* NULL: none */
	size_t header_size;
	bool top_level_events_only;
	const char *time_unit; /* "s", "ms", "us"; NULL or anything else: chosen by magnitude */
	bool profile_memory;
	bool with_flops;
	const char *use_device; /* "cuda", …; NULL: none */
	const struct ops_stacks *stacks; /* NULL: no row has a stack */
	unsigned columns; /* terminal width that the text should fit if possible, instead of the widths above; 0: torch's layout */
};
#define OPS_TABLE_OPTIONS_DEFAULT                                                                  \
	{                                                                                          \
		.sort_by = NULL, .row_limit = 100, .max_src_column_width = 75,                     \
		.max_name_column_width = 55, .max_shapes_column_width = 80                         \
	}

/* Formats the rows in torch's table layout, byte for byte. Without rows the text is empty. Texts are truncated and padded by code
 * points; an invalid UTF-8 byte counts as one. Returns OPS_UNSUPPORTED for an unknown sort_by (AttributeError in Python),
 * OPS_INVALID for a sort_by that cannot be ordered (TypeError) or a negative width, and OPS_STATE if rows have device times but
 * no device is named (RuntimeError). `*ret_text` ends with a NUL; free it with ops_free. */
enum ops_code ops_table_text(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error);
/* Like ops_table_text, but returns an HTML fragment for notebooks: without scripts and external resources, and with all names
 * escaped. Columns are as wide as their texts; the first frames of a source are shown one below another. */
enum ops_code ops_table_html(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error);

/* --- flame graphs -------------------------------------------------------------------------------------------------- */

/* The time of rows by stack. An event is the innermost frame, below all events that enclose it (Python functions, ranges,
 * operators); a backward node is below the caller of its forward operator; an average is below the frames that it shows (`stacks`
 * may be NULL if it shows none). Equal stacks are merged. The trace must outlive the object. opstrobe/write.h writes files. */
struct ops_flame;
enum ops_stack_metric { OPS_STACKS_SELF_CPU, OPS_STACKS_SELF_DEVICE, OPS_STACKS_SAMPLED };
struct ops_flame_choices {
	enum ops_stack_metric metric;
	bool backward_as_run; /* backward nodes are below the frames in which they ran */
	bool keep_wrappers;   /* keep frames of calls that only pass on to one other call; default: their caller gets their self
	                       * time */
	bool keep_waits;      /* keep the time in which helper threads wait (derive/helper_waits.h); default: it is left out */
};
enum ops_code ops_flame_new(const struct ops_trace *trace, const struct ops_stacks *stacks, const struct ops_rows *rows,
                            const struct ops_flame_choices *choices, struct ops_flame **ret_flame, struct ops_error *error);
/* Returns the flame graph of the sampled Python stacks of a trace (derive/python_samples.h) in wall-clock time. Below each thread are its
 * functions with their current lines; the innermost frame is what the thread waited for ("[sleeping]") if it did not run. Empty if the
 * trace has no samples. */
enum ops_code ops_flame_sampled_new(const struct ops_trace *trace, const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                    struct ops_error *error);
/* Returns a flame graph of two traces with the time per step of `experiment` and of `base`. Events outside of steps are left out;
 * traces without steps are compared by their totals. `experiment` must outlive the result. */
enum ops_code ops_flame_diff_new(const struct ops_trace *base, const struct ops_trace *experiment,
                                 const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                 struct ops_error *error);
void ops_flame_free(struct ops_flame *flame); /* NULL is allowed */
/* Returns the tree of frames as JSON (docs/openapi.yaml, Stacks; for a difference, StacksDiff), limited to the `limit` frames
 * with the most time (0: all). Freed with ops_free. */
enum ops_code ops_flame_json(const struct ops_flame *flame, enum ops_stack_metric metric, size_t limit, char **ret_text,
                             size_t *ret_size, struct ops_error *error);

/* Returns the key as shown: name, "ProfilerStep*", "[memory]", "Total". Borrowed from the trace or static. */
struct ops_string ops_average_name(const struct ops_trace *trace, const struct ops_average *row);

#ifdef __cplusplus
}
#endif
#endif
