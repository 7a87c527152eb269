/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/analyze.h: what a trace says. Every function here takes a finished trace and leaves it as it is.
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

/* A function event is an event row, or a memory record that no event encloses (and every out-of-memory record), shown as
 * a zero-length `[memory]` / `[OutOfMemory]` event: a ref with OPS_MEMORY_REF. */

/* The visible events (neither hidden nor folded) with those memory records, sorted by (start, -end). Caller frees
 * `*ret_refs` with ops_free. */
enum ops_code ops_function_events(const struct ops_trace *trace, uint32_t **ret_refs, size_t *ret_count,
                                  struct ops_error *error);
/* The same, given up when the monotonic clock passes `deadline_ns`: then `*ret_complete` is false, and the list holds the
 * first events only. A deadline that is over at the call gives none. */
enum ops_code ops_function_events_until(const struct ops_trace *trace, int64_t deadline_ns, uint32_t **ret_refs,
                                        size_t *ret_count, bool *ret_complete, struct ops_error *error);

/* --- stacks -------------------------------------------------------------------------------------------------------- */

/* A chain of frames is a frame and the chain of its callers; chains are numbers, 0 is that without frames. Callers have
 * smaller numbers than what they call. */
struct ops_frame {
	uint32_t caller;
	uint32_t name; /* see ops_stack_text */
};

/* The Python stack of each event: the functions that were open around it, but not itself. What runs in a backward node has
 * the stack of the node's forward operator. The trace has to outlive it. */
struct ops_stacks;
enum ops_code ops_stacks_new(const struct ops_trace *trace, struct ops_stacks **ret_stacks, struct ops_error *error);
void ops_stacks_free(struct ops_stacks *stacks); /* NULL is allowed */

/* The chain of a function event; 0 for memory refs. */
uint32_t ops_stack_of(const struct ops_stacks *stacks, uint32_t ref);
const struct ops_frame *ops_stack_frames(const struct ops_stacks *stacks, size_t *ret_count);
/* A frame's name, as in "train.py(3): step"; borrowed from trace or stacks. Names are numbers below the count. */
struct ops_string ops_stack_text(const struct ops_stacks *stacks, uint32_t name);
size_t ops_stack_name_count(const struct ops_stacks *stacks);

/* Whether there is anything that stacks could be made from. */
bool ops_trace_has_stacks(const struct ops_trace *trace);
/* The rows that the stacks of these events are made from, the events' own included, ascending: a trace of just these has
 * the same stacks. Caller frees `*ret_rows` with ops_free. */
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
	int64_t flops; /* 0 unknown */
	uint64_t count;
	uint32_t name;        /* string id; OPS_NONE for "Total" and for memory refs, see ops_average_name */
	uint32_t first;       /* ref of the group's first function event */
	uint32_t overload;    /* string id, OPS_NONE unless grouped by overload name (or an event's own) */
	uint32_t inputs;      /* input list id standing for the shape, OPS_NONE unless grouped by shape (or an event's own) */
	uint32_t stack_frames; /* how many frames of the first event's stack it shows, innermost first; 0 unless grouped by
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
	const struct ops_stacks *stacks; /* needed for that, else NULL */
};

/* Memory of each event by the thread that reported it, children included (inclusive interval), time on devices, and FLOPs,
 * per row of ops_trace_events. Built once per trace and cached by the caller. All arrays have events->count entries. */
struct ops_event_costs {
	int64_t *cpu_memory;    /* NULL when the trace has no memory records */
	int64_t *device_memory; /* NULL likewise */
	int64_t *self_cpu_memory;
	int64_t *self_device_memory;
	uint32_t *launcher;        /* of work on a device: the row of the operator that launched it, or OPS_NONE; NULL when
	                            * nothing ran on a stream */
	int64_t *device_time;      /* ns; of an event on the host: of what was launched in it, children included. NULL, as
	                            * the one below, without launcher and legacy */
	int64_t *self_device_time; /* of what it launched itself */
	uint8_t *legacy;           /* 1: its device_time is what events around it measured (torch's is_legacy); NULL when
 	                            * no row has it */
	bool with_flops;
};
enum ops_code ops_event_costs_init(struct ops_event_costs *costs, const struct ops_trace *trace, bool with_flops,
                                   struct ops_error *error);
/* Whether a row stands on a stream: work of a device, an annotation over it, or waiting. It has no time on the CPU, and in
 * lists and tables neither parent nor children. */
bool ops_event_on_device(const struct ops_trace *trace, uint32_t row);
#define OPS_DEVICE_NAME_BYTES 64
/* The metadata of a trace that has such times: which device it is, as a string; and how they were taken, for its readers. */
#define OPS_DEVICE_TIMES_KEY "device_times_of"
/* What torch calls the device that rows of the trace ran on, or were timed on by events around operators, for `use_device`:
 * "cuda" or "mtia"; NULL when none was. `device` has OPS_DEVICE_NAME_BYTES, for what is not static. */
const char *ops_trace_device(const struct ops_trace *trace, char *device);
void ops_event_costs_release(struct ops_event_costs *costs); /* zeroed or released costs are allowed */

/* The row of one function event (count 1). */
void ops_average_of_event(const struct ops_trace *trace, const struct ops_event_costs *costs, uint32_t ref,
                          struct ops_average *ret_row);

/* Groups `refs` in order of first occurrence; plain sums (torch's rule: nested calls of one name count twice in totals).
 * Caller frees `*ret_rows` with ops_free. */
