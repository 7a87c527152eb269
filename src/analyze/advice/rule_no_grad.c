/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs for a backward pass that never runs: evaluation and serving without no_grad, the output of a teacher,
 * validation during training. While gradients are enabled, an operator records the counter of autograd nodes. Each new
 * node increments it, and a backward pass runs nodes by their number.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "analyze/format.h"
#include "base/alloc.h"

/* Minimum number of nodes per step. Fewer come from a single sum, not from a model. */
#define NODES_MIN 4.0

struct graphs {
	uint32_t *backward_of; /* by steady step: number of nodes that ran in a backward pass */
	uint32_t *made_of;     /* by steady step: number of nodes created where none ran */
	uint8_t *kept_in;      /* by step: its graph is kept, which rule_growth.c reports */
	bool trains;           /* the trace has a backward pass */
	int64_t *view_ns;      /* time per view */
	size_t view_count;
	double node_ns;
	uint64_t nodes;        /* nodes created in vain, and their time */
	double ns;
};

/* Without views: the time of creating a node relative to that of any small operator. */
#define NODE_OF_OPERATOR 0.3

static bool rule_no_grad_init(struct graphs *graphs, const struct advice *advice)
{
	size_t steps = advice->views->steps.count + 1;

	graphs->backward_of = ops_alloc_zeroed(steps, sizeof(*graphs->backward_of));
	graphs->made_of = ops_alloc_zeroed(steps, sizeof(*graphs->made_of));
	graphs->kept_in = ops_alloc_zeroed(steps, sizeof(*graphs->kept_in));
	graphs->view_ns = ops_realloc_array(NULL, advice->events->count + 1, sizeof(*graphs->view_ns));
	return graphs->backward_of && graphs->made_of && graphs->kept_in && graphs->view_ns &&
	       advice_find_kept(advice, graphs->kept_in);
}

/* Returns the memory that only the graph uses, in steady steps without a backward pass: the peak of a step except for
 * an input and an output of its largest operator. Without a graph the same few blocks are reused. */
static double kept_bytes(const struct graphs *graphs, const struct advice *advice)
{
	size_t count, at = 0, steps = advice->views->steps.count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	int64_t now = 0, most = 0, largest = 0;
	double bytes = 0;

	for (size_t i = 0; i <= count && at < steps; i++) {
		while (at < steps && (i == count || records[i].time_ns >= advice->views->steps.items[at].host_end_ns)) {
			if (advice->steady[at] && graphs->made_of[at] && most > 2 * largest)
				bytes += (double)(most - 2 * largest);
			at++;
			now = most = largest = 0;
		}
		if (i == count || at == steps || records[i].device_type != 0 || records[i].out_of_memory ||
		    records[i].time_ns < advice->views->steps.items[at].host_start_ns)
			continue;
		now = ops_sum(now, records[i].bytes);
		most = now > most ? now : most;
		largest = records[i].bytes > largest ? records[i].bytes : largest;
	}
	return bytes;
}

