/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that take many times longer, for their FLOPs and bytes, than the other operators of the same trace. Comparing operators
 * of one trace leaves out how fast the machine is and how busy it was. The cause is in the arguments, or else in the values.
 *
 *     avg_pool2d of [1, 256, 1, 1440], window [1, 601]   180 times as long as sub, add and conv1d for as many bytes
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/roofline/roofline.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"

#define CALLS_PER_CALL 4     /* what calling an operator that allocates costs, in multiples of the shortest call */
#define SHARE_MIN 0.05       /* minimum share of the steps for one operator at a line */
#define RATIO_MIN 12.0       /* minimum ratio to what is usual for the operator, if nothing explains it */
#define RATIO_EXPLAINED_MIN 4.0 /* the same if its arguments do */
#define CALLS_MIN 3          /* minimum number of calls */
#define NAMES_MIN 3          /* minimum number of other operators for a comparison */
#define NAME_SHARE_MIN 0.01  /* minimum share of the steps for an operator that is compared with */
#define USUAL_WITHOUT 8.0    /* time in multiples of the lower bound that is usual if there is nothing to compare with */
#define USUAL_LEAST 2.0      /* others are not compared with operators that do better */
#define WINDOW_MIN 64        /* minimum number of elements in a window of a pooling that explains its time */
#define CHANNELS_MIN 8       /* minimum number of channels that a vector register holds */
#define LENGTH_MAX (1 << 30) /* maximum length that is factored; a file may state any */
#define FACTOR_RATIO 4.0     /* such a transform takes three longer ones, with products */
#define EXPONENT_MAX 16      /* maximum exponent that few products compute */
#define FACTOR_MIN 32        /* minimum prime factor of a length that explains the time of a Fourier transform */

/* Why an operator may be slow. */
enum slowness {
	SLOW_WITHOUT_REASON,
	SLOW_VALUES,
	SLOW_POOLING,
	SLOW_FOURIER,
	SLOW_POSITION,
	SLOW_RANDOM,
	SLOW_NORMS,
	SLOW_POWER,
	SLOW_SPREAD,
	SLOW_UNKNOWN,
	SLOW_WINDOW,
	SLOWNESS_COUNT
};

/* Kinds of operators, by names, and what they usually take, relative to elementwise operators. Operators that are not here take their
 * time by FLOPs or bytes; only their values, types or layouts make them slow. Sorts and factorizations have no useful bound. */
static const struct advice_named slow_names[] = {
	{"*conv*", SLOW_VALUES}, {"aten::mm", SLOW_VALUES}, {"aten::bmm", SLOW_VALUES}, {"aten::addmm", SLOW_VALUES},
	{"aten::baddbmm", SLOW_VALUES}, {"aten::linear", SLOW_VALUES}, {"*pool*", SLOW_POOLING}, {"aten::_fft_*", SLOW_FOURIER},
	{"aten::argmax", SLOW_POSITION}, {"aten::argmin", SLOW_POSITION}, {"aten::max", SLOW_POSITION},
	{"aten::min", SLOW_POSITION}, {"aten::normal_", SLOW_RANDOM}, {"aten::uniform_", SLOW_RANDOM},
	{"aten::bernoulli_", SLOW_RANDOM}, {"aten::random_", SLOW_RANDOM}, {"aten::exponential_", SLOW_RANDOM},
	{"aten::std*", SLOW_SPREAD}, {"aten::var*", SLOW_SPREAD}, {"aten::embedding_renorm_", SLOW_NORMS}, {"aten::pow", SLOW_POWER}, {"aten::pow_", SLOW_POWER}, {"*linalg*", SLOW_UNKNOWN}, {"*cholesky*", SLOW_UNKNOWN},
	{"*svd*", SLOW_UNKNOWN}, {"*eig*", SLOW_UNKNOWN}, {"*solve*", SLOW_UNKNOWN}, {"*inverse*", SLOW_UNKNOWN},
	{"aten::sort", SLOW_UNKNOWN}, {"aten::topk", SLOW_UNKNOWN}, {"*lstm*", SLOW_UNKNOWN}, {"*gru*", SLOW_UNKNOWN},
	{"*rnn*", SLOW_UNKNOWN}, {"aten::copy_", SLOW_UNKNOWN}, {"aten::cat", SLOW_UNKNOWN}, {NULL, 0},
};
static const double slow_usual[SLOWNESS_COUNT] = {
	[SLOW_VALUES] = 3, [SLOW_POOLING] = 2, [SLOW_FOURIER] = 4, [SLOW_POSITION] = 4, [SLOW_RANDOM] = 16,
	[SLOW_NORMS] = 4, [SLOW_POWER] = 1, [SLOW_SPREAD] = 8, [SLOW_UNKNOWN] = INFINITY, [SLOW_WINDOW] = 2,
};

