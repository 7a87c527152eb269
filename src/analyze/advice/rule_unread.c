/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are computed in vain, according to the data flow (analyze/flow): results of which only a small part is
 * ever read, and gradients that no optimizer reads.
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"
#include "base/text.h"
#include "trace/names.h"

#define BYTES_MIN (64 << 10) /* minimum bytes of results that matter */
#define PART_MAX 0.25        /* maximum part that is read */
#define SORTED_SHARE 0.9     /* share of a sort that selecting its first elements saves; each element still has to be
                              * compared once */

/* --- parts ---------------------------------------------------------------------------------------------------------- */

/* A local operator computes each position from the same one of its inputs, or from those around it. */
enum unread_name { NAME_ALL_NEEDED = 1, NAME_SORTS, NAME_LOCAL, NAME_CONVOLVES };

struct parts {
	uint8_t *kind;     /* by string: enum unread_name */
	float *needed;     /* by row: share of its results that is needed; 0: unknown */
	uint8_t *channels; /* by row: the rest of it are channels, and a convolution reads all channels of its input */
	int64_t made, read;
};

/* Returns the share of what a node reads that is needed. */
static float share_needed(const struct parts *parts, const struct advice *advice, uint32_t node)
{
	uint8_t kind = parts->kind[advice->events->name[node]];
	bool is_local = kind == NAME_LOCAL || (kind == NAME_CONVOLVES && !parts->channels[node]);

	return is_local && parts->needed[node] > 0 ? parts->needed[node] : 1;
}

/* Returns true if an operator narrows a tensor to a part of the dimension of its channels. */
static bool narrows_channels(const struct advice *advice, uint32_t row)
{
	struct ops_input tensor, dimension;

	return !advice_input(advice, row, 0, &tensor) || !advice_input(advice, row, 1, &dimension) || dimension.tag != OPS_INPUT_INT ||
	       ops_input_int(&dimension, 0) == 1 || ops_input_int(&dimension, 0) == 1 - (int64_t)tensor.n;
}

/* Returns true if a node is the backward pass of an operator. What it reads of the results of this operator follows from what is
 * needed of them, since all other gradients are zero. */
static bool is_backward_of(const struct advice *advice, uint32_t node, uint32_t maker)
{
	uint32_t forward = (advice->flow->memory.rows.context[node] & MEMORY_IN_BACKWARD) ? advice_forward_of(advice, node) : OPS_NONE;

	return forward != OPS_NONE && advice->flow->memory.rows.node[forward] == maker;
}

/* Returns the bytes of a value that are needed. Sets the result if some are not. */
static int64_t needed_bytes(const struct parts *parts, const struct advice *advice, uint32_t value, bool *ret_in_part, bool *ret_channels)
{
	const struct data_flow *flow = advice->flow;
	int64_t bytes = data_flow_uses_of(flow, value).read_bytes, most = 0, narrowed = 0, read = 0;
	bool is_selected = data_flow_is_selected_from(flow, value), has_backward = false;

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];
		int64_t needed = (int64_t)(share_needed(parts, advice, use->node) * (double)use->bytes);

		if (is_backward_of(advice, use->node, flow->values[value].node)) {
			has_backward = true;
			continue;
		}
		narrowed = ops_sum(narrowed, use->kind == DATA_NARROWS ? use->bytes : 0);
		read = ops_sum(read, use->kind == DATA_READS || use->kind == DATA_SELECTS ? use->bytes : 0);

		*ret_channels |= use->kind == DATA_NARROWS ? narrows_channels(advice, use->node) : parts->channels[use->node] != 0;
		if (use->kind != DATA_READS)
			continue;
		*ret_in_part |= needed < use->bytes;
		most = needed > most ? needed : most;
	}
	*ret_in_part |= is_selected || has_backward;
	if (has_backward) {
		narrowed = narrowed > read ? narrowed : read;
		bytes = narrowed < bytes ? narrowed : bytes;
	}
	/* Operators that need parts of equal size need the same part. */
	return !is_selected && most < bytes ? most : bytes;
}

