/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/lines.h: what each line of the program's source cost, of traces with Python calls (with_stack=True).
 *
 * A line has the time of all that was called from it; as its own the time that no line further in accounts for; what it
 * launched on devices; and what memory was allocated there. The backward of an operator belongs to the line that called the
 * operator. Lines are the user's: what torch does itself counts for the line that called torch. A function's first line has
 * what its own Python code took, and its calls. Traces of other profilers do not tell lines of calls: there everything is at
 * the first line of the function.
 *
 * The JSON form is in docs/openapi.yaml (Lines): {"steps", "duration_us", "files": [{"file", …, "lines": [{"line", …}]}]}.
 */
#ifndef OPSTROBE_INTERNAL_LINES_H
#define OPSTROBE_INTERNAL_LINES_H

#include <stddef.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* JSON has all lines by file; the others are a table of the `rows_max` lines with most own time (0: all), of which text
 * fits so many `columns` of a terminal, if it can (0: any). Near linear in the trace. The text has a NUL behind and is freed
 * with ops_free. Any thread may call it. */
enum ops_code ops_lines(const struct ops_trace *trace, enum ops_format format, size_t rows_max, size_t columns,
                        char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
