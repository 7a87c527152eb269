/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/views.h: an overview of a trace: steps and where their time goes, devices, operators, kernels,
 * memory, modules, communication, and the differences between two traces. The figures and names are those of PyTorch's
 * legacy TensorBoard plugin, with its defects corrected.
 *
 * Every function takes finished traces, does not change them, and returns one JSON object: times in microseconds (exact
 * to the nanosecond), memory in bytes, percent as `…_pct`, fractions as `…_ratio`. The text ends with a NUL; free it
 * with ops_free. Thread-safe.
 */
#ifndef OPSTROBE_INTERNAL_VIEWS_H
#define OPSTROBE_INTERNAL_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The views of one trace. OPS_NO_MEMORY is all that can go wrong. */
enum ops_code ops_views_json(const struct ops_trace *trace, char **ret_text, size_t *ret_size, struct ops_error *error);

/* What the workers of a run say together (each with the same span): devices, computation and communication, who waits for
 * whom, operations. `null` when they do not communicate, or not all of them. */
enum ops_code ops_distributed_json(const struct ops_rank *ranks, size_t count, char **ret_text, size_t *ret_size,
                                   struct ops_error *error);

/* All of a run: of one trace its views, of several a list of them as "traces"; each with its worker and span, and behind
 * them what they say together as "distributed" (a list where there are several spans). A worker without a trace comes from the source
 * when it is its turn, and is released before the next; `source` may be NULL if there is none. */
enum ops_code ops_run_json(const struct ops_trace_source *source, const struct ops_rank *ranks, size_t count, char **ret_text,
                           size_t *ret_size, struct ops_error *error);

/* How text is to look: several of these, and the width. */
enum ops_views_look {
	OPS_VIEWS_COLOURS = 1, /* by escape sequences */
	OPS_VIEWS_ASCII = 2,   /* charts of ASCII alone; names stay as they are */
	OPS_VIEWS_MARKDOWN = 4, /* for a pull request: tables, with charts of block characters. Of what the trace says nothing is
	                         * markup */
};

/* The width in columns, from 60 to 160; the default is 80. */
#define OPS_VIEWS_COLUMNS(columns) ((unsigned)(columns) << 8)

/* The most important of it to be read on a terminal, or in Markdown. What a file's notes say may take more than a line. */
enum ops_code ops_views_text(const struct ops_trace *trace, unsigned look, char **ret_text, size_t *ret_size,
                             struct ops_error *error);

/* --- two traces --------------------------------------------------------------------------------------------------- */

/* Zero means default. */
struct ops_diff_options {
	enum ops_format format;
	double gate_ratio; /* what a step may take longer without being a regression; 0.03 is 3 % */
	unsigned columns;  /* of the text's tables, 60 at least; 80 */
};

/* Whether steps take longer than before, and than their noise explains. */
struct ops_diff_verdict {
	double change_ratio; /* of the median step; 0 when there is none */
	double noise_ratio;  /* two standard errors of that difference, from step to step; 0 when undecided */
	bool regression;     /* the change is beyond the gate and the noise */
	bool undecided;      /* a side has fewer than two steps, so that the noise is unknown */
};

/* What differs between two traces: the steps of each side by side, cut into loaders, modules, optimizer steps and what is
 * between, and each operator of both. `options` and `ret_verdict` may be NULL. */
enum ops_code ops_diff(const struct ops_trace *base, const struct ops_trace *experiment,
                       const struct ops_diff_options *options, char **ret_text, size_t *ret_size,
                       struct ops_diff_verdict *ret_verdict, struct ops_error *error);


#ifdef __cplusplus
}
#endif
#endif