/* Sums up the results of a node. Returns false if one of them may be read in another way, or is mostly read. */
static bool sum_results(struct parts *parts, const struct advice *advice, uint32_t row, int64_t *ret_made, int64_t *ret_read)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	bool channels = false;

	*ret_made = *ret_read = 0;
	for (uint32_t i = 0; i < node->made_count; i++) {
		uint32_t value = flow->made.items[node->first_made + i];
		const struct memory_value *of = &flow->memory.values.items[value];
		const struct ops_memory_block *block = &flow->memory.blocks.items[of->block];
		bool in_part = false;
		int64_t needed;

		if (data_flow_is_scratch(flow, row, value) || flow->values[value].first == OPS_NONE)
			continue; /* what nothing uses is possibly scratch memory */
		needed = needed_bytes(parts, advice, value, &in_part, &channels);
		if (of->previous != OPS_NONE || !flow->values[value].complete || data_flow_uses_of(flow, value).updates ||
		    needed > block->bytes / 2 || !in_part || advice_may_read_block(advice, block))
			return false;
		*ret_made = ops_sum(*ret_made, block->bytes);
		*ret_read = ops_sum(*ret_read, needed);
	}
	parts->channels[row] = channels;
	return *ret_read > 0 && (double)*ret_read <= PART_MAX * (double)*ret_made;
}

/* Later nodes have been decided already. */
static void find_needed(struct parts *parts, const struct advice *advice, uint32_t row)
{
	uint8_t kind = parts->kind[advice->events->name[row]];
	int64_t made, read;

	if (!advice->flow->nodes[row].made_count || !advice_counts(advice, row) ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) || kind == NAME_ALL_NEEDED ||
	    (!data_flow_read_bytes(advice->flow, row) && kind != NAME_SORTS) || !sum_results(parts, advice, row, &made, &read) ||
	    (!kind && !advice->demands[row].bytes))
		return;
	parts->needed[row] = (float)((double)read / (double)made);
}

static void add_unread_part(struct parts *parts, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	double share = 1 - (double)parts->needed[row];
	int64_t made = data_flow_made_bytes(advice->flow, row);

	if (parts->needed[row] <= 0 || made < BYTES_MIN || advice_is_claimed(result, row))
		return;
	share = parts->kind[advice->events->name[row]] == NAME_SORTS && share > SORTED_SHARE ? SORTED_SHARE : share;
	advice_add_share(result, row, share * advice_work_share(advice, row));
	parts->made = ops_sum(parts->made, made);
	parts->read = ops_sum(parts->read, (int64_t)((double)made * (double)parts->needed[row]));
}

static bool rule_unread_find_parts(const struct advice *advice, struct advice_result *result)
{
	static const char *const all_needed[] = {"*cumsum*", "*cumprod*", "*softmax*", "*lstm*", "*gru*", "*rnn*", "*linalg*", "*fft*", "*transformer*",
	                                         NULL};
	static const char *const sorts[] = {"aten::sort", "aten::argsort", "aten::msort", "aten::topk", "aten::randperm", NULL};
	static const char *const local[] = {"aten::to", "aten::_to_copy", "aten::mean", "aten::std", "aten::var", NULL};
	static const char *const convolves[] = {"aten::conv1d", "aten::conv2d", "aten::conv3d", NULL};
	const char *const *const lists[] = {all_needed, sorts, local, convolves};
	size_t rows = advice->events->count + 1;
	struct parts parts = {.kind = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1), .channels = ops_alloc_zeroed(rows, 1),
	                      .needed = ops_alloc_zeroed(rows, sizeof(*parts.needed))};
	bool done = parts.kind && parts.channels && parts.needed;

	for (size_t i = 0; done && i < sizeof(lists) / sizeof(*lists); i++) {
		uint8_t *which = lists[i] == local ? advice_elementwise_names(advice, local) : advice_names(advice, lists[i]);

		done = which != NULL;
		for (size_t id = 0; done && id < ops_trace_string_count(advice->trace); id++)
			parts.kind[id] = which[id] ? (uint8_t)(i + 1) : parts.kind[id];
		ops_free(which);
	}
	for (uint32_t row = (uint32_t)advice->events->count; done && row-- > 0;)
		find_needed(&parts, advice, row);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_unread_part(&parts, result, row);
	done = done && advice_report_costs(result, "%s results of which only %s is ever read. The rest takes %s.",
	                                   advice_events(result, "operator in each step makes", "operators in each step make").text,
	                                   ops_figure_of_percent(parts.made > 0 ? 100 * (double)parts.read / (double)parts.made : 0).text,
	                                   advice_cost(result).text);
	ops_free(parts.kind);
	ops_free(parts.channels);
	ops_free(parts.needed);
	return done;
}