/* What to do about an operator that nothing in its arguments explains, and about those that something does. */
static const char *const slow_fixes[SLOWNESS_COUNT] = {
	[SLOW_WITHOUT_REASON] = "Compare the operator with random numbers of the same shape, type and strides. If it is fast with them, the values are the reason.",
	[SLOW_VALUES] = "Compare the operator with random numbers of the same shape, type and strides. If it is fast with them, weights or inputs contain denormal "
			"numbers: call torch.set_flush_denormal(True) in each thread, or set weights below 1e-30 to zero.",
	[SLOW_POOLING] = "Store images with the channels last: model.to(memory_format=torch.channels_last), and the same for its input.",
	[SLOW_WINDOW] = "Compute a mean over a wide window from a running sum: the difference of two entries of cumsum(). Use two smaller windows one after the "
			 "other for a maximum, or a stride.",
	[SLOW_FOURIER] = "Pad or cut the signal to a length of small factors, as scipy.fft.next_fast_len() returns it, if a longer transform is valid here.",
	[SLOW_POSITION] = "Use x.max(dimension).indices, which torch computes faster, search along the last dimension of a contiguous tensor, or leave the "
			  "position out: amax() and amin().",
	[SLOW_RANDOM] = "Generate fewer random numbers: one for each row or channel, or only those that are used.",
	[SLOW_POWER] = "Multiply instead: x.square().square() for x ** 4, x.square() * x.sqrt() for x ** 2.5, x.sqrt().sqrt() for x ** 0.25. torch itself does so for the "
		       "exponents 2, 3, 0.5, -1, -2 and -0.5.",
	[SLOW_NORMS] = "Leave max_norm out of the embedding, which normalises each row that is looked up, one after the other, in each forward pass. Call "
		       "torch.renorm on the rows of a batch after the optimizer's step, or penalise the norm.",
};

/* An operator at a line. */
struct slow_group {
	uint32_t site;      /* OPS_NONE: unknown */
	uint32_t name;
	int64_t ns;
	double bound_ns;
	uint32_t longest;   /* row */
	int64_t longest_ns;
	uint32_t calls;
	double least;       /* of the fastest call: time in multiples of the lower bound */
	double ratio;       /* time relative to what is usual; 0: not slow */
	enum slowness why;  /* what in its arguments explains it */
};

struct slow {
	struct roofline roofline;
	uint8_t *kind;            /* by string: enum slowness */
	struct ops_map numbers;   /* by place and name */
	OPS_ARRAY(struct slow_group) groups;
	double usual;             /* time of operators in multiples of their lower bounds: the median over other names */
};

static uint64_t slow_key(uint32_t site, uint32_t name)
{
	return (uint64_t)site << 32 | name;
}

static bool slow_counts(const struct slow *all, const struct advice *advice, const struct roofline_call *call)
{
	return call->roof == &all->roofline.cpu && call->roof->source != ROOF_UNKNOWN && call->bound_ns > 0 &&
	       call->bound_ns >= call->roof->call_ns && advice_counts(advice, call->row) && !(advice->zone[call->row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER));
}

