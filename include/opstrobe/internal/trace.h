/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/trace.h: functions of traces that only the layers, the command and the Python extension need.
 */
#ifndef OPSTROBE_INTERNAL_TRACE_H
#define OPSTROBE_INTERNAL_TRACE_H

#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_DEPENDENCY_ARROWS (UINT64_C(1) << 40) /* first number of a dependency in files that Opstrobe writes */
#define OPS_OWN_KIND_COROUTINE 2 /* kind of a coroutine's track in files that Opstrobe writes, next to enum ops_track_kind */

/* For each memory record the call stack that its file has, as in ops_events.call_stack: a string id, or OPS_NONE. NULL if no
 * record has one. */
const uint32_t *ops_trace_memory_stacks(const struct ops_trace *trace);
/* The number of each link, from 1, as files and viewers count them: in the order in which the events that they point to end.
 * Returns false if memory is out. */
bool ops_trace_number_links(const struct ops_trace *trace, uint32_t *ret_numbers);

/* Parses a name of the form "path(line): name". Returns false for names of another form. */
bool ops_function_parse(struct ops_string row_name, struct ops_function_text *ret_function);
/* Whether a Python file belongs to torch, or does not exist ("<string>"). Users look for its caller. */
bool ops_file_is_torch(struct ops_string file);
/* The file of the innermost frame that is not torch's own, of frames each followed by ';', and the line that it ran. An empty
 * text, and line 0, if there is none. */
struct ops_string ops_stack_line(struct ops_string stack, uint32_t *ret_line);

/* Whether ops_trace_set_metadata accepts this pair, for callers that collect metadata before there is a trace. */
enum ops_code ops_metadata_check(const char *key, size_t key_size, const char *json, size_t json_size,
                                 struct ops_error *error);

/* Adds the member "diagnostics", a list, to a JSON object that another function of the library returned. Without diagnostics,
 * and for text that is not an object, nothing changes. The text keeps the function that frees it, and is unchanged on failure. */
enum ops_code ops_diagnostics_add(const struct ops_diagnostic *items, size_t count, char **text, size_t *size,
                                  struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