const struct advice_rule advice_rule_unread_part = {
	.id = "unread-part",
	.title = "Only a small part of a result is read",
	.condition = "Operators read at most a quarter of the results of an operator before these are released, through views or by "
		     "indices. Results that need all elements (scans, softmax, recurrent networks, factorizations) are left out, as is what "
		     "Python may read through a pointer. Elementwise operators, statistics and convolutions before such an operator count as well if it alone reads "
		     "their results, as those of a picture that is cropped later.",
	.gain = "the share of the results that is not read, forward and backward; of a sort or a random order 90 % at most",
	.explanation = "The operator computes all elements, and most of them are thrown away.",
	.advice = "Select before computing: apply the layer to the rows that are used, as head(hidden[:, -1]), or use an operator that "
		  "computes only what is needed, as torch.topk or max in place of a sort, and torch.randint in place of the first elements of torch.randperm. Crop or resize pictures before other transforms. To check: smaller shapes at the line.",
	.code = "logits = head(hidden[:, -1])  # in place of head(hidden)[:, -1]",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.topk.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_unread_find_parts,
};

/* --- gradients ------------------------------------------------------------------------------------------------------ */

#define UPDATES_MIN 2 /* minimum number of optimizer steps that do not read a gradient */

struct gradients {
	uint8_t *unread;               /* by value */
	uint8_t *used;                 /* by block: something other than an accumulation reads it */
	OPS_ARRAY(int64_t) updates_ns; /* times of optimizer steps */
	uint32_t border;               /* the part of the backward pass of the operator that gets the result of a network without gradients that are read; OPS_NONE: none */
	int64_t bytes;
	int64_t ns; /* time of what computes them */
	int64_t first_ns; /* when the first of them is computed */
};

/* Returns true if the node accumulates a gradient and operators show its memory, which is not so for sparse
 * gradients. */
static bool is_accumulation(const struct data_flow *flow, uint32_t node)
{
	const struct ops_events *events = flow->memory.events;
	struct ops_string inputs;
	struct ops_input gradient;

	if (!(flow->memory.rows.context[node] & MEMORY_IN_ACCUMULATE) || events->inputs[node] == OPS_NONE)
		return false;
	inputs = ops_trace_inputs(flow->memory.trace, events->inputs[node]);
	return ops_memory_find_tensor(inputs, 0, &gradient) && gradient.tag == OPS_INPUT_TENSOR;
}

/* Returns true if a node makes gradients that nothing reads, and otherwise only temporary tensors. */
static bool makes_unread_alone(const struct gradients *gradients, const struct data_flow *flow, uint32_t node)
{
	bool makes = false;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		makes |= gradients->unread[value];
		if (!gradients->unread[value] && !data_flow_is_scratch(flow, node, value))
			return false;
	}
	return makes;
}

/* Returns true if a node of the backward pass only passes a gradient on to gradients that nothing reads. */
static bool passes_on_alone(const struct gradients *gradients, const struct data_flow *flow, uint32_t node)
{
	return (flow->memory.rows.context[node] & MEMORY_IN_BACKWARD) && makes_unread_alone(gradients, flow, node);
}

