/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of the recording ("machine" in the metadata, recording/host_info.py of the package), and the overhead of
 * recording. Both are subtracted from the times of the rules: a wait for a processor that another program occupies, or
 * for the recording itself, is not a problem of the program.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/views/view_step_stats.h"
#include "base/alloc.h"
#include "base/json_walk.h"
#include "base/order.h"
#include "base/text.h"

/* --- metadata ------------------------------------------------------------------------------------------------------- */

static void read_machine(struct advice_machine *machine, struct ops_string json)
{
	struct ops_json_walk walk = ops_json_walk(json.bytes, json.size);
	struct ops_string key, value;

	while (ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "processors"))
			ops_json_parse_number(value, &machine->processors);
		else if (ops_string_is(key, "page_ns"))
			ops_json_parse_number(value, &machine->page_ns);
		else if (ops_string_is(key, "threads"))
			ops_json_parse_integer(value, &machine->threads);
		else if (ops_string_is(key, "memory_limit_bytes"))
			ops_json_parse_integer(value, &machine->memory_limit_bytes);
		else if (ops_string_is(key, "memory_peak_bytes"))
			ops_json_parse_integer(value, &machine->memory_peak_bytes);
	}
}

bool advice_read_machine(struct advice *advice)
{
	struct ops_string json;

	advice->machine.waits = ops_alloc_zeroed(advice->views->steps.count + 1, sizeof(*advice->machine.waits));
	if (!advice->machine.waits || !view_waits_find(advice->views, advice->machine.waits, &advice->machine.waited))
		return false;
	advice->machine.has_waits = !isnan(advice->machine.waited.ratio);
	if (ops_trace_find_metadata(advice->trace, "machine", &json) && json.bytes[0] == '{')
		read_machine(&advice->machine, json);
	return true;
}

/* --- the graph ------------------------------------------------------------------------------------------------------- */

/* Creating a node, keeping its inputs and freeing both takes this share of the time of a view, which creates only an
 * output and a node. Measured over views, sums, products, activations, norms and layers on small tensors: enabled
 * gradients cost 0.66 of a view per node compared with no_grad, and 0.8 compared with inference mode (torch 2.13). */
#define NODE_OF_VIEW 0.7

double advice_creation_ns(int64_t *view_ns, size_t count)
{
	return NODE_OF_VIEW * (double)ops_sort_to_middle(view_ns, count);
}

/* --- page faults ----------------------------------------------------------------------------------------------------- */

/* Memory that the C library returns to the system between steps is mapped again page by page: each page faults and is
 * cleared. Only the number of faults shows how much of the allocated memory this affects. Blocks of the recording are new
 * pages as well: some hundred bytes for each row, with names and inputs. */
#define ROW_BYTES 128
#define PAGE_BYTES 4096

void advice_find_faults(struct advice *advice)
{
	size_t count, at = 0, steps = advice->views->steps.count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	double faults = 0, bytes = 0;

	for (size_t i = 0; i < count && steps; i++) {
		at = advice_next_step(advice, at, records[i].time_ns);
		if (advice->steady[at] && records[i].device_type == 0 && records[i].bytes > 0 &&
		    records[i].time_ns >= advice->views->steps.items[at].host_start_ns)
			bytes += (double)records[i].bytes;
	}
	for (size_t i = 0; i < steps; i++)
		faults += advice->steady[i] ? (double)advice->machine.waits[i].faults : 0;
	for (uint32_t row = 0; row < advice->events->count; row++)
		faults -= advice->step_of[row] != OPS_NONE ? (double)ROW_BYTES / PAGE_BYTES : 0;
	if (faults > 0 && bytes > 0)
		advice->fault_ns = faults * advice->machine.page_ns / (bytes > faults * PAGE_BYTES ? bytes : faults * PAGE_BYTES);
}

/* --- overhead of recording ------------------------------------------------------------------------------------------ */

/* Overhead of recording host rows, with memory reports and inputs. In the diagnosis suite, steps with and without a
 * profiler differ by 0.07 to 0.2 microseconds of thread time per row if most rows are Python calls, and by 0.2 to 0.6
 * if most are operators. Other profilers cost more, so for their traces this is too little rather than too much. With a
 * device most of it is hidden behind the device's work. */
#define PYTHON_COST_NS 70
#define OPERATOR_COST_NS 200

int64_t advice_recording_ns(const struct advice *advice, uint32_t row)
{
	if (advice->views->device_events.count)
		return 0;
	switch (advice->events->kind[row]) {
	case OPS_EVENT_PYTHON_FUNCTION:
		return PYTHON_COST_NS;
	case OPS_EVENT_CPU_OP:
	case OPS_EVENT_USER_ANNOTATION:
		return OPERATOR_COST_NS;
	default:
		return 0;
	}
}

/* The overhead of a row is outside of it, so it counts for the rows around it. Walks from the last row to the first,
 * since children come after their parents. */
void advice_correct_times(struct advice *advice)
{
	const struct ops_events *events = advice->events;

	for (uint32_t row = (uint32_t)events->count; row-- > 0;) {
		uint32_t parent = events->parent[row];
		int64_t cost_ns = advice_recording_ns(advice, row);

		/* So far `ns` is the overhead of the children, and `self_ns` minus their time. */
		cost_ns = ops_sum(cost_ns, advice->ns[row]);
		advice->ns[row] = ops_difference(ops_difference(events->end_ns[row], events->start_ns[row]), advice->ns[row]);
		if (advice->ns[row] < 0)
			advice->ns[row] = 0;
		advice->self_ns[row] = ops_sum(advice->ns[row], advice->self_ns[row]);
		/* Less than that if the row overlaps a later one in part. */
		if (advice->self_ns[row] > events->self_ns[row])
			advice->self_ns[row] = events->self_ns[row];
		if (advice->self_ns[row] < 0)
			advice->self_ns[row] = 0;
		if (parent == OPS_NONE)
			continue;
		advice->ns[parent] = ops_sum(advice->ns[parent], cost_ns);
		advice->self_ns[parent] = ops_difference(advice->self_ns[parent], advice->ns[row]);
	}
}
