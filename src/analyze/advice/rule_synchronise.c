/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of tensors that Python reads within steps: .item(), .tolist(), bool(tensor), nonzero, printing a tensor. With
 * a device, each read waits until all launched work has finished; on the CPU it costs the call.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Statistics of a tensor, which a line computes only to read their value. */
static const char *const figures[] = {
	"aten::mean", "aten::std", "aten::var", "aten::norm", "aten::linalg_vector_norm", "aten::sum", "aten::abs", "aten::square",
	"aten::max", "aten::min", "aten::amax", "aten::amin", "aten::median", "aten::any", "aten::all", "aten::isnan", "aten::isinf",
	"aten::isfinite", "aten::eq", "aten::ne", "aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::to", NULL};

/* Maximum nesting of calls between a line and its operator. */
#define WRAPPERS_MAX 6

/* Returns the row that the function of a line calls for an operator, through wrappers of torch only: Tensor.norm,
 * torch.norm. Returns OPS_NONE for calls of a module or another package. */
static uint32_t called_for(const struct advice *advice, uint32_t row)
{
	static const char *const wrappers[] = {"<built-in *", "*torch/functional.py(*", "*torch/_tensor.py(*", NULL};
	uint32_t function = advice->events->name[advice->sites.items[advice->site[row]].frame];

	for (int i = 0; i < WRAPPERS_MAX; i++) {
		uint32_t parent = advice->events->parent[row];

		if (parent == OPS_NONE || advice->events->name[parent] == function)
			return parent == OPS_NONE ? OPS_NONE : row;
		if (!advice_text_like(advice_name(advice, parent), wrappers))
			return OPS_NONE;
		row = parent;
	}
	return OPS_NONE;
}

/* Returns true if a function of the program that the backward pass calls is around a row. */
static bool is_in_hook(const struct advice *advice, uint32_t row)
{
	uint32_t caller = advice->caller[row];

	return caller != OPS_NONE && (advice->zone[caller] & ADVICE_IN_BACKWARD) && advice_own_site(advice, caller) != OPS_NONE;
}

/* Reads in the loader belong to the loader, those in the backward pass, except for hooks, to anomaly mode, those in a loop over rows to the
 * loop, and those in an operator, such as one_hot, to the operator. */
static bool belongs_elsewhere(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	if (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_ROW_LOOP))
		return true;
	return is_in_hook(advice, row) ? parent != OPS_NONE && advice_is_operator(advice, parent) && parent > advice->caller[row]
	                               : (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPERATOR)) != 0;
}

/* Adds statistics that the program computes at a line that reads values, with the Python call. Without the read they
 * are superfluous. */
static bool add_figures(struct advice_result *result)
{
	const struct advice *advice = result->advice;
	uint8_t *which = advice_names(advice, figures);

	for (uint32_t row = 0; which && row < advice->events->count; row++) {
		uint32_t site = advice->site[row], call;

		if (!which[advice->events->name[row]] || !advice_counts(advice, row) || site == OPS_NONE ||
		    !result->tally.costs[site].count || advice_is_claimed(result, row) || belongs_elsewhere(advice, row))
			continue;
		call = called_for(advice, row);
		if (call == OPS_NONE || advice_is_claimed(result, call))
			continue;
		advice_add(result, call, advice_left_ns(advice, call));
		advice_claim(result, call);
	}
	ops_free(which);
	return which != NULL;
}

/* Operators that only prepare such a value, as long as nothing else reads their results. Layers and products are not in the list: the value
 * is then the result of a model. */
static const char *const preparing[] = {
	"aten::mean", "aten::std", "aten::var", "aten::norm", "aten::linalg_vector_norm", "aten::linalg_norm", "aten::sum", "aten::nansum", "aten::prod",
	"aten::abs", "aten::square", "aten::sqrt", "aten::pow", "aten::max", "aten::min", "aten::amax", "aten::amin", "aten::median", "aten::any", "aten::all",
	"aten::isnan", "aten::isinf", "aten::isfinite", "aten::isclose", "aten::allclose", "aten::eq", "aten::ne", "aten::gt", "aten::lt", "aten::ge",
	"aten::le", "aten::logical_*", "aten::to", "aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::neg", "aten::log", "aten::exp",
	"aten::clamp", "aten::count_nonzero", "aten::quantile", "aten::histc", "aten::bincount", "aten::maximum", "aten::minimum", "aten::stack",
	"aten::cat", NULL};

