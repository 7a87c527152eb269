/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python calls of a recording: their functions, and which call each lies in.
 */
#ifndef OPS_READ_RECORDING_CALLS_H
#define OPS_READ_RECORDING_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "record/recording.h"
#include "trace/builder.h"

/* A function of the recording, as string and function of the trace. */
struct ops_called_function {
	uint32_t row_name;
	uint32_t function; /* OPS_NONE for none */
};

struct ops_called_functions {
	struct ops_called_function *items; /* by ops_slot.name - 1 */
	size_t count;
	uint32_t last_id; /* the python_id that was given last */
};

/* A call under which others may begin. One that was dropped has no row: what it calls is called by its caller. */
struct ops_open_call {
	int64_t end_ns;
	uint32_t python_id; /* of a dropped one, its caller's */
	uint32_t line;      /* where a dropped one was called */
	bool is_dropped;
};

/* The calls of one thread that have not ended, outermost first. */
struct ops_open_calls {
	OPS_ARRAY(struct ops_open_call) open;
};

/* False when memory is out. */
bool ops_called_functions_init(struct ops_called_functions *called, const struct ops_recording *recording,
                               struct ops_builder *builder);
void ops_called_functions_release(struct ops_called_functions *called);

/* Fills in name and function of a call of the function of that number. False when there is none. */
bool ops_called_functions_describe(const struct ops_called_functions *called, uint32_t number, struct ops_new_event *event);

/* Numbers a call of Python, which comes in order of time among those of its thread, finds the one it lies in and adds it to the
 * builder. False when memory is out, and then it can be added again. */
bool ops_open_calls_add(struct ops_open_calls *calls, struct ops_called_functions *called, struct ops_builder *builder,
                        struct ops_new_event *event);
/* The same with a call that has no row: `call_line` is the line from which it was called. */
bool ops_open_calls_add_dropped(struct ops_open_calls *calls, int64_t start_ns, int64_t end_ns, uint32_t call_line);
/* The line of the innermost call with a row from which something is called that begins at `start_ns`; `call_line` is that of the
 * innermost call. In order of time, too. */
uint32_t ops_open_calls_line(struct ops_open_calls *calls, int64_t start_ns, uint32_t call_line);
void ops_open_calls_release(struct ops_open_calls *calls);

#endif
