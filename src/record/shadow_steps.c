/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the overhead of recording; see shadow_steps.h.
 */
#include <opstrobe/internal/shadow_steps.h>

#include <math.h>
#include <stdlib.h>

#define PPM 1e6
#define DEVIATIONS_95 1.96
#define DEVIATIONS_DECIDE 2.8 /* for decisions, which are made again and again with growing numbers of comparisons */
#define USUAL_QUARTILES 4 /* in distances between the quartiles, about five standard deviations */
#define KNOWN_SHARE 4    /* the overhead is known well when half of its interval is this many times smaller than the budget */
#define KNOWN_PPM 2500   /* or, without a budget, than this */
#define RESTORE_PAIRS 256u
#define LONGER 2.0       /* steps are longer than at the last reduction if they take this many times as long */
#define USUAL_WEIGHT 16  /* of the moving average of shadow steps */
#define RESTORE_DOUBLINGS 9u

/* What an event takes on average in each detail, callbacks of torch included. In training and generation on a CPU, an operator took
 * 0.35 to 0.65 us, an allocation or free 0.2 to 0.5 us, and a range 1 to 2 us; the last two are counted as several events if they
 * need the space of several. */
static const double event_ns[OPS_DETAIL_COUNT] = {
	[OPS_DETAIL_RANGES] = 600, [OPS_DETAIL_MODULES] = 350, [OPS_DETAIL_ALLOCATIONS] = 350, [OPS_DETAIL_ALL] = 500};

const char *ops_detail_name(enum ops_detail detail)
{
	static const char *const names[OPS_DETAIL_COUNT] = {"steps", "ranges", "modules", "allocations", "operators"};

	return detail < OPS_DETAIL_COUNT ? names[detail] : "unknown";
}

/* Chooses a distance from half to one and a half of the average. */
static void shadow_draw(struct ops_shadow_steps *steps)
{
	steps->random ^= steps->random << 13;
	steps->random ^= steps->random >> 7;
	steps->random ^= steps->random << 17;
	steps->until = steps->every / 2 + (uint32_t)((steps->random >> 11) % steps->every);
}

void ops_shadow_steps_init(struct ops_shadow_steps *steps, uint32_t budget_ppm, uint64_t random)
{
	*steps = (struct ops_shadow_steps){.budget_ppm = budget_ppm, .random = random | 1, .unit = OPS_OVERHEAD_STEP, .detail = OPS_DETAIL_ALL, .every = OPS_SHADOW_EVERY_FIRST};
	shadow_draw(steps);
}

static void shadow_add_length(double *average_ns, double ns, double weight)
{
	if (*average_ns > 0)
		ns = fmin(LONGER * *average_ns, fmax(*average_ns / LONGER, ns));
	*average_ns += *average_ns > 0 ? (ns - *average_ns) / weight : ns;
}

static void shadow_add(struct ops_shadow_steps *steps, uint64_t after_ns)
{
	double recorded_ns = ((double)steps->before_ns + (double)after_ns) / 2;
	bool differs = steps->detail > OPS_DETAIL_STEPS; /* if not, a comparison would show nothing but noise */

	if (!steps->shadow_ns)
		return;
	shadow_add_length(&steps->usual_ns, (double)steps->shadow_ns, USUAL_WEIGHT);
	steps->ratios[steps->next] = differs ? (float)(recorded_ns / (double)steps->shadow_ns - 1) : 0;
	steps->next = (steps->next + 1) % OPS_SHADOW_PAIRS;
	if (steps->used < OPS_SHADOW_PAIRS)
		steps->used++;
	steps->pairs_since++;
}

