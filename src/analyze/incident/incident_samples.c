/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the thread of a slow step was, by the sampled stacks of the trace, compared with other steps: see incident.h.
 */
#include "analyze/incident/incident.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/steps.h"

#define PLACES_MAX 512u /* further ones only count in the totals */
#define STATES (OPS_THREAD_STATES + 1)
#define SAMPLES_MIN 5 /* fewer show nothing */

static enum incident_doing doing_by_state(enum ops_thread_state state)
{
	switch (state) {
	case OPS_THREAD_RUNNING:
		return INCIDENT_RUNS;
	case OPS_THREAD_GIL:
		return INCIDENT_GIL;
	case OPS_THREAD_LOCK:
		return INCIDENT_LOCK;
	case OPS_THREAD_IO:
		return INCIDENT_IO;
	case OPS_THREAD_PROCESS:
		return INCIDENT_CHILD;
	case OPS_THREAD_SLEEPING:
		return INCIDENT_SLEEPS;
	default:
		return INCIDENT_UNKNOWN;
	}
}

/* The stack of a sample in the form that stacks of facts have. */
static void sampled_stack_fill(const struct ops_python_samples *samples, uint32_t number, struct incident_stack *ret_stack)
{
	*ret_stack = (struct incident_stack){.system_call = -1};
	for (; number != OPS_NONE && ret_stack->frame_count < INCIDENT_FRAMES_MAX; number = samples->stacks.items[number].caller) {
		const struct ops_sampled_stack *stack = &samples->stacks.items[number];
		const struct ops_sampled_function *function = &samples->functions.items[stack->function];

		ret_stack->frames[ret_stack->frame_count++] =
			(struct incident_frame){.file = function->file, .function = function->name, .line = stack->line};
	}
}

/* The index of the place where a stack is, added if it is new; OPS_NONE if there are too many, or if out of memory. */
static uint32_t find_sampled_place(struct incident_sampled *sampled, const struct ops_python_sample *sample)
{
	struct incident_stack stack;
	const struct incident_frame *place;
	enum incident_doing doing;

	sampled_stack_fill(&sampled->samples, sample->stack, &stack);
	place = incident_stack_place(&stack);
	doing = incident_stack_doing(&stack);
	if (doing == INCIDENT_UNKNOWN)
		doing = doing_by_state(sample->state);
	for (size_t i = 0; i < sampled->places.count; i++) {
		const struct incident_sampled_place *known = &sampled->places.items[i];

		if (known->doing == doing && known->place.line == place->line && ops_string_equals(known->place.file, place->file))
			return (uint32_t)i;
	}
	if (sampled->places.count == PLACES_MAX ||
	    !OPS_ARRAY_APPEND(&sampled->places, (struct incident_sampled_place){.place = *place, .doing = doing}))
		return OPS_NONE;
	return (uint32_t)sampled->places.count - 1;
}

/* The time of the step; false if it is not in the trace. */
static bool incident_find_step(const struct incident_facts *facts, const struct ops_steps *steps, int64_t *ret_start_ns, int64_t *ret_end_ns)
{
	for (size_t i = 0; i < steps->list.count; i++)
		if (steps->list.items[i].number == facts->step) {
			*ret_start_ns = steps->list.items[i].start_ns;
			*ret_end_ns = steps->list.items[i].end_ns;
			return true;
		}
	if (!facts->step_goes_on || !steps->list.count)
		return false;
	*ret_start_ns = steps->list.items[steps->list.count - 1].end_ns;
	*ret_end_ns = INT64_MAX;
	return true;
}

static double excess_ns(const struct incident_sampled_place *place)
{
	return place->ns - place->usual_ns;
}

OPS_ORDER(compare_places, struct incident_sampled_place, OPS_DOWN_OF(excess_ns))

/* Sums up the samples of the thread by place: those of the step, and those of all other steps. Returns false if out of memory. */
static bool sum_places(struct incident_sampled *sampled, const struct ops_steps *steps, int64_t start_ns, int64_t end_ns)
{
	const struct ops_python_samples *samples = &sampled->samples;
	uint32_t *places = ops_alloc_none(samples->stacks.count * STATES + 1); /* by stack and state */

	if (!places)
		return false;
	for (size_t i = 0; i < samples->samples.count; i++) {
		const struct ops_python_sample *sample = &samples->samples.items[i];
		bool is_of_step = sample->time_ns >= start_ns && sample->time_ns < end_ns;
		uint32_t *place = &places[sample->stack * (size_t)STATES + sample->state];

		if (sample->tid != sampled->tid || (!is_of_step && ops_steps_at(steps, sample->time_ns) == OPS_NONE))
			continue;
		if (*place == OPS_NONE)
			*place = find_sampled_place(sampled, sample);
		if (is_of_step) {
			sampled->count++;
			sampled->total_ns += (double)sample->weight_ns;
		} else {
			sampled->usual_count++;
			sampled->usual_total_ns += (double)sample->weight_ns;
		}
		if (*place != OPS_NONE && is_of_step)
			sampled->places.items[*place].ns += (double)sample->weight_ns;
		else if (*place != OPS_NONE)
			sampled->places.items[*place].usual_ns += (double)sample->weight_ns;
	}
	ops_free(places);
	return true;
}

bool incident_sampled_find(const struct incident_facts *facts, const struct ops_trace *trace, struct incident_sampled *ret_sampled)
{
	const struct ops_steps *steps;
	int64_t start_ns, end_ns;
	double usual_steps;

	*ret_sampled = (struct incident_sampled){.tid = facts->tid};
	if (!trace || !facts->has_step)
		return true;
	steps = ops_steps_of(trace);
	if (!steps || !ops_python_samples_read(&ret_sampled->samples, trace))
		return false;
	if (!ret_sampled->samples.samples.count || !incident_find_step(facts, steps, &start_ns, &end_ns))
		return true;
	if (!sum_places(ret_sampled, steps, start_ns, end_ns))
		return false;
	ret_sampled->usual_steps = steps->list.count - (end_ns != INT64_MAX);
	usual_steps = fmax(1, (double)ret_sampled->usual_steps);
	ret_sampled->usual_total_ns /= usual_steps;
	for (size_t i = 0; i < ret_sampled->places.count; i++)
		ret_sampled->places.items[i].usual_ns /= usual_steps;
	OPS_ARRAY_SORT(&ret_sampled->places, compare_places);
	return true;
}

void incident_sampled_release(struct incident_sampled *sampled)
{
	OPS_ARRAY_RELEASE(&sampled->places);
	ops_python_samples_release(&sampled->samples);
}

const struct incident_sampled_place *incident_sampled_cause(const struct incident_sampled *sampled)
{
	const struct incident_sampled_place *first = sampled->places.count ? &sampled->places.items[0] : NULL;

	return first && sampled->count >= SAMPLES_MIN && excess_ns(first) >= (sampled->total_ns - sampled->usual_total_ns) / 2 &&
	                       first->ns > first->usual_ns
	               ? first
	               : NULL;
}

double incident_sampled_share(double ns, double total_ns)
{
	return total_ns > 0 ? ns / total_ns : 0;
}
