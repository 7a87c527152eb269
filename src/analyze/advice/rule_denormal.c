/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators that take many times longer per element than others of the trace, because of numbers too small
 * for the fast path of the processor (denormals).
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"

/* Simple arithmetic on contiguous float32 in memory takes well below a nanosecond per element on one thread. Denormals
 * take a hundred cycles and more. Slow memory and busy cores are in between. */
#define ELEMENT_NS_MIN 4.0
/* And at least this multiple of the fastest operator of the trace: if all are slow, the machine is slow. */
#define RATIO_MIN 8.0
#define ELEMENTS_MIN 8192
/* Waking the threads of an operator takes some ten microseconds, more on a busy machine. */
#define WAKE_NS 100000
/* A result may be new memory, whose pages are cleared when they are first written. This takes up to this multiple of
 * the time per page measured at the start of the recording. */
#define FAULTS_MAX 2
#define PAGE_BYTES 4096

/* Without steps it is unknown whether threads waited for a processor. */
static bool may_starve(const struct advice *advice)
{
	return advice_threads_starve(advice) || (!advice->machine.has_waits && advice->machine.threads > 1);
}

/* Computes the time per element of an operator, and the part of it that only the values can explain. Returns false if
 * they cannot. */
static bool element_ns(const struct advice *advice, uint32_t row, double *ret_each_ns, double *ret_unexplained_ns)
{
	struct ops_string name = advice_name(advice, row);
	struct ops_input input, other;
	double elements, ns = (double)advice_ns(advice, row), explained_ns = WAKE_NS;

	/* Denormals do not slow devices down. If a tensor is contiguous, only its values can make the operator slow. */
	if (advice->device_ns[row] || !advice_input(advice, row, 0, &input) || input.dtype < 5 || input.dtype > 7 ||
	    !advice_is_contiguous(&input))
		return false;
	if (advice_input(advice, row, 1, &other) && other.tag == OPS_INPUT_TENSOR &&
	    (!advice_is_contiguous(&other) || advice_input_elements(&other) > advice_input_elements(&input)))
		return false;
	elements = (double)advice_input_elements(&input);
	if (elements < ELEMENTS_MIN || (elements >= ADVICE_GRAIN_ELEMENTS && may_starve(advice)))
		return false;
	if (name.size && name.bytes[name.size - 1] != '_')
		explained_ns += FAULTS_MAX * advice->machine.page_ns * elements * (double)advice_dtype_bytes(input.dtype) / PAGE_BYTES;
	*ret_each_ns = ns / elements;
	*ret_unexplained_ns = ns > explained_ns ? (ns - explained_ns) / elements : 0;
	return ns > 0;
}

/* Minimum number of calls at a place, all of which must be slow. A single call may be slow because another program has
 * the core. */
#define CALLS_MIN 3

struct speed {
	double quickest_ns; /* unexplained time per element */
	uint64_t calls;
};

static bool rule_denormal_measure(const struct advice *advice, const uint8_t *which, struct speed *places,
                                  double *ret_quickest_ns)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct speed *place = &places[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
		double each_ns, unexplained_ns;

		if (!which[advice->events->name[row]] || !advice_counts(advice, row) ||
		    !element_ns(advice, row, &each_ns, &unexplained_ns))
			continue;
		if (!place->calls++ || unexplained_ns < place->quickest_ns)
			place->quickest_ns = unexplained_ns;
		*ret_quickest_ns = each_ns < *ret_quickest_ns ? each_ns : *ret_quickest_ns;
	}
	return true;
}

/* --- calls with equal tensors ---------------------------------------------------------------------------------------- */

/* A state that decays makes the same calls of each step slow, while the machine delays other calls in each step. */
#define SERIES_STEPS_MIN 3    /* minimum number of steps that a call is compared in */
#define SERIES_CALLS_MIN 32   /* minimum number of calls with equal tensors in a step */
#define SERIES_SLOW_MIN 8     /* minimum number of slow ones, in each of the steps */
#define SERIES_RATIO_MIN 9.0
#define SERIES_EXCESS_NS 10000

/* The calls at the same position in all steps, among those of an operator at a line with equal tensors. */
struct series_position {
	uint32_t series;
	uint32_t number; /* within its series */
	uint32_t steps;
	int64_t least_ns;
};

struct series_speed {
	double usual_ns; /* of a tenth of the positions at most */
	uint32_t slow;
};

struct series_search {
	struct ops_map kinds, series, turns, positions;
	OPS_ARRAY(uint32_t) calls;                 /* by series and step: calls so far */
	OPS_ARRAY(struct series_position) at;
	OPS_ARRAY(struct series_speed) speeds;     /* by series */
	uint32_t *position; /* by row; OPS_NONE: none */
	uint8_t *is_part;   /* by row: an operator of a series contains it */
	uint8_t *wraps;     /* by row: an operator of the same name begins in it. Within vmap its tensors lack the dimension of the batch */
	uint64_t slow;
	double usual_ns, slow_ns; /* of the series with most time; sums */
};

