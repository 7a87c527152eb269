/* SPDX-License-Identifier: Apache-2.0
 *
 * The event table: the spans of a trace as the analyses see them, in order of the file. Host calls refer to the device
 * work they launched and vice versa. Each event refers to its step.
 *
 *     event_table.c     the rows of a trace, rounded on request
 *     event_links.c     launch ↔ device work, by correlation
 *     event_steps.c     iterations, and the filter that drops the last step
 *     event_filter.c    further filters of a query
 *     event_query.c     … by an expression over its columns (event_columns.c), evaluated row by row (event_query_rows.c)
 *     event_classes.c   classes of device work by name
 *     event_set.c       the tables of a run's ranks, built on request, and the facts of all ranks
 *
 * Times are nanoseconds from the file's time origin, rows are indexes of the table; OPS_NONE: none.
 */
#ifndef OPS_ANALYZE_EVENT_TABLE_H
#define OPS_ANALYZE_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/json_walk.h"
#include "base/order.h"
#include "derive/policy.h"
#include "derive/steps.h"

#define EVENT_NO_STEP (-1)

/* Classes of device work. */
enum event_class {
	EVENT_COMPUTATION,
	EVENT_COMMUNICATION,
	EVENT_MEMORY,
	EVENT_OTHER_WORK,
	EVENT_CLASS_COUNT,
};

struct event_row {
	int64_t ts_ns;
	int64_t dur_ns; /* negative for events whose end rounding moved before their start */
	int64_t stream; /* -1: host row */
	int64_t correlation; /* -1: none */
	int64_t step;   /* number of the ProfilerStep, or EVENT_NO_STEP */
	uint32_t source; /* row of the trace */
	uint32_t index; /* position in the file */
	uint32_t name;  /* string id */
	uint32_t track;
	uint32_t partner; /* row on the other side of its correlation; of several, the last */
	uint8_t kind;   /* enum ops_event_kind */
	uint8_t class_; /* enum event_class */
	bool is_kept;   /* see event_table.kept */
	bool on_device; /* has a stream and is device work, which excludes synchronisation */
};

struct event_table {
	const struct ops_trace *trace;
	int64_t rank;
	const struct ops_policy *policy;
	bool fractional;   /* the file's times have fractions of microseconds */
	struct event_row *rows;
	size_t count;
	/* Rows that pass the step filter: those with a stream first, then the others, each in order of the file. */
	uint32_t *kept;
	size_t kept_count;
	OPS_ARRAY(uint32_t) steps; /* rows that are steps, in order of the file */
	struct ops_groups launched; /* the rows of device work that each row launched */
};

enum event_device_type { EVENT_NVIDIA, EVENT_AMD, EVENT_MTIA, EVENT_UNKNOWN_DEVICE };

/* Facts about a rank that are required of all ranks before any table is complete. */
struct ops_rank_facts {
	int64_t first_ns; /* start of its earliest event; INT64_MAX: no events */
	OPS_ARRAY(int64_t) steps; /* distinct step numbers */
	bool mtia;                /* according to "distributedInfo" */
	bool launches[3];         /* has launches of NVIDIA, AMD, MTIA */
};

struct event_set {
	const struct ops_rank *ranks;
	const struct ops_trace_source *source; /* source of traces that are not in `ranks`; NULL: all are */
	struct event_table *tables; /* tables that are built have a trace */
	size_t count;
	int64_t first_ns; /* start of the earliest event of all ranks, which HTA subtracts */
	enum event_device_type device;
	OPS_ARRAY(int64_t) steps; /* distinct step numbers of all ranks, ascending */
	bool round_to_us;
	enum ops_rules rules;
	struct ops_string where; /* a checked filter; empty: none */
	bool include_last; /* whether the step filter keeps the last step */
	bool leaves_out;   /* whether a table was built without the last step */
	bool all_steps;    /* no step filter. Must be set before the first table is requested, like `apart` */
	bool apart;        /* not ranks of one run: a filter counts time and steps of each separately */
	size_t guest;      /* index of the table of a trace from the source, released when another is built; `count`:
	                    * none */
	enum ops_code code; /* error of the first table that could not be built */
	struct ops_error *error;
};

/* Collects the facts of all ranks. Fails if out of memory, or as the source does. */
enum ops_code event_set_init(struct event_set *set, const struct ops_rank *ranks, size_t count,
                             const struct ops_analyze_options *options, bool include_last, enum ops_rules rules,
                             struct ops_error *error);
void event_set_release(struct event_set *set);
/* Returns the table of a rank; NULL on an error, with its `code`. The table, and everything that refers to its trace,
 * is valid until the table of another rank is requested. */
const struct event_table *event_set_table(struct event_set *set, size_t i);
/* Returns the position of a step's number in `steps`, or their count if it is absent. */
size_t event_step_index(const struct event_set *set, int64_t number);

bool event_table_build(struct event_table *table, const struct ops_trace *trace, bool round_to_us, enum ops_rules rules);
void event_table_release(struct event_table *table);
bool event_links_build(struct event_table *table);
bool event_steps_assign(struct event_table *table);
/* Fills `kept`: all rows if there is no filter. */
bool event_steps_filter(struct event_table *table, bool filtered, bool mtia, bool include_last);

/* Returns true if a row is on the device's side of its correlation. */
bool event_is_device_side(const struct event_table *table, const struct event_row *row);

/* With OPS_CLASS_BY_COLLECTIVE, kernels that communicate are computation here. */
enum event_class event_class_of(enum ops_class_source source, uint8_t kind, struct ops_string name);
/* Returns "Memcpy HtoD" or "Memset": part of the name, or a static string. */
struct ops_string event_memory_kind(struct ops_string name);
/* The name that Holistic Trace Analysis has for it; under its own rules, also of a machine without launch calls. */
const char *event_device_type_name(enum event_device_type type, enum ops_rules rules);
const char *event_class_name(enum event_class class_);

static inline int64_t event_end(const struct event_row *row)
{
	return row->ts_ns + row->dur_ns;
}

/* For ops_sort_rows: orders by time. `context` is the table's rows. */
static inline bool event_starts_before(const void *context, uint32_t a, uint32_t b)
{
	const struct event_row *rows = context;

	return rows[a].ts_ns < rows[b].ts_ns;
}

static inline struct ops_string event_name(const struct event_table *table, const struct event_row *row)
{
	return ops_trace_string(table->trace, row->name);
}


#endif