/* Returns the line of a call: of its forward operator if it is in the backward pass. */
static uint32_t slow_site(const struct advice *advice, uint32_t row)
{
	uint32_t forward = advice_forward_of(advice, row);

	return advice->site[forward == OPS_NONE ? row : forward];
}

static bool slow_add_call(struct slow *all, const struct advice *advice, const struct roofline_call *call)
{
	uint32_t site = slow_site(advice, call->row), number;
	int64_t ns = advice_ns(advice, call->row);
	double bound_ns = call->bound_ns + CALLS_PER_CALL * call->roof->call_ns;
	struct slow_group *group;

	number = ops_map_number(&all->numbers, slow_key(site, advice->events->name[call->row]));
	if (number == OPS_NONE)
		return false;
	if (number == all->groups.count &&
	    !OPS_ARRAY_APPEND(&all->groups, ((struct slow_group){.site = site, .name = advice->events->name[call->row], .longest = OPS_NONE})))
		return false;
	group = &all->groups.items[number];
	group->ns = ops_sum(group->ns, ns);
	group->bound_ns += bound_ns;
	group->least = group->calls++ ? fmin(group->least, (double)ns / bound_ns) : (double)ns / bound_ns;
	if (ns > group->longest_ns) {
		group->longest_ns = ns;
		group->longest = call->row;
	}
	return true;
}

/* --- comparison ----------------------------------------------------------------------------------------------------- */

/* Finds what is usual for elementwise operators in this trace: the median, over the names that take some time, of their times in
 * multiples of the lower bound. Returns false if out of memory. */
static bool slow_find_usual(struct slow *all, const struct advice *advice)
{
	size_t names = ops_trace_string_count(advice->trace), count = 0;
	double *sums = ops_alloc_zeroed(names + 1, 2 * sizeof(*sums));

	if (!sums)
		return false;
	for (size_t i = 0; i < all->groups.count; i++) {
		const struct slow_group *group = &all->groups.items[i];

		sums[2 * group->name] += (double)group->ns;
		sums[2 * group->name + 1] += group->bound_ns;
	}
	for (size_t name = 0; name < names; name++)
		if (sums[2 * name] >= NAME_SHARE_MIN * (double)advice->steps_ns && isfinite(slow_usual[all->kind[name]]))
			sums[count++] = sums[2 * name] / sums[2 * name + 1] / fmax(slow_usual[all->kind[name]], 1);
	/* The slow operator itself is among them. */
	all->usual = count > NAMES_MIN ? fmax(ops_median(sums, count), USUAL_LEAST) : USUAL_WITHOUT;
	ops_free(sums);
	return true;
}

/* --- arguments ------------------------------------------------------------------------------------------------------ */

/* Returns the product of the numbers in argument `at`; 0 if it is something else than a list of numbers. */
static int64_t argument_product(const struct advice *advice, uint32_t row, size_t at)
{
	struct ops_input list;
	int64_t product = 1;

	if (!advice_input(advice, row, at, &list) || (list.tag != OPS_INPUT_INT && list.tag != OPS_INPUT_INT_LIST) || !list.n)
		return 0;
	for (size_t i = 0; i < list.n; i++)
		product = ops_product(product, ops_input_int(&list, i));
	return product;
}

static int64_t largest_factor(int64_t number)
{
	int64_t largest = 1;

	for (int64_t factor = 2; factor * factor <= number; factor++)
		for (; number % factor == 0; number /= factor)
			largest = factor;
	return number > largest ? number : largest;
}

