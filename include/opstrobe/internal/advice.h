/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/advice.h: what wastes time or memory in a program, where, and what a change would gain.
 *
 * Reads the finished traces of the workers of a run, and does not change them. The JSON form:
 *
 *     {"findings": [{"id", "title", "severity": "high|medium|low|info", "confidence": "high|medium|low",
 *                    "where": [{"file", "line", "function", "module", "operator", "trace", "row"}], "evidence",
 *                    "explanation", "advice", "predicted_gain_ms_per_step", "predicted_gain_percent",
 *                    "predicted_gain_bound", "links": […]}], "checked": [ids]}
 *
 * Findings are ordered by gain, the largest first. What is unknown about a place is null. `row` is the row of the most expensive
 * event there, in the trace with the number `trace`. `checked` lists the rules that apply to the trace. The functions are
 * thread-safe.
 */
#ifndef OPSTROBE_INTERNAL_ADVICE_H
#define OPSTROBE_INTERNAL_ADVICE_H

#include <stddef.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/internal/views.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Advice on a run of many workers, one trace after another. A trace may be released as soon as it is added: the advisor keeps a few
 * megabytes of it. `new` returns NULL if memory is out; `free` accepts NULL. Call `finish` once, after the last trace.
 * OPS_FORMAT_CSV has a row for each finding, with the first of its places. OPS_FORMAT_BRIEF has two lines for each of the first
 * findings, to show below a page of views. Do not use one advisor from several threads at once. */
struct ops_adviser;
struct ops_adviser *ops_adviser_new(void);
enum ops_code ops_adviser_add(struct ops_adviser *adviser, const struct ops_rank *rank, struct ops_error *error);
enum ops_code ops_adviser_finish(struct ops_adviser *adviser, enum ops_format format, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);
/* Instead of ops_adviser_finish(): adds the member `top_finding` to the JSON object `*text`, which is replaced. It is the first of
 * the findings in the JSON form, or null. */
enum ops_code ops_adviser_add_top(struct ops_adviser *adviser, char **text, size_t *size, struct ops_error *error);
void ops_adviser_free(struct ops_adviser *adviser);

/* Advice on traces that are all in memory. The text ends with a NUL and is freed with ops_free(). Fails with OPS_NO_MEMORY only. */
enum ops_code ops_advise(const struct ops_rank *ranks, size_t count, enum ops_format format, char **ret_text,
                         size_t *ret_size, struct ops_error *error);

/* What a list of traces shows of one, as a JSON object: when it was recorded and how long, its steps with their median, the devices that
 * ran kernels, rank and world size, host, command, and the first finding. Likewise. */
enum ops_code ops_trace_summary(const struct ops_rank *rank, char **ret_text, size_t *ret_size, struct ops_error *error);

/* The rules: as a table, or with OPS_FORMAT_MARKDOWN as the page docs/reference/rules.md. Likewise. */
enum ops_code ops_advice_rules(enum ops_format format, char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