enum ops_detail ops_shadow_steps_end(struct ops_shadow_steps *steps, uint64_t duration_ns, uint64_t between_ns)
{
	if (steps->is_shadow) {
		steps->is_shadow = false;
		steps->is_after = !steps->is_spoiled;
		steps->is_spoiled = false;
		steps->shadow_ns = duration_ns;
		shadow_draw(steps);
		return steps->detail;
	}
	duration_ns += between_ns; /* without the recorder, the end is not marked */
	if (steps->is_after)
		shadow_add(steps, duration_ns);
	steps->is_after = false;
	steps->before_ns = duration_ns;
	if (++steps->count > OPS_SHADOW_COUNTED_AFTER) {
		steps->recorded++;
		shadow_add_length(&steps->length_ns, (double)duration_ns, fmin(USUAL_WEIGHT, (double)steps->recorded));
	}
	if (steps->count <= OPS_SHADOW_WARM_UP || steps->until-- > 1)
		return steps->detail;
	steps->is_shadow = true;
	return OPS_DETAIL_STEPS;
}

enum ops_detail ops_shadow_steps_spoil(struct ops_shadow_steps *steps)
{
	steps->is_spoiled |= steps->is_shadow;
	return steps->detail;
}

/* --- measuring ------------------------------------------------------------------------------------------------------- */

static int shadow_compare(const void *a, const void *b)
{
	float left = *(const float *)a, right = *(const float *)b;

	return (left > right) - (left < right);
}

static int32_t shadow_ppm(double share)
{
	return (int32_t)lround(fmax(-PPM, fmin(1000 * PPM, share * PPM)));
}

bool ops_shadow_steps_is_due(const struct ops_shadow_steps *steps)
{
	return steps->pairs_since == OPS_SHADOW_PAIRS_MIN || steps->pairs_since == OPS_SHADOW_PAIRS_DECIDE;
}

bool ops_shadow_steps_is_counted(const struct ops_shadow_steps *steps)
{
	return steps->recorded == OPS_SHADOW_COUNTED_FIRST || steps->recorded == OPS_SHADOW_COUNTED_FIRST + OPS_SHADOW_COUNTED;
}

/* Leaves out comparisons with a step of another kind, such as an evaluation. More such steps are next to a shadow step than are
 * shadow steps themselves, so they would move the median. The ratios are sorted. */
static float *shadow_keep_usual(float *ratios, uint32_t *count)
{
	uint32_t first = 0, last = *count - 1;
	float median = ratios[*count / 2], away = USUAL_QUARTILES * (ratios[3 * *count / 4] - ratios[*count / 4]);

	while (ratios[first] < median - away)
		first++;
	while (ratios[last] > median + away)
		last--;
	*count = last - first + 1;
	return ratios + first;
}

/* Returns the index of the lower end of the median's interval among sorted comparisons. */
static uint32_t shadow_low(uint32_t count, double deviations)
{
	double away = deviations * sqrt(count) / 2;

	return count / 2 > away ? (uint32_t)(count / 2 - away) : 0;
}

void ops_shadow_steps_measure(struct ops_shadow_steps *copy, double unseen, struct ops_overhead *ret_overhead)
{
	uint32_t count = copy->used, low;
	float *ratios;

	*ret_overhead = (struct ops_overhead){.unit = copy->unit,
	                                      .pairs = count,
	                                      .budget_ppm = copy->budget_ppm,
	                                      .detail = copy->detail,
	                                      .exceeded_ppm = copy->exceeded_ppm};
	if (count < OPS_SHADOW_PAIRS_MIN)
		return;
	qsort(copy->ratios, count, sizeof(*copy->ratios), shadow_compare);
	ratios = shadow_keep_usual(copy->ratios, &count);
	low = shadow_low(count, DEVIATIONS_95);
	ret_overhead->share_ppm = shadow_ppm(((double)ratios[(count - 1) / 2] + (double)ratios[count / 2]) / 2 + unseen);
	ret_overhead->low_ppm = shadow_ppm((double)ratios[low] + unseen);
	ret_overhead->high_ppm = shadow_ppm((double)ratios[count - 1 - low] + unseen);
	copy->surely_ppm = shadow_ppm((double)ratios[shadow_low(count, DEVIATIONS_DECIDE)] + unseen);
}

bool ops_overhead_is_known(const struct ops_overhead *overhead)
{
	double half_ppm = ((double)overhead->high_ppm - overhead->low_ppm) / 2;

	return overhead->unit != OPS_OVERHEAD_NONE && overhead->pairs >= OPS_SHADOW_PAIRS_MIN &&
	       half_ppm <= fmax(OPS_OVERHEAD_WIDTH_PPM, OPS_OVERHEAD_WIDTH_SHARE * overhead->share_ppm);
}

