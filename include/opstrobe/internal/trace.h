/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/trace.h: functions for traces that only the library's layers, the command and the Python extension use.
 */
#ifndef OPSTROBE_INTERNAL_TRACE_H
#define OPSTROBE_INTERNAL_TRACE_H

#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_DEPENDENCY_ARROWS (UINT64_C(1) << 40) /* first number of a dependency in files that Opstrobe writes */
#define OPS_OWN_KIND_COROUTINE 2 /* kind of the track of a coroutine in files that Opstrobe writes, in addition to enum
                                  * ops_track_kind */

#define OPS_PYTHON_SAMPLES "python_samples" /* key of the metadata with sampled stacks: derive/python_samples.h */

/* Returns the call stack that the file gives each memory record, as in ops_events.call_stack: a string id, or OPS_NONE. Returns
 * NULL if no record has one. */
const uint32_t *ops_trace_memory_stacks(const struct ops_trace *trace);
/* Returns the row that an event of a part, a trace that ops_trace_cut() made, has in the complete trace, for links into that; the same
 * row for other traces. */
uint32_t ops_trace_whole_row(const struct ops_trace *trace, uint32_t row);
/* Parses a range of steps: "3" or "3:5". Returns false for other texts, and if the last is before the first. */
bool ops_steps_parse(const char *text, uint64_t *ret_first, uint64_t *ret_last);
/* Finds the time of the steps of a range. OPS_INVALID, with the steps that exist, if the trace has none of them. */
enum ops_code ops_trace_find_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns,
                                   int64_t *ret_to_ns, struct ops_error *error);
/* Finds the steps that pages open on: all of them, if they are less than 98 % of the trace. Returns false for the whole trace. */
bool ops_trace_opening(const struct ops_trace *trace, uint64_t *ret_first, uint64_t *ret_last);
/* Computes the number of each link, from 1, as files and viewers number them: in the order in which the events that they point to
 * end. Returns false if out of memory. */
bool ops_trace_number_links(const struct ops_trace *trace, uint32_t *ret_numbers);

/* Parses a name of the form "path(line): name". Returns false for other names. */
bool ops_function_parse(struct ops_string row_name, struct ops_function_text *ret_function);
/* Returns whether a Python file belongs to torch or does not exist ("<string>"). For such a file, its caller is shown to users. */
bool ops_file_is_torch(struct ops_string file);
/* Returns the path of a file within the package torch, such as "nn/functional.py"; without bytes for other files. */
struct ops_string ops_path_in_torch(struct ops_string file);
/* Finds the innermost frame of a call stack outside of torch; its line is the one that it executed. The frames are each followed
 * by ';'. Returns false if there is none. */
bool ops_stack_function(struct ops_string stack, struct ops_function_text *ret_function);
/* Returns the file of that frame, and the line; an empty text and line 0 if there is none. */
struct ops_string ops_stack_line(struct ops_string stack, uint32_t *ret_line);

/* Checks whether ops_trace_set_metadata accepts this pair, for callers that collect metadata before the trace exists. */
enum ops_code ops_metadata_check(const char *key, size_t key_size, const char *json, size_t json_size,
                                 struct ops_error *error);

/* Adds the member "diagnostics", a list, to a JSON object that another function of the library returned. Changes nothing if there
 * are no diagnostics or the text is not an object. The text is still freed with the same function, and is unchanged on failure. */
enum ops_code ops_diagnostics_add(const struct ops_diagnostic *items, size_t count, char **text, size_t *size,
                                  struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
