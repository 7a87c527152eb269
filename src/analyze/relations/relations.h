/* SPDX-License-Identifier: Apache-2.0
 *
 * Relations: the tables that queries read, with a row for each event, kernel, step, and so on. Each is declared once,
 * with the names, types, units and meanings of its columns. Its cells are computed from the trace when they are read.
 * Times are nanoseconds.
 *
 *     relation_open(&rows, relation_find("events"), trace, RELATION_ALL_COLUMNS);
 *     row = relation_row(&rows, i);
 *     cell = result_cell_of(&rows.relation->declaration->columns[column], &row);
 *     relation_close(&rows);
 */
#ifndef OPS_ANALYZE_RELATIONS_H
#define OPS_ANALYZE_RELATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/modules.h>
#include <opstrobe/trace.h>

#include "analyze/lines/line_costs.h"
#include "analyze/result.h"
#include "base/buffer.h"
#include "base/text.h"
#include "derive/categories.h"
#include "derive/phases.h"
#include "derive/places.h"
#include "derive/steps.h"
#include "derive/work.h"

/* Derived data that columns require: bits of result_column.option. */
enum relation_need {
	RELATION_LAUNCHERS = 1,
	RELATION_STEPS = 2 | RELATION_LAUNCHERS,
	RELATION_MODULES = 4 | RELATION_LAUNCHERS,
	RELATION_PHASES = 8,
};

/* What a kernel of this name does. It is determined once for each name, since thousands of kernels have the same one. */
struct relation_class {
	uint8_t work;     /* 1 + enum ops_work; 0: not determined yet */
	uint8_t category; /* 1 + enum ops_category; 0: not determined yet */
};

struct relation_rows {
	const struct relation *relation;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	size_t count; /* number of rows */
	/* Set if the relation or one of its columns requires it: */
	const struct ops_memory_record *memory;
	const struct ops_counter_record *counters;
	const struct ops_link *links;
	const struct ops_steps *steps;
	const uint32_t *launchers; /* by event: its launch, for times */
	const uint32_t *origins;   /* by event: the call that it is for, see derive/captures.h */
	uint32_t *step_of;  /* by event: index into `steps`; OPS_NONE: none */
	uint32_t *selected; /* the events that are rows */
	struct relation_class *class_of; /* by name of a kernel; relation_classify() allocates it */
	struct ops_places places;
	struct ops_module_tree *module_tree;
	const struct ops_module_row *module_rows;
	struct line_costs lines;
	struct ops_adviser *adviser;
	const struct advice_finding *findings;
	struct ops_phases phases;
	uint32_t line_row; /* the event whose line of the program was found last; OPS_NONE: none */
	struct ops_string line_file;
	uint32_t line;
	struct ops_buffer scratch; /* text of a computed cell; valid until the next one is computed */
};

/* A row, as passed to getters of columns. */
struct relation_row {
	struct relation_rows *rows;
	size_t at;
};

struct relation {
	const struct result_declaration *declaration;
	/* Sets `count` and the source of the rows. Returns false if out of memory. */
	bool (*open)(struct relation_rows *rows);
};

/* The relations, in the order of the reference documentation. */
extern const struct relation relations[];
extern const size_t relation_count;

/* Returns NULL if there is no relation of that name. */
const struct relation *relation_find(const char *name);

/* Increases when a column or a table is removed or renamed, or changes its type, unit or meaning. Additions do not change it. */
#define RELATIONS_VERSION 1

/* Writes the members "relations_version" and "relations" with the declarations of all relations. */
void relations_json(struct ops_json_writer *json);

/* Prepares the rows of a trace and the derived data for columns with these needs. Returns false if out of memory. The
 * caller must close it in any case. */
bool relation_open(struct relation_rows *rows, const struct relation *relation, const struct ops_trace *trace, unsigned needs);
void relation_close(struct relation_rows *rows);

/* Makes rows of the events that a function selects. Returns false if out of memory. */
bool relation_select(struct relation_rows *rows, bool (*selects)(const struct relation_rows *rows, uint32_t event));

/* Prepares the next two functions. Returns false if out of memory. */
bool relation_classify(struct relation_rows *rows);
/* ops_work_of() and ops_category_of() of an event. */
enum ops_work relation_work(const struct relation_rows *rows, uint32_t event);
enum ops_category relation_category(const struct relation_rows *rows, uint32_t event);

/* Getters that several relations share. `row` is the row of an event; OPS_NONE gives null. */
void relation_get_step(const struct relation_rows *rows, uint32_t row, struct result_cell *cell);
void relation_get_module(const struct relation_rows *rows, uint32_t row, struct result_cell *cell);
void relation_get_duration(const struct relation_rows *rows, uint32_t row, struct result_cell *cell);
void relation_get_file(struct relation_rows *rows, uint32_t row, struct result_cell *cell);
void relation_get_line(struct relation_rows *rows, uint32_t row, struct result_cell *cell);
/* Gets the id of a process or thread; null if the file has a text instead. */
void relation_get_pid(const struct relation_rows *rows, uint32_t track, struct result_cell *cell);
void relation_get_tid(const struct relation_rows *rows, uint32_t track, struct result_cell *cell);

static inline void relation_set_text(struct result_cell *cell, struct ops_string text)
{
	cell->text = text;
	cell->is_null = !text.size;
}

/* Sets the cell to the text in `scratch`; null if it is empty. */
void relation_set_scratch(struct relation_rows *rows, struct result_cell *cell);
/* Sets the cell to a JSON value if that is a non-empty text, else to null. */
void relation_set_json_text(struct relation_rows *rows, struct ops_string json, struct result_cell *cell);

/* Sets the cell to the message size of a collective; null if it is not known. */
void relation_get_message(const struct relation_rows *rows, uint32_t row, struct result_cell *cell);

static inline void relation_set_id(struct result_cell *cell, uint32_t id)
{
	cell->integer = id;
	cell->is_null = id == OPS_NONE;
}

#endif