/* Adds operators on other lines whose results are only read to get a value, by the data flow. */
static bool add_preparation(struct advice_result *result)
{
	const struct advice *advice = result->advice;
	uint8_t *which = advice_names(advice, preparing);
	struct advice_vain vain = {0};
	uint64_t events = result->tally.events; /* preparations are not reads */
	bool done = which && advice_vain_init(&vain, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];

		result->claimed[row] |= parent != OPS_NONE && result->claimed[parent];
		if (result->claimed[row] && advice->flow->memory.rows.node[row] == row)
			advice_vain_add_reads(&vain, advice, row);
	}
	if (done)
		advice_vain_follow(&vain, advice, which);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		if (vain.nodes[row] != ADVICE_IN_VAIN || !which[advice->events->name[row]] || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_BACKWARD | ADVICE_IN_ROW_LOOP)))
			continue;
		advice_add(result, row, advice_left_ns(advice, row));
		advice_claim(result, row);
	}
	result->tally.events = events;
	advice_vain_release(&vain);
	ops_free(which);
	return done;
}

/* A function of the program whose operators are all for values that it reads, and what these cost. */
struct reader {
	int64_t read_ns, operators_ns;
	uint32_t site; /* of a read */
};

/* Minimum share of the operators in such a function, by time, that belong to reads. */
#define READER_OPERATORS_MIN 0.98

/* Adds the rest of a function that only reads values: iterating over parameters, formatting, storing. A function that
 * mostly does something else would not disappear with the reads. */
static void add_reader(struct advice_result *result, uint32_t row, const struct reader *reader)
{
	const struct advice *advice = result->advice;
	int64_t rest_ns = ops_difference(advice_left_ns(advice, row), reader->read_ns);
	uint64_t events = result->tally.events;

	if (rest_ns <= 0 || rest_ns > reader->read_ns || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
	    (double)reader->operators_ns < READER_OPERATORS_MIN * (double)advice->operator_ns[row] ||
	    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER | ADVICE_IN_BACKWARD | ADVICE_IN_ROW_LOOP)))
		return;
	advice_claim_rest(result, row);
	advice_add_at(result, reader->site, row, rest_ns);
	result->tally.events = events; /* it is not a read */
}

static bool add_readers(struct advice_result *result)
{
	const struct advice *advice = result->advice;
	struct reader *readers = ops_alloc_zeroed(advice->events->count + 1, sizeof(*readers));

	for (size_t i = 0; readers && i < result->claims.count; i++) {
		uint32_t row = result->claims.items[i].row, function = advice_function_around(advice, row);
		struct reader *reader = &readers[function == OPS_NONE ? advice->events->count : function];

		reader->read_ns = ops_sum(reader->read_ns, result->claims.items[i].ns);
		reader->operators_ns = ops_sum(reader->operators_ns, advice_is_operator(advice, row) ? advice_ns(advice, row) : advice->operator_ns[row]);
		reader->site = advice->site[row];
	}
	for (uint32_t row = 0; readers && row < advice->events->count; row++)
		if (readers[row].read_ns && readers[row].site != OPS_NONE)
			add_reader(result, row, &readers[row]);
	ops_free(readers);
	return readers != NULL;
}

static const char *const names[] = {
	"*: Tensor.__repr__", "*: Tensor.__format__", "*: Tensor.tolist", "<built-in method item of Tensor>",
	"<built-in method tolist of Tensor>", "<built-in method item of Parameter>", "aten::item", "aten::is_nonzero",
	"aten::_local_scalar_dense", "<built-in method cpu of Tensor>", "<built-in method numpy of Tensor>",
	"aten::equal", NULL};

/* The first two names. */
#define FORMATS_MAX 2

static bool find_host(struct advice_result *result)
{
	const struct advice *advice = result->advice;
	int64_t formats_ns = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint8_t which = result->which[advice->events->name[row]];

		if (advice_add_outermost(result, row, which && !belongs_elsewhere(advice, row), 0) && which <= FORMATS_MAX)
			formats_ns = ops_sum(formats_ns, advice_left_ns(advice, row));
	}
	if (formats_ns > result->tally.ns / 2)
		result->detail = "Most of that is for formatting tensors as text. An f-string does so even if a logger drops the message: pass the tensor as an "
				 "argument (log.debug(\"%s\", x)), or ask log.isEnabledFor() first. ";
	return add_figures(result) && (!result->advice->flow || !result->tally.events || add_preparation(result)) && add_readers(result) &&
	       advice_report_costs(result, "Each step reads values of tensors, or computes statistics for that on the "
	                                   "same line, in %s. With operators whose results nothing else reads, that takes %s.",
	                           advice_events(result, "call", "calls").text, advice_cost(result).text);
}

