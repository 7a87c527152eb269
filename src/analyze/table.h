/* SPDX-License-Identifier: Apache-2.0
 *
 * A table while it is built: what the files table_*.c share.
 */
#ifndef OPS_ANALYZE_TABLE_H
#define OPS_ANALYZE_TABLE_H

#include <stdbool.h>

#include <opstrobe/internal/analyze.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "base/buffer.h"

/* Contents of a cell, in the order of the columns. */
enum ops_table_column {
	OPS_COLUMN_NAME,
	OPS_COLUMN_OVERLOAD,
	OPS_COLUMN_SELF_CPU_SHARE,
	OPS_COLUMN_SELF_CPU,
	OPS_COLUMN_CPU_SHARE,
	OPS_COLUMN_CPU,
	OPS_COLUMN_CPU_MEAN,
	OPS_COLUMN_SELF_DEVICE,
	OPS_COLUMN_SELF_DEVICE_SHARE,
	OPS_COLUMN_DEVICE,
	OPS_COLUMN_DEVICE_MEAN,
	OPS_COLUMN_CPU_MEMORY,
	OPS_COLUMN_SELF_CPU_MEMORY,
	OPS_COLUMN_DEVICE_MEMORY,
	OPS_COLUMN_SELF_DEVICE_MEMORY,
	OPS_COLUMN_COUNT,
	OPS_COLUMN_SHAPES,
	OPS_COLUMN_SOURCE,
	OPS_COLUMN_FLOPS,
	OPS_COLUMN_END
};

struct ops_table {
	const struct ops_trace *trace;
	const struct ops_rows *rows;
	const struct ops_table_options *options;
	enum ops_time_unit unit;
	char device[OPS_DEVICE_NAME_BYTES]; /* in upper case */

	/* Results of the first pass. */
	size_t name_length_max;
	size_t shapes_length_max;
	size_t frame_length_max;
	double self_cpu_us; /* summed as torch does: in us, row by row, so that rounding gives the same last digit */
	double self_device_us;
	int64_t flops_min; /* smallest value above zero; 0: none */
	bool has_overloads;
	bool has_shapes;
	bool has_stacks;
	bool has_device_time;
	bool has_device_memory;
	uint32_t *name_lengths;   /* by string id; OPS_NONE: not computed yet */
	uint32_t *shapes_lengths; /* by input list */
	uint32_t *frame_lengths;  /* by name of a frame; NULL without stacks */
	const struct ops_frame *frames;

	size_t name_width;
	size_t shapes_width;
	size_t source_width;
	struct fit_column fit[OPS_COLUMN_END]; /* on a terminal, replaces the widths above */
	uint32_t left_out; /* bits of columns that are omitted */
	const char *flops_unit;
	double flops_scale;

	struct ops_buffer scratch; /* the text of one cell */
	struct fit_names names;    /* truncated names */
	struct ops_buffer out;
};

/* Sorts and surveys the rows, then calls `write` to fill `out`, with the order of the rows (NULL: unchanged). The text
 * is empty if there are no rows. Free it with ops_free. */
enum ops_code ops_table_make(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options,
                             void (*write)(struct ops_table *table, const uint32_t *order), char **ret_text,
                             size_t *ret_size, struct ops_error *error);

/* The first pass over all rows, which fills everything up to `scratch`. The caller frees the arrays of lengths in any
 * case. Returns OPS_STATE if rows have device times but no device is named. */
enum ops_code ops_table_survey(struct ops_table *table, struct ops_error *error);

/* Lengths of texts in a row, in code points, each computed once. */
size_t ops_table_name_length(struct ops_table *table, const struct ops_average *row);
/* Returns the text of an input list's shapes in `scratch`, which is valid until that is used again. */
struct ops_string ops_table_shapes_text(struct ops_table *table, uint32_t inputs);
/* Returns the chain of frames that a row shows, at most `stack_frames` of them; 0: none. */
uint32_t ops_table_stack(const struct ops_table *table, const struct ops_average *row);
size_t ops_table_frame_length(struct ops_table *table, uint32_t name);

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* To be called after the survey. */
bool ops_table_has_column(const struct ops_table *table, enum ops_table_column column);
/* Writes the title to `scratch`. */
void ops_table_title(struct ops_table *table, enum ops_table_column column);
/* Formats a row's cell in a column of numbers; `cell` has OPS_FORMAT_ROOM bytes. */
void ops_table_number(const struct ops_table *table, enum ops_table_column column, const struct ops_average *row, char *cell);
double ops_table_us(int64_t ns);
/* Returns the mean of `count` calls; 0 without calls. */
double ops_table_mean_us(int64_t ns, uint64_t count);

#endif
