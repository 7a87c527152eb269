/* SPDX-License-Identifier: Apache-2.0
 *
 * Times during which a program captures CUDA graphs. Its launches do not run then. If a server captures a graph for
 * each batch size, the device would seem idle, and steps would seem to have work that no step does. So this time
 * belongs to no step.
 *
 *     host    ──[BeginCapture]──[launch]──[launch]──[EndCapture]──     from one call to the other; and
 *     host    ──[ capture_model  warm up, capture, warm up, … ]──      functions that capture several
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Functions of servers by their names in vLLM and SGLang. */
static const char *const functions[] = {"*): capture_model", "*.capture_model", "*): capture_one_batch_size",
                                        "*.capture_one_batch_size", "*): init_cuda_graphs", "*.init_cuda_graphs",
                                        "*): init_device_graphs", "*.init_device_graphs", NULL};
static const char *const begins[] = {"*StreamBeginCapture*", NULL};
static const char *const ends[] = {"*StreamEndCapture*", NULL};

bool advice_find_captures(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	size_t tracks;
	uint8_t *capturing = advice_names(advice, functions), *begin = advice_names(advice, begins);
	uint8_t *end = advice_names(advice, ends);
	uint32_t *open; /* by track: the call that began a capture */
	bool done;

	ops_trace_tracks(advice->trace, &tracks);
	open = ops_alloc_none(tracks + 1);
	done = capturing && begin && end && open;
	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t name = events->name[row], *opened = &open[events->track[row]];

		if (capturing[name] && events->kind[row] == OPS_EVENT_PYTHON_FUNCTION) {
			done = ops_intervals_push(&advice->captures, events->start_ns[row], events->end_ns[row]);
		} else if (begin[name]) {
			*opened = row;
		} else if (end[name] && *opened != OPS_NONE) {
			done = ops_intervals_push(&advice->captures, events->start_ns[*opened], events->end_ns[row]);
			*opened = OPS_NONE;
		}
	}
	ops_intervals_sort(&advice->captures);
	ops_free(capturing);
	ops_free(begin);
	ops_free(end);
	ops_free(open);
	return done;
}
