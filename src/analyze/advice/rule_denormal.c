/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators that take many times longer per element than others of the trace, because of numbers too small
 * for the fast path of the processor (denormals).
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

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

static const char *const names[] = {"aten::mul", "aten::mul_", "aten::add", "aten::add_", "aten::sub", "aten::sub_",
                                       "aten::div", "aten::div_", "aten::addcmul_", "aten::lerp_", "aten::relu", NULL};

static bool rule_denormal_find(const struct advice *advice, struct advice_result *result)
{
	struct speed *places = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*places));
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
	done = done && advice_report_costs(result, "%s elementwise operators in each step take more than %s for each "
	                                           "element; the fastest of the trace takes %s.",
	                                   advice_events(result).text, advice_time(ELEMENT_NS_MIN / 1e6).text, advice_time(quickest_ns / 1e6).text);
	ops_free(places);
	return done;
}

const struct advice_rule advice_rule_denormal = {
	.id = "denormals",
	.title = "Arithmetic on denormal numbers",
	.condition = "Elementwise operators on contiguous tensors take more than 4 ns for each element, in each of three or "
		     "more calls, beyond 0.1 ms for a call and what new memory takes, and eight times as long as others of the trace. "
		     "Operators that several threads share do not count if the steps waited for a processor for more than 10 % of "
		     "their time, or the recording has no steps. Values are not recorded, so this may have another reason.",
	.gain = "the difference to the fastest such operator of the trace",
	.explanation = "Numbers below 1.2e-38 (float32) leave the fast path of the processor and take some hundred cycles "
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