/* Formats the stack of the most expensive call, innermost first: "cudaStreamSynchronize ← aten::_local_scalar_dense ←
 * aten::item". */
static void describe_stack(const struct advice *advice, const struct advice_tally *tally, char *text, size_t size)
{
	const struct advice_cost *most = &tally->costs[0];
	size_t used = 0;
	uint32_t row;

	for (size_t i = 0; i < tally->count; i++)
		most = tally->costs[i].ns > most->ns ? &tally->costs[i] : most;
	text[0] = '\0';
	for (row = most->row; row != OPS_NONE && used < size; row = advice->events->parent[row]) {
		struct ops_string name = advice_name(advice, row);

		if (advice->views->parts[row] == VIEW_OPERATOR || advice->views->parts[row] == VIEW_LAUNCH)
			used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? " ← " : "", (int)name.size, name.bytes);
	}
}

/* A replay saves as much in the last step, after which no work follows that would end the idle time. */
static bool add_end(struct advice_result *result, double gain_ns)
{
	double more_ns = gain_ns - (double)result->tally.ns, end_ns = (double)result->advice->idle.ns[ADVICE_IDLE_END];

	return more_ns <= 0 || end_ns <= 0 || advice_spread_idle(result, ADVICE_IDLE_END, more_ns < end_ns ? more_ns / end_ns : 1);
}

/* First the host waits, then the device. The idle time of the device counts, up to the length of the host's wait. */
static bool rule_synchronise_find_device(const struct advice *advice, struct advice_result *result)
{
	OPS_ARRAY(uint32_t) calls = {0};
	int64_t waits_ns = 0;
	double gain_ns;
	char stack[256];
	bool done = OPS_ARRAY_RESERVE(&calls, advice->idle.gaps.count + 1);

	for (size_t i = 0; done && i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];

		if (gap->cause != ADVICE_IDLE_SYNC || advice_idle_saved_ns(advice, gap) <= 0)
			continue;
		waits_ns = ops_sum(waits_ns, advice_host_ns(advice, gap->row));
		advice_tally_add(&result->tally, gap->row, advice_idle_saved_ns(advice, gap));
		calls.items[calls.count++] = gap->row;
	}
	gain_ns = (double)result->tally.ns;
	done = done && (!result->tally.events || (advice_spread_idle(result, ADVICE_IDLE_SYNC, 1) && advice_replay_gain(advice, ADVICE_WITHOUT, calls.items, calls.count, &gain_ns) &&
	                                         add_end(result, gain_ns)));
	OPS_ARRAY_RELEASE(&calls);
	if (!done || !result->tally.events)
		return done;
	describe_stack(advice, &result->tally, stack, sizeof(stack));
	return advice_report_gain(result, gain_ns,
	                           "%s in each step the host waits until the device is done, %s in total. "
	                           "The device is then idle for %s until it gets new work. Most time is in %s.",
	                           advice_events(result, "time", "times").text,
	                           advice_time(advice_step_ms(advice, (double)waits_ns)).text,
	                           advice_time(advice_step_ms(advice, (double)advice->idle.ns[ADVICE_IDLE_SYNC])).text, stack);
}

static bool rule_synchronise_find(const struct advice *advice, struct advice_result *result)
{
	return advice->has & ADVICE_NEEDS_DEVICE ? rule_synchronise_find_device(advice, result) : find_host(result);
}

const struct advice_rule advice_rule_synchronise = {
	.id = "synchronising-calls",
	.title = "Values of tensors are read one by one",
	.condition = "Steps call .item(), .tolist(), bool(tensor), print a tensor, or synchronize with a device (the "
		     "evidence names the stack of the most expensive call). On the CPU, statistics (means, norms, "
		     "comparisons) computed on the same line count as well, in hooks of the backward pass, too, and elementwise operators and reductions elsewhere of which nothing else reads "
		     "the result, such as a test of convergence.",
	.gain = "the time of the calls and of the operators for them, and the rest of functions that mainly read values; with a device, what a replay of the steps saves without the calls",
	.explanation = "Python gets a value only after all earlier work is done: the queue of a device runs empty, and on the "
		       "CPU each read is an extra call. Printing a tensor takes hundreds of operators.",
	.advice = "Keep statistics as tensors (total += loss.detach()) and read them every N steps. Use torch.where or masks "
		  "instead of `if tensor`. To check: the steps no longer contain these calls.",
	.code = "total += loss.detach()  # in place of total += loss.item()\n"
		"if step % 100 == 0:\n"
		"    print(total.item() / 100)",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_READS,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_synchronise_find,
};
