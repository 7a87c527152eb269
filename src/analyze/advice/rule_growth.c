/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that grows from step to step: allocations of a step that are never freed.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum bytes that a step leaves behind, in at least this number of steps out of ten. Smaller amounts are statistics
 * that are kept. */
#define BYTES_MIN (64.0 * 1024)
#define STEPS_OF_TEN 7

struct growth {
	uint32_t *rows;      /* by record */
	struct ops_map live; /* from address to record + 1; 0: freed */
	int64_t *left;       /* by step: bytes that it allocated and that are still live at the end */
	uint8_t *lives;      /* by record: whether the memory is live */
	int64_t bytes;
};

static size_t rule_growth_step_at(const struct advice *advice, int64_t time_ns, size_t *at)
{
	while (*at + 1 < advice->views->steps.count && advice->views->steps.items[*at + 1].host_start_ns <= time_ns)
		++*at;
	return time_ns >= advice->views->steps.items[*at].host_start_ns && time_ns <= advice->views->steps.items[*at].end_ns
	               ? *at : SIZE_MAX;
}

static bool find_live(struct growth *growth, const struct advice *advice)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);

	growth->rows = advice_memory_rows(advice);
	growth->left = ops_alloc_zeroed(advice->views->steps.count + 1, sizeof(*growth->left));
	growth->lives = ops_alloc_zeroed(count + 1, 1);
	if (!growth->rows || !growth->left || !growth->lives)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t *slot;

		if (records[i].out_of_memory)
			continue;
		slot = ops_map_slot(&growth->live, records[i].address, 0);
		if (!slot)
			return false;
		if (*slot)
			growth->lives[*slot - 1] = 0;
		*slot = records[i].bytes > 0 ? (uint32_t)i + 1 : 0;
		growth->lives[i] = records[i].bytes > 0;
	}
	return true;
}

/* The last step does not count, since the next one would free its memory. */
static size_t growing(struct growth *growth, const struct advice *advice)
{
	size_t count, at = 0, steps = 0;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);

	for (size_t i = 0; i < count; i++) {
		size_t step = growth->lives[i] ? rule_growth_step_at(advice, records[i].time_ns, &at) : SIZE_MAX;

		if (step == SIZE_MAX || step + 1 == advice->views->steps.count)
			growth->lives[i] = 0;
		else
			growth->left[step] = ops_sum(growth->left[step], records[i].bytes);
	}
	for (size_t i = 0; i + 1 < advice->views->steps.count; i++) {
		steps += (double)growth->left[i] >= BYTES_MIN;
		growth->bytes = ops_sum(growth->bytes, growth->left[i]);
	}
	return steps;
}

/* Finds the memory that grows. Returns 1, 0 if memory does not grow, or -1 if out of memory. */
static int find_growth(struct growth *growth, const struct advice *advice)
{
	size_t steps = advice->views->steps.count - 1;

	if (!find_live(growth, advice))
		return -1;
	return steps >= 3 && growing(growth, advice) * 10 >= steps * STEPS_OF_TEN;
}

static void rule_growth_release(struct growth *growth)
{
	ops_free(growth->rows);
	ops_free(growth->left);
	ops_free(growth->lives);
	ops_map_release(&growth->live);
}

bool advice_find_kept(const struct advice *advice, uint8_t *kept)
{
	struct growth growth = {0};
	uint32_t needs = ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STEPS;
	int grows = (advice->has & needs) == needs ? find_growth(&growth, advice) : 0;
	size_t count;

	ops_trace_memory(advice->trace, &count);
	/* Walks up to the outermost operator around a row: the one that has a node of a graph. */
	for (size_t i = 0; grows > 0 && i < count; i++)
		for (uint32_t row = growth.lives[i] ? growth.rows[i] : OPS_NONE; row != OPS_NONE && advice_is_operator(advice, row);
		     row = advice->events->parent[row])
			if (advice_counts(advice, row))
				kept[advice->step_of[row]] = 1;
	rule_growth_release(&growth);
	return grows >= 0;
}

static bool rule_growth_find(const struct advice *advice, struct advice_result *result)
{
	struct growth growth = {0};
	size_t count, steps = advice->views->steps.count - 1;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	int grows = find_growth(&growth, advice);
	bool done = grows >= 0;

	/* Places are ordered by bytes. */
	for (size_t i = 0; grows > 0 && i < count; i++)
		if (growth.lives[i] && growth.rows[i] != OPS_NONE)
			advice_add(result, growth.rows[i], records[i].bytes);
	result->always = true;
	result->severity = ADVICE_HIGH;
	if (grows > 0)
		done = advice_report_gain(result, 0, "Each step allocates %s that no later one frees, in %zu steps.",
		                          advice_bytes((double)growth.bytes / (double)steps).text, steps);
	rule_growth_release(&growth);
	return done;
}

const struct advice_rule advice_rule_growth = {
	.id = "memory-growth",
	.title = "Memory grows from step to step",
	.condition = "In seven of ten steps or more, memory that the step allocates is not freed by a later one.",
	.gain = "none in time",
	.explanation = "The program keeps tensors of earlier steps: a list of losses with their graphs, an unlimited cache, or "
		       "stored outputs.",
	.advice = "Keep numbers or detached copies: losses.append(loss.detach()). Limit caches. To check: allocated bytes at "
		  "the ends of steps.",
	.link = "https://docs.pytorch.org/docs/stable/notes/faq.html",
	.needs = ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STEPS,
	.stage = ADVICE_STAGE_GRAPH,
	.confidence = ADVICE_LIKELY,
	.find = rule_growth_find,
};