enum ops_code ops_averages(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
                           size_t count, const struct ops_averages_options *options, struct ops_average **ret_rows,
                           size_t *ret_count, struct ops_error *error);
/* The same of all function events of a trace. */
enum ops_code ops_key_averages(const struct ops_trace *trace, bool with_flops, const struct ops_averages_options *options,
                               struct ops_average **ret_rows, size_t *ret_count, struct ops_error *error);

/* Sum of everything under the key "Total". */
void ops_total_average(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
                       size_t count, struct ops_average *ret_row);

/* Estimated floating-point operations of an event's operator; 0 when unknown, and 0 inside an operator that has a value
 * already, so that sums count a call once. Formulas and sources: analyze/flops.c. */
int64_t ops_event_flops(const struct ops_trace *trace, uint32_t event);

/* --- table text --------------------------------------------------------------------------------------------------- */

/* Rows of a table, fetched one by one so that a table of ten million events needs no array of rows. */
struct ops_rows {
	size_t count;
	void (*get)(const void *context, size_t i, struct ops_average *ret_row);
	/* Whether row i has a parent in the tree (for top_level_events_only); NULL: no row has. */
	bool (*has_parent)(const void *context, size_t i);
	const void *context;
};

/* Rows that are averages; borrows them. */
struct ops_average_list {
	const struct ops_average *rows;
	size_t count;
};
struct ops_rows ops_rows_of_averages(const struct ops_average_list *list);

/* The function events of a trace, a row each, with what they cost. Released in any case; the trace is borrowed. */
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

/* What torch's EventList.table takes. Start from OPS_TABLE_OPTIONS_DEFAULT. */
struct ops_table_options {
	const char *sort_by; /* an attribute of torch's FunctionEventAvg; NULL: as they come. The table sorts, largest first */
	int64_t row_limit;   /* negative: all */
	int64_t max_src_column_width;
	int64_t max_name_column_width;
	int64_t max_shapes_column_width;
	const char *header;  /* NULL: none */
	size_t header_size;
	bool top_level_events_only;
	const char *time_unit; /* "s", "ms", "us"; NULL or anything else: by size */
	bool profile_memory;
	bool with_flops;
	const char *use_device; /* "cuda", …; NULL: none */
	const struct ops_stacks *stacks; /* NULL: no row has a stack */
	unsigned columns; /* of the terminal that text is to fit, if it can, in place of the widths above; 0: torch's layout */
};
#define OPS_TABLE_OPTIONS_DEFAULT                                                                  \
	{                                                                                          \
		.sort_by = NULL, .row_limit = 100, .max_src_column_width = 75,                     \
		.max_name_column_width = 55, .max_shapes_column_width = 80                         \
	}

/* Formats the rows in torch's table layout, byte for byte; empty without rows. Texts are truncated and padded by code points; an
 * invalid UTF-8 byte counts as one. Returns OPS_UNSUPPORTED for an unknown sort_by (AttributeError in Python), OPS_INVALID for a
 * sort_by that cannot be ordered (TypeError) or a negative width, and OPS_STATE if rows have device times but no device is named
 * (RuntimeError). `*ret_text` ends with a NUL; free it with ops_free. */
enum ops_code ops_table_text(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error);
/* The same as a fragment of HTML, for notebooks: no script, nothing fetched, and no name of the trace is markup. Widths are
 * those of the texts, of a source's frames the first few stand below each other. */
enum ops_code ops_table_html(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error);

/* --- flame graphs -------------------------------------------------------------------------------------------------- */

/* The time of rows under the frames around them: each event as the innermost frame below all that was open when it began
 * (Python functions, ranges, operators), backward nodes below what called their forward operator; averages below the
 * frames that they show (`stacks` may be NULL when they show none). Equal stacks are one. The trace has to outlive it. Files
 * are made by opstrobe/write.h. */
struct ops_flame;
enum ops_stack_metric { OPS_STACKS_SELF_CPU, OPS_STACKS_SELF_DEVICE };
struct ops_flame_choices {
	enum ops_stack_metric metric;
	bool backward_as_run; /* backward nodes are where they ran */
	bool keep_wrappers;   /* calls that only pass on to one other call have frames; else their caller has their self time */
};
enum ops_code ops_flame_new(const struct ops_trace *trace, const struct ops_stacks *stacks, const struct ops_rows *rows,
                            const struct ops_flame_choices *choices, struct ops_flame **ret_flame, struct ops_error *error);
/* The flame graphs of two traces as one: the time of a step of `experiment`, and that of `base`. Events outside of
 * steps are left out; traces without steps are compared by their totals. `experiment` has to outlive it. */
enum ops_code ops_flame_diff_new(const struct ops_trace *base, const struct ops_trace *experiment,
                                 const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                 struct ops_error *error);
void ops_flame_free(struct ops_flame *flame); /* NULL is allowed */
/* The tree of its frames as JSON (docs/openapi.yaml, Stacks; of a difference, StacksDiff), at most `limit` of them (0: all), those with most time. Freed
 * with ops_free. */
enum ops_code ops_flame_json(const struct ops_flame *flame, enum ops_stack_metric metric, size_t limit, char **ret_text,
                             size_t *ret_size, struct ops_error *error);

/* The key as shown: name, "ProfilerStep*", "[memory]", "Total". Borrowed from the trace or static. */
struct ops_string ops_average_name(const struct ops_trace *trace, const struct ops_average *row);

#ifdef __cplusplus
}
#endif
#endif