static bool is_in_series(const struct advice *advice, const uint8_t *which, uint32_t row)
{
	return (which[advice->events->name[row]] || advice_kind(advice, row) == OPERATOR_PRODUCT || advice_kind(advice, row) == OPERATOR_CONVOLUTION) &&
	       advice_is_operator(advice, row) && advice_counts(advice, row) && advice->site[row] != OPS_NONE && !advice->device_ns[row] &&
	       !(advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) && advice->events->inputs[row] != OPS_NONE;
}

static bool add_to_series(struct series_search *search, const struct advice *advice, uint32_t row)
{
	uint32_t kind = ops_map_number(&search->kinds, (uint64_t)advice->site[row] << 32 | advice->events->name[row]), series, turn, *calls;
	struct series_position *position;

	series = kind == OPS_NONE ? OPS_NONE : ops_map_number(&search->series, (uint64_t)kind << 32 | advice->events->inputs[row]);
	turn = series == OPS_NONE ? OPS_NONE : ops_map_number(&search->turns, (uint64_t)series << 32 | advice->step_of[row]);
	calls = turn == OPS_NONE ? NULL : OPS_ARRAY_AT(&search->calls, turn);
	search->position[row] = calls ? ops_map_number(&search->positions, (uint64_t)series << 32 | (*calls)++) : OPS_NONE;
	position = search->position[row] == OPS_NONE ? NULL : OPS_ARRAY_AT(&search->at, search->position[row]);
	if (!position || !OPS_ARRAY_AT(&search->speeds, series))
		return false;
	position->least_ns = position->steps++ && position->least_ns < advice_ns(advice, row) ? position->least_ns : advice_ns(advice, row);
	position->series = series;
	position->number = *calls - 1;
	return true;
}

static bool is_slow_position(const struct series_search *search, const struct series_position *position)
{
	double usual_ns = search->speeds.items[position->series].usual_ns, ns = (double)position->least_ns;

	return position->steps >= SERIES_STEPS_MIN && usual_ns > 0 && ns >= SERIES_RATIO_MIN * usual_ns && ns >= usual_ns + SERIES_EXCESS_NS;
}

/* Returns whether the position before one is slow as well. Numbers stay denormal for a while; caches and layouts make single calls slow. */
static bool follows_slow_position(const struct series_search *search, const struct series_position *position)
{
	uint32_t before = position->number ? ops_map_find(&search->positions, (uint64_t)position->series << 32 | (position->number - 1)) : OPS_NONE;

	return before != OPS_NONE && is_slow_position(search, position) && is_slow_position(search, &search->at.items[before]);
}

/* Finds what is usual for each series, and how many of its positions are slow. Returns false if out of memory. */
static bool find_speeds(struct series_search *search)
{
	double *sorted = ops_alloc_zeroed(search->at.count + 1, sizeof(*sorted));
	bool done = sorted != NULL;

	/* The positions of a series are not next to each other, but series with many of them are few. */
	for (size_t i = 0; done && i < search->speeds.count; i++) {
		size_t count = 0;

		for (size_t k = 0; search->speeds.items[i].slow >= SERIES_CALLS_MIN && k < search->at.count; k++)
			if (search->at.items[k].series == i && search->at.items[k].steps >= SERIES_STEPS_MIN)
				sorted[count++] = (double)search->at.items[k].least_ns;
		if (count >= SERIES_CALLS_MIN) {
			ops_median(sorted, count);
			search->speeds.items[i].usual_ns = sorted[count / 10];
		}
		search->speeds.items[i].slow = 0;
	}
	for (size_t k = 0; done && k < search->at.count; k++)
		search->speeds.items[search->at.items[k].series].slow += follows_slow_position(search, &search->at.items[k]);
	ops_free(sorted);
	return done;
}

static void add_series(struct series_search *search, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	const struct series_position *position = search->position[row] == OPS_NONE ? NULL : &search->at.items[search->position[row]];
	const struct series_speed *speed = position ? &search->speeds.items[position->series] : NULL;

	if (!position || !is_slow_position(search, position) || speed->slow < SERIES_SLOW_MIN || advice_is_claimed(result, row) ||
	    advice->claimed_ns[row] || (double)advice_ns(advice, row) <= speed->usual_ns)
		return;
	result->claimed[row] = 1;
	search->slow++;
	search->usual_ns += speed->usual_ns;
	search->slow_ns += (double)advice_ns(advice, row);
	advice_add_share(result, row, 1 - speed->usual_ns / (double)advice_ns(advice, row));
}

static void release_series(struct series_search *search)
{
	ops_map_release(&search->kinds);
	ops_map_release(&search->series);
	ops_map_release(&search->turns);
	ops_map_release(&search->positions);
	OPS_ARRAY_RELEASE(&search->calls);
	OPS_ARRAY_RELEASE(&search->at);
	OPS_ARRAY_RELEASE(&search->speeds);
	ops_free(search->position);
	ops_free(search->is_part);
	ops_free(search->wraps);
}

