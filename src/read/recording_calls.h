/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python calls of a recording: their functions, and how calls nest.
 */
#ifndef OPS_READ_RECORDING_CALLS_H
#define OPS_READ_RECORDING_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "record/recording.h"
#include "trace/builder.h"

/* A function of the recording, with its string and function in the trace. */
struct ops_called_function {
	uint32_t row_name;
	uint32_t function; /* OPS_NONE: none */
};

struct ops_called_functions {
	struct ops_called_function *items; /* by ops_slot.name - 1 */
	size_t count;
	uint32_t last_id; /* the last assigned python_id */
};

/* A call that may enclose others. A dropped call has no row: what it calls is called by its caller. */
struct ops_open_call {
	int64_t end_ns;
	uint32_t python_id; /* for a dropped call, that of its caller */
	uint32_t line;      /* for a dropped call, the line of the call */
	bool is_dropped;
};

/* The open calls of one thread, outermost first. */
struct ops_open_calls {
	OPS_ARRAY(struct ops_open_call) open;
};

/* Returns false if out of memory. */
bool ops_called_functions_init(struct ops_called_functions *called, const struct ops_recording *recording,
                               struct ops_builder *builder);
void ops_called_functions_release(struct ops_called_functions *called);

/* Sets name and function of a call of the function with that number. Returns false if there is none. */
bool ops_called_functions_describe(const struct ops_called_functions *called, uint32_t number, struct ops_new_event *event);

/* Numbers a Python call, finds its enclosing call and adds it to the builder. The calls of a thread must be added in order of
 * time. Returns false if out of memory; then it can be added again. */
bool ops_open_calls_add(struct ops_open_calls *calls, struct ops_called_functions *called, struct ops_builder *builder,
                        struct ops_new_event *event);
/* Like ops_open_calls_add, for a call without a row: `call_line` is the line of the call. */
bool ops_open_calls_add_dropped(struct ops_open_calls *calls, int64_t start_ns, int64_t end_ns, uint32_t call_line);
/* Returns the line, in the innermost enclosing call with a row, from which an event that begins at `start_ns` is called;
 * `call_line` is the line in the innermost call. Called in order of time, too. */
uint32_t ops_open_calls_line(struct ops_open_calls *calls, int64_t start_ns, uint32_t call_line);
void ops_open_calls_release(struct ops_open_calls *calls);

#endif