/* Returns true if a node of the backward pass leaves nothing in memory, so that its result is another view of the gradient it gets: that of
 * a transposed or reshaped tensor. */
static bool only_views(const struct data_flow *flow, uint32_t node)
{
	if (!(flow->memory.rows.context[node] & MEMORY_IN_BACKWARD))
		return false;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++)
		if (flow->uses.items[flow->nodes[node].first + i].kind == DATA_UPDATES)
			return false;
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++)
		if (!data_flow_is_scratch(flow, node, flow->made.items[flow->nodes[node].first_made + i]))
			return false;
	return true;
}

/* Returns true if optimizers could have read a gradient that still exists at the end. */
static bool was_left_out(const struct gradients *gradients, const struct data_flow *flow, uint32_t value)
{
	uint32_t block = flow->memory.values.items[value].block;
	size_t updates = 0;

	for (size_t i = gradients->updates_ns.count;
	     i-- > 0 && gradients->updates_ns.items[i] > flow->memory.blocks.items[block].start_ns;)
		updates++;
	return !gradients->used[block] && updates >= UPDATES_MIN;
}

static void find_used(struct gradients *gradients, const struct data_flow *flow)
{
	for (size_t i = 0; i < flow->uses.count; i++) {
		const struct data_use *use = &flow->uses.items[i];

		if (use->kind >= DATA_SELECTS && !is_accumulation(flow, use->node) && !only_views(flow, use->node))
			gradients->used[flow->memory.values.items[use->value].block] = 1;
	}
}

/* What a use of a gradient means: it is not read, it leads on to gradients that nothing reads, or it is read. */
enum gradient_use { GRADIENT_LEFT, GRADIENT_LEADS_ON, GRADIENT_READ };

/* Later values have been decided already. An accumulation that creates nothing takes over a gradient unchanged. */
static enum gradient_use gradient_use_of(const struct gradients *gradients, const struct data_flow *flow, const struct data_use *use)
{
	uint32_t node = use->node;

	if (is_accumulation(flow, node))
		return use->kind < DATA_SELECTS || !flow->nodes[node].made_count || makes_unread_alone(gradients, flow, node) ? GRADIENT_LEADS_ON : GRADIENT_READ;
	if (use->kind == DATA_READS && passes_on_alone(gradients, flow, node))
		return GRADIENT_LEADS_ON;
	return use->kind < DATA_SELECTS || only_views(flow, node) ? GRADIENT_LEFT : GRADIENT_READ;
}

static bool is_unread(const struct gradients *gradients, const struct data_flow *flow, uint32_t value)
{
	const struct data_value *of = &flow->values[value];
	bool leads_on = is_accumulation(flow, of->node), ends = of->complete;

	for (uint32_t i = of->first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];
		enum gradient_use kind = gradient_use_of(gradients, flow, use);

		if (kind == GRADIENT_READ)
			return false;
		leads_on |= kind == GRADIENT_LEADS_ON;
		ends |= use->kind == DATA_OVERWRITES || use->kind == DATA_UPDATES;
	}
	return leads_on && (ends || was_left_out(gradients, flow, value));
}

/* Returns the part of a node that creates a value: the row directly below it. */
static uint32_t part_that_makes(const struct data_flow *flow, uint32_t node, uint32_t value)
{
	const uint32_t *parents = flow->memory.events->parent;
	uint32_t row = flow->memory.blocks.items[flow->memory.values.items[value].block].row;

	while (row != OPS_NONE && row != node && parents[row] != node)
		row = parents[row];
	return row == OPS_NONE ? node : row;
}

/* Returns true if the same part of the node also creates a value that is read. */
static bool makes_more(const struct gradients *gradients, const struct data_flow *flow, uint32_t node, uint32_t part)
{
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		if (!data_flow_is_scratch(flow, part, value) && !gradients->unread[value] && part_that_makes(flow, node, value) == part)
			return true;
	}
	return false;
}