/* The ends of nested calls within vmap are not in the order of their parents, so beginnings decide. */
static bool mark_wrapping(struct series_search *search, const struct advice *advice)
{
	const struct ops_events *events = advice->events;
	uint32_t *last = ops_alloc_none(ops_trace_string_count(advice->trace) + 1); /* by name */
	bool done;

	for (uint32_t row = 0; last && row < events->count; row++) {
		uint32_t before = last[events->name[row]];

		if (!advice_is_operator(advice, row))
			continue;
		if (before != OPS_NONE && events->track[before] == events->track[row] && events->start_ns[row] < events->end_ns[before])
			search->wraps[before] = 1;
		last[events->name[row]] = row;
	}
	done = last != NULL;
	ops_free(last);
	return done;
}

static bool search_series(struct series_search *search, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	size_t count = advice->events->count + 1;
	bool done;

	search->position = ops_alloc_none(count);
	search->is_part = ops_alloc_zeroed(count, 1);
	search->wraps = ops_alloc_zeroed(count, 1);
	done = search->position && search->is_part && search->wraps;
	if (done && may_starve(advice))
		return true;
	done = done && mark_wrapping(search, advice);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];

		search->is_part[row] = parent != OPS_NONE && (search->is_part[parent] || search->position[parent] != OPS_NONE);
		if (!search->is_part[row] && !search->wraps[row] && is_in_series(advice, result->which, row))
			done = add_to_series(search, advice, row);
	}
	for (size_t i = 0; done && i < search->at.count; i++)
		search->speeds.items[search->at.items[i].series].slow += search->at.items[i].steps >= SERIES_STEPS_MIN;
	done = done && find_speeds(search);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_series(search, result, row);
	return done;
}

/* --- rule ----------------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"aten::mul", "aten::mul_", "aten::add", "aten::add_", "aten::sub", "aten::sub_",
                                       "aten::div", "aten::div_", "aten::addcmul_", "aten::lerp_", "aten::relu", NULL};

static bool rule_denormal_find(const struct advice *advice, struct advice_result *result)
{
	struct speed *places = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*places));
	struct series_search search = {.slow = 0};
	double quickest_ns = INFINITY;
	bool done = places && rule_denormal_measure(advice, result->which, places, &quickest_ns);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		const struct speed *place = &places[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
		double each_ns, unexplained_ns;

		if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) || advice->claimed_ns[row] ||
		    place->calls < CALLS_MIN || place->quickest_ns < ELEMENT_NS_MIN || place->quickest_ns < RATIO_MIN * quickest_ns)
			continue;
		if (element_ns(advice, row, &each_ns, &unexplained_ns) && each_ns > quickest_ns)
			advice_add_share(result, row, 1 - quickest_ns / each_ns);
	}
	done = done && search_series(&search, result);
	if (done && search.slow)
		done = advice_report_costs(result, "Each step has %s, the same in all steps, of %s on average, while other calls of the same operators with "
		                           "equal tensors at these lines take %s.", advice_counted(advice, search.slow, "call", "calls").text,
		                           advice_time(search.slow_ns / (double)search.slow / 1e6).text, advice_time(search.usual_ns / (double)search.slow / 1e6).text);
	else
		done = done && advice_report_costs(result, "%s more than %s for each "
		                                           "element; the fastest of the trace takes %s.",
		                                   advice_events(result, "elementwise operator in each step takes", "elementwise operators in each step take").text,
		                                   advice_time(ELEMENT_NS_MIN / 1e6).text,
		                                   advice_time(quickest_ns / 1e6).text);
	release_series(&search);
	ops_free(places);
	return done;
}

const struct advice_rule advice_rule_denormal = {
	.id = "denormals",
	.title = "Arithmetic on denormal numbers",
	.condition = "Elementwise operators on contiguous tensors take more than 4 ns for each element, in each of three or "
		     "more calls, beyond 0.1 ms for a call and what new memory takes, and eight times as long as others of the trace. "
		     "Operators that several threads share do not count if the steps waited for a CPU for more than 10 % of "
		     "their time, or the recording has no steps. Or of 32 or more calls of an elementwise operator, a matrix product or a convolution with equal tensors at "
		     "a line, eight or more in a row take nine times as long as others, the same ones in all of three or more steps. Values are not recorded, so this may have another reason.",
	.gain = "the difference to the fastest such operator of the trace, or to other calls with equal tensors",
	.explanation = "Numbers below 1.2e-38 (float32) leave the fast path of the CPU and take some hundred cycles "
		       "each. They come from decaying states, vanishing gradients, and weights after long decay.",
	.advice = "Call torch.set_flush_denormal(True) in each thread at the start, or clamp decaying values. To check: the "
		  "time of the operator for each element.",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_NUMBERS,
	.confidence = ADVICE_UNSURE,
	.names = names,
	.find = rule_denormal_find,
};