/* Returns the length, among those of the dimensions in argument 1, with the largest prime factor; 0 if they are unknown. */
static int64_t awkward_length(const struct advice *advice, uint32_t row)
{
	struct ops_input tensor, dimensions;
	struct ops_input last;
	int64_t length = 0;

	if (ops_string_is(advice_name(advice, row), "aten::_fft_c2r") && advice_input(advice, row, 3, &last) && last.tag == OPS_INPUT_INT)
		length = ops_input_int(&last, 0) <= LENGTH_MAX ? ops_input_int(&last, 0) : 0;
	if (length > 1)
		return length;
	if (!advice_input(advice, row, 0, &tensor) || !ops_input_is_tensor(tensor.tag) || !advice_input(advice, row, 1, &dimensions) ||
	    (dimensions.tag != OPS_INPUT_INT && dimensions.tag != OPS_INPUT_INT_LIST))
		return 0;
	for (size_t i = 0; i < dimensions.n; i++) {
		int64_t at = ops_input_int(&dimensions, i);

		at = at < 0 ? at + tensor.n : at;
		if (at >= 0 && at < tensor.n && ops_input_int(&tensor, (size_t)at) <= LENGTH_MAX &&
		    (!length || largest_factor(ops_input_int(&tensor, (size_t)at)) > largest_factor(length)))
			length = ops_input_int(&tensor, (size_t)at);
	}
	return length;
}

/* Returns true if argument 1 is a dimension in which the elements of argument 0 are not adjacent. */
static bool is_across_memory(const struct advice *advice, uint32_t row)
{
	struct ops_input tensor, dimension;
	int64_t at;

	if (!advice_input(advice, row, 0, &tensor) || tensor.tag != OPS_INPUT_TENSOR || !advice_input(advice, row, 1, &dimension) ||
	    dimension.tag != OPS_INPUT_INT)
		return false;
	at = ops_input_int(&dimension, 0);
	at = at < 0 ? at + tensor.n : at;
	return at >= 0 && at < tensor.n && ops_input_int(&tensor, tensor.n + (size_t)at) > 1;
}

/* Returns true if a pooling reads images whose channels come before their rows and columns. */
static bool has_channels_first(const struct advice *advice, uint32_t row)
{
	struct ops_input tensor;

	return advice_input(advice, row, 0, &tensor) && advice_is_contiguous(&tensor) && tensor.n == 4 && ops_input_int(&tensor, 1) >= CHANNELS_MIN &&
	       ops_input_int(&tensor, 2) > 1;
}

/* Reads the exponent of a power that roots and a few products compute, but which torch computes by a logarithm and an exponential: its
 * own shortcuts are square, cube, square root and their inverses. Others, such as 2.2, have no cheaper form. */
static bool read_exponent(const struct advice *advice, uint32_t row, double *ret_exponent)
{
	static const double shortcuts[] = {0, 1, 2, 3, 0.5, -0.5, -1, -2};
	struct ops_input exponent;

	if (!advice_input(advice, row, 1, &exponent) || (exponent.tag != OPS_INPUT_INT && exponent.tag != OPS_INPUT_DOUBLE))
		return false;
	*ret_exponent = exponent.tag == OPS_INPUT_INT ? (double)ops_input_int(&exponent, 0) : ops_input_double(&exponent, 0);
	for (size_t i = 0; i < sizeof(shortcuts) / sizeof(*shortcuts); i++)
		if (*ret_exponent == shortcuts[i])
			return false;
	return fabs(*ret_exponent) <= EXPONENT_MAX && rint(*ret_exponent * 4) == *ret_exponent * 4;
}

static enum slowness explain_pooling(const struct advice *advice, uint32_t row, char *text, size_t size)
{
	int64_t window = argument_product(advice, row, 1);

	if (strstr(advice_name(advice, row).bytes, "backward"))
		return SLOW_WITHOUT_REASON;
	if (window >= WINDOW_MIN && !strstr(advice_name(advice, row).bytes, "adaptive")) {
		snprintf(text, size, "Its window has %lld elements, and it reads all of them for each element of its result.", (long long)window);
		return SLOW_WINDOW;
	}
	if (!has_channels_first(advice, row))
		return SLOW_WITHOUT_REASON;
	snprintf(text, size, "Its input has the channels first. On the CPU, torch processes several channels at a time only if they are last.");
	return SLOW_POOLING;
}

/* Describes, in a sentence, what in the arguments of a call explains that it is slow. Returns its kind, by which to find what to do about
 * it; SLOW_WITHOUT_REASON if nothing explains it. */
static enum slowness explain_call(const struct advice *advice, enum slowness kind, uint32_t row, char *text, size_t size)
{
	int64_t length;
	double exponent;

