/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/advice.h: finds what wastes time or memory in a program, and where, and predicts what a change would gain.
 *
 * Reads the finished traces of the workers of a run and does not change them. The JSON form:
 *
 *     {"findings": [{"id", "title", "severity": "high|medium|low|info", "confidence": "high|medium|low",
 *                    "where": [{"file", "line", "function", "module", "operator", "trace", "row"}], "evidence",
 *                    "explanation", "advice", "predicted_gain_ms_per_step", "predicted_gain_percent",
 *                    "predicted_gain_bound", "links": […]}],
 *      "not_explained": {"title", "percent", "explained_percent", "ms_per_step", "hint", "lines": […]}, "checked": [ids]}
 *
 * Findings are ordered by gain, the largest first. Unknown members of a place are null. `row` is the row of the most expensive
 * event there, in the trace numbered `trace`. `not_explained` is the time of a step that no finding explains, by line, or null if that
 * is less than 5 %. `checked` lists the rules that apply to the trace. The functions are thread-safe.
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

/* An advisor for a run of many workers, whose traces are added one after another. A trace may be released as soon as it is added:
 * the advisor keeps a few megabytes for each. `new` returns NULL if out of memory; `free` accepts NULL. Call `finish` once, after
 * the last trace. OPS_FORMAT_CSV has a row for each finding, with its first place. OPS_FORMAT_BRIEF has two lines for each of the
 * first findings, for the end of a page of views. Do not use one advisor from several threads at once. */
struct ops_adviser;
struct ops_adviser *ops_adviser_new(void);
enum ops_code ops_adviser_add(struct ops_adviser *adviser, const struct ops_rank *rank, struct ops_error *error);
enum ops_code ops_adviser_finish(struct ops_adviser *adviser, enum ops_format format, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);
/* Replaces ops_adviser_finish(): adds the member `top_finding` to the JSON object `*text`, which it reallocates. The value is the
 * first finding in the JSON form, or null. */
enum ops_code ops_adviser_add_top(struct ops_adviser *adviser, char **text, size_t *size, struct ops_error *error);
void ops_adviser_free(struct ops_adviser *adviser);

/* Returns advice on traces that are all in memory. The text ends with a NUL and is freed with ops_free(). Fails only with
 * OPS_NO_MEMORY. */
enum ops_code ops_advise(const struct ops_rank *ranks, size_t count, enum ops_format format, char **ret_text,
                         size_t *ret_size, struct ops_error *error);

/* Returns what a list of traces shows about one of them, as a JSON object: when it was recorded and for how long, its steps with
 * their median, the devices that ran kernels, rank and world size, host, command, and the first finding. Text and errors as in
 * ops_advise(). */
enum ops_code ops_trace_summary(const struct ops_rank *rank, char **ret_text, size_t *ret_size, struct ops_error *error);

/* Returns the rules as a table or, with OPS_FORMAT_MARKDOWN, as the page docs/reference/rules.md. Text and errors as in
 * ops_advise(). */
enum ops_code ops_advice_rules(enum ops_format format, char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
