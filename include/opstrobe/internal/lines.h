/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/lines.h: the cost of each line of the program's source, for traces with Python calls (with_stack=True).
 *
 * The time of a line includes everything that was called from it; its self time excludes what deeper lines account for. A line
 * also has the device work launched and the memory allocated there. The backward pass of an operator belongs to the line that
 * called the operator. Only the user's lines are listed: torch's internal work counts for the line that called torch. The first
 * line of a function has the time of the function's own Python code, and its number of calls. Traces of other profilers do not
 * record the lines of calls: there all costs are at the first line of the function. In traces without calls, samples of the stacks show
 * which lines run between operators.
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

/* JSON has all lines, grouped by file; other formats are a table of the `rows_max` lines with the most self time (0: all). Lines
 * of the program come before those of libraries. Text is `columns` characters wide if possible (0: any width). Near linear in the
 * trace. The text ends with a NUL; free it with ops_free. Thread-safe. */
enum ops_code ops_lines(const struct ops_trace *trace, enum ops_format format, size_t rows_max, size_t columns,
                        char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
