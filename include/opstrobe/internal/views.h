/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/views.h: an overview of a trace: steps and where their time goes, devices, operators, kernels,
 * memory, modules, communication, and the differences between two traces. Names are those of PyTorch's legacy TensorBoard
 * plugin, and so are the figures by its rules (internal/rules.h).
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
#include <opstrobe/internal/rules.h>
#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the views of one trace. Fails only with OPS_NO_MEMORY. */
enum ops_code ops_views_json(const struct ops_trace *trace, enum ops_rules rules, char **ret_text, size_t *ret_size,
                             struct ops_error *error);

/* Returns the views of the workers of a run together (each with the same span): devices, computation and communication, waiting,
 * operations. Returns `null` if not all of them communicate. */
enum ops_code ops_distributed_json(const struct ops_rank *ranks, size_t count, char **ret_text, size_t *ret_size,
                                   struct ops_error *error);

/* Returns all views of a run: for one trace its views, for several a list of them as "traces", each with its worker and span,
 * followed by their common views as "distributed" (a list if there are several spans). A worker without a trace is read from the
 * source when it is needed, and released before the next; `source` may be NULL if every worker has a trace. */
enum ops_code ops_run_json(const struct ops_trace_source *source, const struct ops_rank *ranks, size_t count,
                           enum ops_rules rules, char **ret_text, size_t *ret_size, struct ops_error *error);

/* The look of text: a set of these flags, and the width. */
enum ops_views_look {
	OPS_VIEWS_COLOURS = 1, /* with escape sequences */
	OPS_VIEWS_ASCII = 2,   /* charts use only ASCII; names are unchanged */
	OPS_VIEWS_MARKDOWN = 4, /* for a pull request: tables, with charts of block characters. Text from the trace is escaped */
};

/* The width in columns, from 60 to 160; the default is 80. */
#define OPS_VIEWS_COLUMNS(columns) ((unsigned)(columns) << 8)

/* Renders the most important views for a terminal, or as Markdown. Diagnostics of a file may take more than a line. */
enum ops_code ops_views_text(const struct ops_trace *trace, enum ops_rules rules, unsigned look, char **ret_text,
                             size_t *ret_size, struct ops_error *error);

/* Renders a page about the ranks of one job: a line for each, and which one is late. Traces are used as in ops_run_json(), each once.
 * `*ret_rank`, if not NULL, is the index of the rank to see next: the late one, else the first. `*ret_text` is NULL if the traces are not of
 * one job; then only the first of them were read, and `*ret_rank` is unchanged. */
enum ops_code ops_run_text(const struct ops_trace_source *source, const struct ops_rank *ranks, size_t count,
                           enum ops_rules rules, unsigned look, char **ret_text, size_t *ret_size, size_t *ret_rank, struct ops_error *error);

/* --- two traces --------------------------------------------------------------------------------------------------- */

/* Zero values select the defaults. */
struct ops_diff_options {
	enum ops_format format;
	double gate_ratio; /* by how much a step may become longer without being a regression; 0.03 is 3 % */
	unsigned columns;  /* width of the text's tables, at least 60; default 80 */
	enum ops_rules rules;
};

/* Whether steps became longer, and by more than their noise explains. */
struct ops_diff_verdict {
	double change_ratio; /* change of the median step; 0 if there is none */
	double noise_ratio;  /* two standard errors of that change, from step to step; 0 if undecided */
	bool regression;     /* the change exceeds the gate and the noise */
	const char *undecided; /* the reason for giving no verdict, a static text; NULL: a verdict is given */
};

/* Compares two traces: their steps side by side, split into loaders, modules, optimizer steps and the time between them, and each
 * operator of both. `options` and `ret_verdict` may be NULL. */
enum ops_code ops_diff(const struct ops_trace *base, const struct ops_trace *experiment,
                       const struct ops_diff_options *options, char **ret_text, size_t *ret_size,
                       struct ops_diff_verdict *ret_verdict, struct ops_error *error);


#ifdef __cplusplus
}
#endif
#endif