static void shadow_set_detail(struct ops_shadow_steps *steps, enum ops_detail detail)
{
	steps->detail = detail;
	steps->used = steps->next = 0;
	steps->pairs_since = 0;
	steps->recorded = 0;
	steps->is_after = false;
	steps->is_spoiled = steps->is_shadow;
	steps->every = OPS_SHADOW_EVERY_FIRST;
}

/* Returns whether the next detail would exceed the budget, by the number of its events. */
static bool shadow_expects_too_much(const struct ops_shadow_steps *steps)
{
	return steps->expected_ns[steps->detail + 1] * PPM > steps->usual_ns * steps->budget_ppm;
}

/* Returns whether the next detail would take less than half of the budget, because steps are longer than when it was switched off. */
static bool shadow_is_affordable(const struct ops_shadow_steps *steps)
{
	return steps->usual_ns > LONGER * steps->reduced_ns &&
	       steps->cost_ns[steps->detail + 1] * PPM < steps->usual_ns * steps->budget_ppm / 2;
}

/* Reduces the detail, which takes that share of steps of that length. */
static void shadow_reduce(struct ops_shadow_steps *steps, int32_t share_ppm, double length_ns)
{
	steps->exceeded_ppm = share_ppm;
	steps->cost_ns[steps->detail] = share_ppm / PPM * length_ns;
	steps->reduced_ns = length_ns;
	shadow_set_detail(steps, steps->detail - 1);
}

void ops_shadow_steps_expect(struct ops_shadow_steps *steps, double events, double length_ns, double unseen)
{
	double cost_ns = events * event_ns[steps->detail] + unseen * length_ns;
	enum ops_detail detail = steps->detail;

	if (!steps->budget_ppm || detail == OPS_DETAIL_STEPS || cost_ns * PPM <= length_ns * steps->budget_ppm)
		return;
	shadow_reduce(steps, shadow_ppm(cost_ns / length_ns), length_ns);
	steps->exceeded_ppm = -steps->exceeded_ppm;
	steps->expected_ns[detail] = cost_ns;
}

void ops_shadow_steps_decide(struct ops_shadow_steps *steps, const struct ops_shadow_steps *copy, struct ops_overhead *overhead)
{
	int64_t width_ppm = ((int64_t)overhead->high_ppm - overhead->low_ppm) / 2, budget_ppm = steps->budget_ppm;
	uint32_t doublings = steps->reductions < RESTORE_DOUBLINGS ? steps->reductions : RESTORE_DOUBLINGS;
	bool is_decided = overhead->pairs >= OPS_SHADOW_PAIRS_DECIDE;
	bool is_narrow = is_decided && width_ppm <= (budget_ppm ? budget_ppm / KNOWN_SHARE : KNOWN_PPM);

	if (overhead->pairs < OPS_SHADOW_PAIRS_MIN || overhead->detail != steps->detail)
		return;
	if (is_decided)
		steps->every = overhead->pairs == OPS_SHADOW_PAIRS || is_narrow ? OPS_SHADOW_EVERY_KNOWN : OPS_SHADOW_EVERY;
	if (!budget_ppm)
		return;
	if (steps->detail > OPS_DETAIL_STEPS && (copy->surely_ppm > budget_ppm || (is_narrow && overhead->share_ppm > budget_ppm))) {
		steps->reductions++;
		shadow_reduce(steps, overhead->share_ppm, steps->usual_ns);
	} else if (steps->detail < OPS_DETAIL_ALL && overhead->high_ppm < budget_ppm / 2 && !shadow_expects_too_much(steps) &&
	           (shadow_is_affordable(steps) || steps->pairs_since >= (uint64_t)RESTORE_PAIRS << doublings)) {
		shadow_set_detail(steps, steps->detail + 1);
	}
	overhead->detail = steps->detail;
	overhead->exceeded_ppm = steps->exceeded_ppm;
}
