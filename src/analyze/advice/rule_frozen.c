/* SPDX-License-Identifier: Apache-2.0
 *
 * A frozen part of a model in training: its parameters do not change, it draws no random numbers, and no gradient flows through it. It
 * computes the same for a sample in each epoch, so that its results can be kept.
 *
 *     with torch.no_grad():
 *         features = encoder(tokens[chosen])     ◀── the same for a review whenever it is chosen
 *     loss = loss_of(probe(features), labels[chosen])
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "trace/names.h"

/* Minimum time of the operators in such a call: reading results from memory takes some microseconds. */
#define CALL_NS_MIN 100000
#define CALLS_MIN 0.5 /* in each step */

struct frozen {
	uint8_t *random;         /* by string */
	struct ops_map written;  /* storages that an operator writes to */
	struct ops_map passing;  /* storages that are allocated during steps, or later; their addresses come back */
	uint8_t *is_excluded;    /* by row: the call trains, draws random numbers, or reads parameters that change */
	uint32_t *visited;       /* by node: the call for which its inputs were followed */
	uint64_t calls;
	bool trains;             /* an operator has a backward pass */
};

static bool add_passing(struct frozen *frozen, const struct advice *advice)
{
	size_t count, steps = advice->views->steps.count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);

	for (size_t i = 0; steps && i < count; i++)
		if (records[i].bytes > 0 && records[i].time_ns >= advice->views->steps.items[0].host_start_ns && !ops_map_add(&frozen->passing, records[i].address, 1))
			return false;
	return true;
}

static bool add_written(struct frozen *frozen, const struct advice *advice)
{
	struct ops_storage storage;

	for (uint32_t row = 0; row < advice->events->count; row++)
		for (size_t i = 0; advice_counts(advice, row) && ops_event_storage(advice->trace, row, i, &storage); i++)
			if (storage.written && storage.address && !ops_map_add(&frozen->written, storage.address, 1))
				return false;
	return true;
}

static bool reads_changing_parameter(const struct frozen *frozen, const struct advice *advice, uint32_t row)
{
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++)
		if (storage.address && ops_map_find(&frozen->written, storage.address) != OPS_NONE &&
		    ops_map_find(&frozen->passing, storage.address) == OPS_NONE)
			return true;
	return false;
}

/* Number of operators between the random numbers and the call. */
#define DEPTH_MAX 64

/* Returns true if random numbers of the step are in what a node reads, other than as indices of rows. */
static bool reads_random(struct frozen *frozen, const struct advice *advice, uint32_t node, uint32_t call, int depth)
{
	const struct data_flow *flow = advice->flow;
	bool selects = advice_kind(advice, node) == OPERATOR_SELECTS;

	if (frozen->visited[node] == call || depth == DEPTH_MAX)
		return false;
	frozen->visited[node] = call;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		uint32_t maker = flow->values[use->value].node;

		if (maker == OPS_NONE || advice->step_of[maker] != advice->step_of[node] || (selects && use->kind != DATA_SELECTS))
			continue;
		if (frozen->random[advice->events->name[maker]] || reads_random(frozen, advice, maker, call, depth + 1))
			return true;
	}
	return false;
}

/* Marks the calls around what excludes them. */
static void exclude(struct frozen *frozen, const struct advice *advice, uint32_t row)
{
	for (; row != OPS_NONE && !frozen->is_excluded[row]; row = advice->events->parent[row])
		frozen->is_excluded[row] = 1;
}

static void exclude_calls(struct frozen *frozen, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (!advice_is_operator(advice, row) || !advice_counts(advice, row))
			continue;
		frozen->trains |= advice->backward_ns[row] > 0;
		if (advice->backward_ns[row] > 0 || frozen->random[advice->events->name[row]] || reads_changing_parameter(frozen, advice, row))
			exclude(frozen, advice, row);
	}
}

/* Excludes a call that gets random numbers, such as augmented samples. */
static bool is_of_random(struct frozen *frozen, const struct advice *advice, uint32_t call)
{
	for (uint32_t row = call; row < advice->events->count && advice->events->start_ns[row] < advice->events->end_ns[call]; row++)
		if (advice->events->track[row] == advice->events->track[call] && advice->flow->nodes[row].count && reads_random(frozen, advice, row, call, 0))
			return true;
	return false;
}

static bool is_frozen(struct frozen *frozen, const struct advice *advice, uint32_t row)
{
	return !frozen->is_excluded[row] && advice->operator_ns[row] >= CALL_NS_MIN && advice_counts(advice, row) && ops_is_module_name(advice_name(advice, row)) &&
	       !is_of_random(frozen, advice, row);
}

static bool rule_frozen_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const none[] = {NULL};
	struct frozen frozen = {.random = advice_random_names(advice, none), .is_excluded = ops_alloc_zeroed(advice->events->count + 1, 1),
	                        .visited = ops_alloc_none(advice->events->count + 1)};
	bool done = frozen.random && frozen.is_excluded && frozen.visited && add_passing(&frozen, advice) && add_written(&frozen, advice);

	if (done)
		exclude_calls(&frozen, advice);
	for (uint32_t row = 0; done && frozen.trains && row < advice->events->count; row++)
		frozen.calls += advice_add_outermost(result, row, is_frozen(&frozen, advice, row), ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER);
	/* Most steps have no evaluation, such as one after each epoch. */
	if (done && advice_per_step(advice, frozen.calls) < CALLS_MIN)
		result->claims.count = 0;
	else if (done)
		done = advice_report_costs(result, "%s no backward pass and no random numbers, and no step changes the parameters.",
		                           advice_counted(advice, frozen.calls, "call of a module in each training step has", "calls of modules in each training step have").text);
	ops_map_release(&frozen.written);
	ops_map_release(&frozen.passing);
	ops_free(frozen.random);
	ops_free(frozen.is_excluded);
	ops_free(frozen.visited);
	return done;
}

const struct advice_rule advice_rule_frozen = {
	.id = "frozen-part",
	.title = "A frozen part of the model runs in each step",
	.condition = "In steps with a backward pass, a call of a module has none, draws no random numbers, and gets none from the same step but as indices; no operator "
		     "writes to its parameters; and its operators take 0.1 ms or more. Whether the same samples come back is not recorded.",
	.gain = "the time of the calls",
	.explanation = "The module computes the same results from the same sample in each epoch.",
	.advice = "If the samples come back, compute these results once before training, and select them in the loop. Keep them in memory, or in a file that is mapped "
		  "(numpy.memmap). Random changes of the samples belong behind this part, or a few versions of each sample are kept. To check: the module "
		  "is not called in a step.",
	.code = "with torch.no_grad():\n"
		"    features = torch.cat([encoder(part) for part in samples.split(64)])  # once, before the loop\n"
		"loss = loss_of(head(features[chosen]), labels[chosen])",
	.link = "https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html#convnet-as-fixed-feature-extractor",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_STEPS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FUNCTIONS,
	.severity_max = ADVICE_MEDIUM,
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.find = rule_frozen_find,
};
