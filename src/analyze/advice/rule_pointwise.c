/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels that follow each other on a stream and process the same number of elements: each reads from
 * memory what the previous one wrote. Fused, they take about as long as the slowest of them.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Number of elements that a kernel computes, from the inputs of its operator. Without recorded shapes, kernels with the
 * same grid count as equal in size, although vectorized kernels compute several elements per thread. */
struct size {
	int64_t elements; /* -1: unknown */
	uint32_t grid;
};

/* The latest kernels of a stream, as long as they are elementwise and of equal size. */
struct chain {
	struct size size;
	uint64_t length;
	int64_t ns;
	int64_t longest_ns;
	uint32_t row; /* row of the last launch */
};

struct pointwise {
	struct chain *chains; /* by track */
	uint64_t kernels;
	int64_t ns;
};

static void end_chain(struct pointwise *pointwise, struct advice_result *result, struct chain *chain)
{
	if (chain->length > 1) {
		advice_tally_add(&result->tally, chain->row, chain->ns - chain->longest_ns);
		pointwise->kernels += chain->length;
		pointwise->ns = ops_sum(pointwise->ns, chain->ns);
	}
	*chain = (struct chain){0};
}

#define DIMENSIONS_MAX 16

/* Returns the number of elements of the broadcast result of tensors with these shapes, or of the largest tensor if they
 * do not broadcast; -1 without tensors. */
static int64_t broadcast_elements(struct ops_string inputs)
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	int64_t sizes[DIMENSIONS_MAX], most = -1, all = 1; /* sizes, the last dimension first */
	size_t dimensions = 0;
	bool fits = true;
	struct ops_input input;

	while (ops_inputs_next(&cursor, &input)) {
		int64_t elements = advice_input_elements(&input);

		if (elements < 0)
			continue;
		most = elements > most ? elements : most;
		fits = fits && input.n <= DIMENSIONS_MAX;
		for (size_t i = 0; fits && i < input.n; i++) {
			int64_t size = ops_input_int(&input, input.n - 1 - i);

			if (i == dimensions)
				sizes[dimensions++] = 1;
			fits = sizes[i] == 1 || size == 1 || sizes[i] == size;
			sizes[i] = sizes[i] == 1 ? size : sizes[i];
		}
	}
	if (most < 0 || !fits)
		return most;
	for (size_t i = 0; i < dimensions; i++)
		all = ops_product(all, sizes[i]);
	return all;
}

static struct size rule_pointwise_size_of(const struct advice *advice, const struct view_device_event *event)
{
	const struct ops_events *events = advice->events;
	struct size size = {-1, OPS_NONE};
	uint32_t row = event->launch == OPS_NONE ? OPS_NONE : advice_launch_row(advice, event);

	while (row != OPS_NONE && !advice_is_operator(advice, row))
		row = events->parent[row];
	if (row != OPS_NONE && events->inputs[row] != OPS_NONE)
		size.elements = broadcast_elements(ops_trace_inputs(advice->trace, events->inputs[row]));
	if (size.elements < 0 && event->arguments != OPS_NONE)
		size.grid = advice->views->kernels.items[event->arguments].grid;
	return size;
}

static void rule_pointwise_add(struct pointwise *pointwise, struct advice_result *result, const struct view_device_event *event,
                               bool elementwise)
{
	const struct advice *advice = result->advice;
	struct chain *chain = &pointwise->chains[advice->events->track[event->row]];
	uint32_t row = advice_launch_row(advice, event);
	struct size size = {-1, OPS_NONE};
	int64_t ns = advice_ns(advice, event->row);

	/* Parameters of an optimizer are separate tensors, and have their own rule. */
	if (elementwise && advice_counts(advice, event->row) && !(advice->zone[row] & ADVICE_IN_OPTIMIZER))
		size = rule_pointwise_size_of(advice, event);
	elementwise = size.elements >= 0 || size.grid != OPS_NONE;
	if (!elementwise || size.elements != chain->size.elements || size.grid != chain->size.grid)
		end_chain(pointwise, result, chain);
	if (!elementwise)
		return;
	if (chain->length == 1)
		advice_add_cost(result, chain->row, chain->ns);
	if (chain->length)
		advice_add_cost(result, row, ns);
	chain->size = size;
	chain->row = row;
	chain->length++;
	chain->ns = ops_sum(chain->ns, ns);
	chain->longest_ns = ns > chain->longest_ns ? ns : chain->longest_ns;
}

static bool rule_pointwise_find(const struct advice *advice, struct advice_result *result)
{
	struct pointwise pointwise = {0};
	size_t tracks;
	bool done;

	ops_trace_tracks(advice->trace, &tracks);
	pointwise.chains = ops_alloc_zeroed(tracks + 1, sizeof(*pointwise.chains));
	done = pointwise.chains != NULL;
	for (size_t i = 0; done && i < advice->views->device_events.count; i++)
		rule_pointwise_add(&pointwise, result, &advice->views->device_events.items[i],
		                   result->which[advice->events->name[advice->views->device_events.items[i].row]]);
	for (size_t i = 0; done && i < tracks; i++)
		end_chain(&pointwise, result, &pointwise.chains[i]);
	done = done && advice_report_gain(result, (double)result->tally.ns * advice_busy_share(advice),
	                                  "%s one of the same size, in %s.",
	                                  advice_counted(advice, pointwise.kernels, "elementwise kernel in each step directly follows", "elementwise kernels in each step directly follow").text,
	                                  advice_spent(advice, (double)pointwise.ns).text);
	ops_free(pointwise.chains);
	return done;
}

const struct advice_rule advice_rule_pointwise = {
	.id = "unfused-pointwise",
	.title = "Elementwise kernels run one after another",
	.condition = "Elementwise kernels follow each other on a stream, on equally many elements: those of the result by the "
		     "shapes of the inputs, or without shapes by the grids of the kernels.",
	.gain = "all but the longest of each chain, as far as the device is busy",
	.explanation = "An elementwise kernel computes very little: its time is that of reading inputs and writing the output. "
		       "Consecutive ones read what was just written.",
	.advice = "torch.compile(model) fuses them into one kernel; so do fused operators (torch.addcmul, nn.functional.gelu "
		  "instead of its formula). To check: fewer kernels named elementwise_kernel.",
	.code = "model = torch.compile(model)",
	.link = "https://docs.pytorch.org/docs/stable/torch.compiler.html",
	.needs = ADVICE_NEEDS_DEVICE,
	.stage = ADVICE_STAGE_DEVICE,
	.names = (const char *const[]){"*elementwise_kernel*", NULL},
	.find = rule_pointwise_find,
};