/* Returns true if nodes read a gradient to compute others, as those of a network whose result another network reads. */
static bool is_passed_on(const struct gradients *gradients, const struct data_flow *flow, uint32_t value)
{
	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next)
		if (passes_on_alone(gradients, flow, flow->uses.items[i].node) && !is_accumulation(flow, flow->uses.items[i].node))
			return true;
	return false;
}

static void add_gradient(struct gradients *gradients, struct advice_result *result, uint32_t value)
{
	const struct advice *advice = result->advice;
	uint32_t node = advice->flow->values[value].node, part, forward;
	int64_t ns;

	if (!gradients->unread[value] || !advice_counts(advice, node))
		return;
	part = is_accumulation(advice->flow, node) ? node : part_that_makes(advice->flow, node, value);
	/* A part that is not an operator runs another backward pass, that of a checkpoint. */
	if (advice_is_claimed(result, part) || advice_is_claimed(result, node) ||
	    (part != node && !ops_string_starts(advice_name(advice, part), "aten::")))
		return;
	forward = advice_forward_of(advice, node);
	gradients->first_ns = advice->events->start_ns[node] < gradients->first_ns ? advice->events->start_ns[node] : gradients->first_ns;
	gradients->bytes = ops_sum(gradients->bytes, advice->flow->values[value].bytes);
	if (makes_more(gradients, advice->flow, node, part)) {
		if (is_passed_on(gradients, advice->flow, value))
			gradients->border = part;
		ns = advice_claim_share(result, part, 0.5 * advice_work_share(advice, part));
		result->claimed[part] = 1; /* claimed only once */
	} else {
		ns = advice_claim(result, part);
	}
	gradients->ns = ops_sum(gradients->ns, ns);
	/* A line of the network may also be that of another one, but not the call that leads to it. */
	if (forward == OPS_NONE)
		advice_add(result, part, ns);
	else
		advice_add_calls(result, forward, ns);
}

/* Returns the outermost call of a module around a row that does not contain another row; OPS_NONE: none. */
static uint32_t outermost_module(const struct advice *advice, uint32_t row, uint32_t other)
{
	const struct ops_events *events = advice->events;
	uint32_t found = OPS_NONE;

	for (; row != OPS_NONE && (events->end_ns[row] < events->end_ns[other] || events->start_ns[row] > events->start_ns[other]); row = events->parent[row])
		if (ops_is_module_name(advice_name(advice, row)))
			found = row;
	return found;
}

/* Adds the calls of both networks at the border, where the result of the first can be detached: it ends with the last operator before the
 * border whose gradient nothing reads. Returns whether it is known. */
static bool add_networks(const struct gradients *gradients, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	uint32_t after = advice_forward_of(advice, gradients->border), before = OPS_NONE, first, second;

	for (size_t value = 0; after != OPS_NONE && value < advice->flow->memory.values.count; value++) {
		uint32_t forward = gradients->unread[value] ? advice_forward_of(advice, advice->flow->values[value].node) : OPS_NONE;

		if (forward != OPS_NONE && forward < after && advice->step_of[forward] == advice->step_of[after] && (before == OPS_NONE || forward > before))
			before = forward;
	}
	first = before == OPS_NONE ? OPS_NONE : outermost_module(advice, before, after);
	second = first == OPS_NONE ? OPS_NONE : outermost_module(advice, after, before);
	if (second == OPS_NONE)
		return false;
	advice_add(result, first, 2 * gradients->ns); /* more than any other place has */
	advice_add(result, second, 2 * gradients->ns - gradients->ns / 16);
	return true;
}

static bool find_updates(struct gradients *gradients, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->flow->memory.rows.region[row] == row &&
		    (advice->flow->memory.rows.context[row] & MEMORY_IN_OPTIMIZER) &&
		    !OPS_ARRAY_APPEND(&gradients->updates_ns, advice->events->start_ns[row]))
			return false;
	return true;
}