static void rule_no_grad_count(struct graphs *graphs, const struct advice *advice, const uint8_t *views)
{
	int64_t quickest_ns = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		graphs->trains |= (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		if (!advice_counts(advice, row) || !advice_is_operator(advice, row))
			continue;
		graphs->backward_of[advice->step_of[row]] += (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		/* A backward pass creates views without nodes. */
		if (views[advice->events->name[row]] && advice->events->sequence_nr[row] >= 0 &&
		    !(advice->zone[row] & ADVICE_IN_BACKWARD))
			graphs->view_ns[graphs->view_count++] = advice_ns(advice, row);
		if (!(advice->zone[row] & ADVICE_IN_OPERATOR) && (!quickest_ns || advice_ns(advice, row) < quickest_ns))
			quickest_ns = advice_ns(advice, row);
	}
	graphs->node_ns = graphs->view_count ? advice_creation_ns(graphs->view_ns, graphs->view_count) : NODE_OF_OPERATOR * (double)quickest_ns;
}

/* Adds nodes at the outermost operators after which the counter is higher. In steps with a backward pass, nodes that
 * were run in part do not count. */
static void rule_no_grad_add_nodes(struct graphs *graphs, const struct advice *advice, struct advice_result *result)
{
	uint32_t last = OPS_NONE;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t nodes;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER | ADVICE_IN_LOADER)) ||
		    graphs->kept_in[advice->step_of[row]])
			continue;
		if (last != OPS_NONE && advice->backward_ns[last] == 0 && advice->events->track[last] == advice->events->track[row] &&
		    advice->events->sequence_nr[last] >= 0 &&
		    (nodes = ops_difference(advice->events->sequence_nr[row], advice->events->sequence_nr[last])) > 0 && nodes < 64) {
			advice_add_calls(result, last, (int64_t)((double)nodes * graphs->node_ns));
			graphs->ns += (double)nodes * graphs->node_ns;
			graphs->nodes += (uint64_t)nodes;
			if (!graphs->backward_of[advice->step_of[last]])
				graphs->made_of[advice->step_of[last]] += (uint32_t)nodes;
		}
		last = row;
	}
}

static const char *const names[] = {"aten::t", "aten::view", "aten::permute", "aten::unsqueeze", "aten::select", NULL};

static bool rule_no_grad_find(const struct advice *advice, struct advice_result *result)
{
	struct graphs graphs = {0};
	double faults_ns = 0, bytes;
	char each[96] = "", faults[160] = "";
	bool done = rule_no_grad_init(&graphs, advice);

	if (done) {
		rule_no_grad_count(&graphs, advice, result->which);
		rule_no_grad_add_nodes(&graphs, advice, result);
		if (graphs.node_ns > 0)
			snprintf(each, sizeof(each), ", each in %s (estimated from views in this trace)", advice_time(graphs.node_ns / 1e6).text);
		bytes = kept_bytes(&graphs, advice);
		faults_ns = bytes * advice->fault_ns;
		if (faults_ns > 0)
			snprintf(faults, sizeof(faults), "; page faults on the memory they keep take %s (%s)",
			         advice_time(advice_step_ms(advice, faults_ns)).text, advice_bytes(1e6 * advice_step_ms(advice, bytes)).text);
	}
	/* The graph costs more memory than time, so it is reported regardless of the gain, unless the backward pass of
	 * these steps may only be missing in the trace. */
	result->always = !graphs.trains && !advice->incomplete;
	result->severity = ADVICE_MEDIUM;
	if (done && advice_per_step(advice, graphs.nodes) >= NODES_MIN)
		done = advice_report_gain(result, graphs.ns + faults_ns,
		                          "Each step creates %s of a graph that no backward pass runs%s%s. The graph also keeps memory.",
		                          advice_counted(advice, graphs.nodes, "node", "nodes").text, each, faults);
	ops_free(graphs.backward_of);
	ops_free(graphs.made_of);
	ops_free(graphs.kept_in);
	ops_free(graphs.view_ns);
	return done;
}

const struct advice_rule advice_rule_no_grad = {
	.id = "autograd-unused",
	.title = "Autograd records a graph that is not used",
	.condition = "Steps create four or more nodes of the graph that no backward pass runs.",
	.gain = "the time of the nodes, seven tenths of a view each, and page faults on their memory in steps without a "
		"backward pass",
	.explanation = "With gradients enabled, each operator creates a node and keeps its inputs until the result is freed. "
		       "Memory then holds all activations of the pass.",
	.advice = "Run evaluation and serving within `with torch.inference_mode():` or torch.no_grad(). To check: the peak of "
		  "memory, and operators without sequence numbers.",
	.code = "with torch.inference_mode():\n"
		"    out = model(x)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc",
	.needs = ADVICE_NEEDS_OPERATORS,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_GRAPH,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_no_grad_find,
};