	*text = '\0';
	switch (kind) {
	case SLOW_POOLING:
		return explain_pooling(advice, row, text, size);
	case SLOW_FOURIER:
		length = awkward_length(advice, row);
		if (!length || largest_factor(length) < FACTOR_MIN)
			return SLOW_WITHOUT_REASON;
		snprintf(text, size, "The length of its signals, %lld, has the prime factor %lld, and transforms are fast for lengths of small factors.",
		         (long long)length, (long long)largest_factor(length));
		return kind;
	case SLOW_POSITION:
		if (!is_across_memory(advice, row))
			return SLOW_WITHOUT_REASON;
		snprintf(text, size, "It searches along a dimension whose elements are not next to each other in memory.");
		return kind;
	case SLOW_RANDOM:
		snprintf(text, size, "torch generates random numbers one after another, on one thread.");
		return kind;
	case SLOW_NORMS:
		snprintf(text, size, "It normalises the rows that max_norm limits one after another, before each lookup.");
		return kind;
	case SLOW_POWER:
		if (!read_exponent(advice, row, &exponent))
			return SLOW_WITHOUT_REASON;
		snprintf(text, size, "Its exponent is %g, for which torch computes a logarithm and an exponential of each element.", exponent);
		return kind;
	default:
		return SLOW_WITHOUT_REASON;
	}
}

/* --- findings ------------------------------------------------------------------------------------------------------- */

/* Finds what in its arguments explains the time of each group. Returns the time of the fastest Fourier transforms of good lengths, in
 * multiples of the lower bound; INFINITY if there are none. */
static double explain_groups(struct slow *all, const struct advice *advice)
{
	double usual = INFINITY;
	char text[160];

	for (size_t i = 0; i < all->groups.count; i++) {
		struct slow_group *group = &all->groups.items[i];
		enum slowness kind = (enum slowness)all->kind[group->name];

		group->why = explain_call(advice, kind, group->longest, text, sizeof(text));
		if (kind == SLOW_FOURIER && !group->why && group->calls >= CALLS_MIN)
			usual = fmin(usual, fmax((double)group->ns / group->bound_ns, USUAL_LEAST));
	}
	return usual;
}

/* Decides which groups are slow. Returns the one with the most time; NULL if there is none. */
static struct slow_group *find_slow_groups(struct slow *all, const struct advice *advice)
{
	double usual_fourier = explain_groups(all, advice);
	struct slow_group *most = NULL;

	for (size_t i = 0; i < all->groups.count; i++) {
		struct slow_group *group = &all->groups.items[i];
		enum slowness kind = (enum slowness)all->kind[group->name];
		double ratio, usual = all->usual * fmax(slow_usual[kind], 1);

		if (kind == SLOW_FOURIER)
			usual = fmin(usual, usual_fourier);
		/* Anything may delay a single call, but values, types and layouts delay all of them. */
		ratio = (group->why ? (double)group->ns / group->bound_ns : group->least) / usual;
		if (kind == SLOW_FOURIER && group->why && isinf(usual_fourier))
			ratio = fmax(ratio, FACTOR_RATIO); /* whatever else is slow in the recording */
		if ((double)group->ns < SHARE_MIN * (double)advice->steps_ns || group->calls < CALLS_MIN ||
		    ratio < (group->why ? RATIO_EXPLAINED_MIN : RATIO_MIN))
			continue;
		group->ratio = ratio;
		most = !most || group->ns > most->ns ? group : most;
	}
	return most;
}

/* Adds the cost of a call in a slow group. A claim of a forward operator includes its backward pass. */
static void add_slow_call(const struct slow *all, struct advice_result *result, const struct roofline_call *call)
{
	const struct advice *advice = result->advice;
	uint32_t number = ops_map_find(&all->numbers, slow_key(slow_site(advice, call->row), advice->events->name[call->row]));
	uint32_t forward = advice_forward_of(advice, call->row), of_forward = OPS_NONE;
	const struct slow_group *group = &all->groups.items[number];

	if (group->ratio <= 0 || advice_is_claimed(result, call->row))
		return;
	if (forward != OPS_NONE)
		of_forward = ops_map_find(&all->numbers, slow_key(advice->site[forward], advice->events->name[forward]));
	if (of_forward != OPS_NONE && all->groups.items[of_forward].ratio > 0)
		return;
	advice_add_at(result, group->site, call->row, advice_claim_share(result, call->row, 1 - 1 / group->ratio));
}

