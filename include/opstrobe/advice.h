/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/advice.h: what costs a program time or memory without need, where, and what changing it would gain.
 *
 * Takes the finished traces of a run's workers and leaves them as they are. The JSON form:
 *
 *     {"findings": [{"id", "title", "severity": "high|medium|low|info", "confidence": "high|medium|low",
 *                    "where": [{"file", "line", "function", "module", "operator", "trace", "row"}], "evidence",
 *                    "explanation", "advice", "predicted_gain_ms_per_step", "predicted_gain_percent",
 *                    "predicted_gain_bound", "links": […]}], "checked": [ids]}
 *
 * Findings are ordered by what they gain, most first. What is not known of a place is null. `row` is that of the costliest
 * event there, in the trace that was given as number `trace`. `checked` has the rules for
 * which the trace holds what they need. Any thread may call it.
 */
#ifndef OPSTROBE_ADVICE_H
#define OPSTROBE_ADVICE_H

#include <stddef.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/views.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Advice on a run of many workers, one trace after the other: a trace may be let go as soon as it is added, a few megabytes of
 * it are kept. One thread at a time. `new` gives NULL when memory is out; `free` takes NULL. `finish` comes once, behind all.
 * OPS_FORMAT_CSV has a row for each finding, with the first of its places; OPS_FORMAT_BRIEF the first findings in two lines each,
 * to show below a page of views. */
struct ops_adviser;
struct ops_adviser *ops_adviser_new(void);
enum ops_code ops_adviser_add(struct ops_adviser *adviser, const struct ops_rank *rank, struct ops_error *error);
enum ops_code ops_adviser_finish(struct ops_adviser *adviser, enum ops_format format, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);
void ops_adviser_free(struct ops_adviser *adviser);

/* The same for traces that are there all at once. The text has a NUL behind and is freed with ops_free. OPS_NO_MEMORY is all that can go wrong. */
enum ops_code ops_advise(const struct ops_rank *ranks, size_t count, enum ops_format format, char **ret_text,
                         size_t *ret_size, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