/* Beginning of the advice if gradients are passed on to a network that has none of them read. */
static const char border[] = "If the result of another network is only an input here, pass x.detach().";
static const char border_of_network[] = "The line named first calls a network whose result is only an input of the one that the second calls: pass "
					"result.detach() to it, or make the result within torch.no_grad().";

static const char *const makes_optimizer[] = {"*: Optimizer.__init__", NULL};

/* Returns the call of the program that made the last optimizer before a time; OPS_NONE: unknown. */
static void list_last_optimizer(struct advice_result *result, int64_t time_ns)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count && advice->events->start_ns[row] < time_ns; row++)
		if (result->which[advice->events->name[row]] && advice->site[row] != OPS_NONE) {
			result->also[0] = row;
			result->also_count = 1;
		}
}

static bool rule_unread_find_gradients(const struct advice *advice, struct advice_result *result)
{
	const struct data_flow *flow = advice->flow;
	size_t count = flow->memory.values.count;
	struct gradients gradients = {.unread = ops_alloc_zeroed(count + 1, 1),
	                              .used = ops_alloc_zeroed(flow->memory.blocks.count + 1, 1), .border = OPS_NONE, .first_ns = INT64_MAX};
	double gain_ns;
	bool done = gradients.unread && gradients.used && find_updates(&gradients, advice);

	if (done)
		find_used(&gradients, flow);
	/* Without an optimizer nothing reads gradients; they may be used after the recording. */
	for (size_t value = count; done && gradients.updates_ns.count && value-- > 0;) {
		uint32_t node = flow->values[value].node;

		if (node != OPS_NONE && (flow->memory.rows.context[node] & MEMORY_IN_BACKWARD))
			gradients.unread[value] = is_unread(&gradients, flow, (uint32_t)value);
	}
	for (uint32_t value = 0; done && value < count; value++)
		add_gradient(&gradients, result, value);
	gain_ns = (double)gradients.ns;
	if (gradients.border != OPS_NONE) {
		advice_add(result, gradients.border, gradients.ns / 16);
		result->detail = add_networks(&gradients, result) ? border_of_network : border;
	} else {
		/* Parameters that the optimizer does not have are to be frozen before it is made. */
		list_last_optimizer(result, gradients.first_ns);
	}
	done = done && advice_report_gain(result, gain_ns, "Each step computes %s of gradients that nothing reads. That takes %s.",
	                                  advice_bytes(advice_per_step(advice, (uint64_t)gradients.bytes)).text,
	                                  advice_spent(advice, gain_ns).text);
	OPS_ARRAY_RELEASE(&gradients.updates_ns);
	ops_free(gradients.unread);
	ops_free(gradients.used);
	return done;
}

const struct advice_rule advice_rule_unread_gradient = {
	.id = "unread-gradient",
	.title = "Gradients are computed that nothing reads",
	.condition = "Optimizers run, and a gradient is accumulated, and released, set to zero, or left by two steps of an optimizer, before an operator "
		     "reads it. The line that makes the last optimizer before comes second, unless gradients are passed on to another network. Then the calls of both networks come first.",
	.gain = "the operators that compute and accumulate such gradients, or pass them on to such; half of one that also computes a gradient that is read",
	.explanation = "Parameters that no optimizer updates get gradients: of a frozen network in a loss, of a discriminator "
		       "while the generator is trained, or of a generator whose result is not detached. So does data that requires gradients.",
	.advice = "Run a network whose output is only a target, such as a teacher, within torch.no_grad(). Otherwise call requires_grad_(False) on its "
		  "parameters for this pass: gradients for its input are computed all the same. Leave out requires_grad_() of data whose gradient is not "
		  "used. To check: less time in the backward pass.",
	.code = "features.requires_grad_(False)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_MODE,
	.names = makes_optimizer,
	.severity_max = ADVICE_MEDIUM, /* adversarial networks are often written like this */
	.confidence = ADVICE_LIKELY,
	.find = rule_unread_find_gradients,
};