static bool report_slow(const struct slow *all, struct advice_result *result, const struct slow_group *most)
{
	const struct advice *advice = result->advice;
	enum slowness kind = (enum slowness)all->kind[most->name];
	struct ops_input tensor = advice_largest_input(advice, most->longest);
	char why[160];

	explain_call(advice, kind, most->longest, why, sizeof(why));
	result->detail = slow_fixes[most->why ? most->why : kind == SLOW_VALUES ? kind : SLOW_WITHOUT_REASON];
	result->confidence = most->why ? ADVICE_LIKELY : ADVICE_UNSURE;
	return advice_report_costs(result, "%s%s%s takes %s a step here, %s times as long as is usual for such an operator in this recording: the other operators "
	                                   "take %s times the lower bound of their FLOPs and bytes. %s",
	                           advice_name(advice, most->longest).bytes, tensor.tag ? " of " : "", tensor.tag ? advice_describe_tensor(&tensor).text : "",
	                           advice_spent(advice, (double)most->ns).text, ops_figure_of_number(most->ratio).text, ops_figure_of_number(all->usual).text,
	                           most->why ? why : "Nothing in its arguments explains it.");
}

static bool rule_slow_find(const struct advice *advice, struct advice_result *result)
{
	struct slow all = {.kind = advice_named_kinds(advice, slow_names)};
	struct slow_group *most = NULL;
	bool done = all.kind && roofline_init(&all.roofline, advice->trace, OPS_ROOFLINE_OPERATOR, NULL, NULL) == OPS_OK;

	for (size_t i = 0; done && i < all.roofline.calls.count; i++)
		if (slow_counts(&all, advice, &all.roofline.calls.items[i]))
			done = slow_add_call(&all, advice, &all.roofline.calls.items[i]);
	done = done && slow_find_usual(&all, advice);
	if (done)
		most = find_slow_groups(&all, advice);
	for (size_t i = 0; most && i < all.roofline.calls.count; i++)
		if (slow_counts(&all, advice, &all.roofline.calls.items[i]))
			add_slow_call(&all, result, &all.roofline.calls.items[i]);
	done = done && (!most || report_slow(&all, result, most));
	roofline_release(&all.roofline);
	ops_map_release(&all.numbers);
	OPS_ARRAY_RELEASE(&all.groups);
	ops_free(all.kind);
	return done;
}

const struct advice_rule advice_rule_slow = {
	.id = "slow-operator",
	.title = "An operator takes many times longer than others for as much work",
	.condition = "An operator on the CPU takes 5 % of a step or more at a line, and at least 12 times what is usual for it: the lower bound of its FLOPs and bytes, "
		     "times what the other operators of the recording take in multiples of theirs (their median, and at least 2; 8 if there are fewer than three), times a "
		     "constant for kinds that take longer than elementwise operators. Four times suffices if its arguments explain the time: wide windows of "
		     "poolings, Fourier transforms whose length has a large prime factor (32 or more; any ratio if no length is better), positions of a maximum across memory, random numbers, "
		     "exponents that products and roots compute (4, 1.5), and norms of an embedding's rows.",
	.gain = "its time above what is usual, forward and backward",
	.explanation = "Such an operator has a slow path for some arguments, types, layouts or values.",
	.advice = "Replace it by operators that do the same with less work. To check: its time in `opstrobe roofline`.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_ROOF,
	.stage = ADVICE_STAGE_WIDTH,
	.severity_max = ADVICE_MEDIUM, /* it shows where time goes, and only for some operators why */
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.find = rule_slow_find,
};
