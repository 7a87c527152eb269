/* SPDX-License-Identifier: Apache-2.0
 *
 * Times during which a program captures CUDA graphs. Its launches do not run then. If a server captures a graph for
 * each batch size, the device would seem idle, and steps would seem to have work that no step does. So this time
 * belongs to no step.
 *
 *     host    ──[BeginCapture]──[launch]──[launch]──[EndCapture]──     from one call to the other;
 *     host    ──[ capture_one ]──[ capture_one ]──[ capture_one ]──    calls of a function that each capture a graph; and
 *     host    ──[ capture_model  warm up, capture, warm up, … ]──      functions of servers that warm up
 */
#include "analyze/advice/advice.h"
#include "derive/captures.h"
#include "derive/iterations.h"

bool advice_find_captures(struct advice *advice)
{
	const struct ops_captures *captures = ops_captures_of(advice->trace);
	bool done = captures != NULL;

	for (size_t i = 0; done && i < captures->times.count; i++)
		done = ops_intervals_push(&advice->captures, captures->times.items[i].start_ns, captures->times.items[i].end_ns);
	for (size_t i = 0; done && i < captures->loops.count; i++)
		done = ops_intervals_push(&advice->captures, captures->loops.items[i].start_ns, captures->loops.items[i].end_ns);
	done = done && ops_iterations_add_warm_ups(advice->trace, &advice->captures);
	ops_intervals_sort(&advice->captures);
	return done;
}
