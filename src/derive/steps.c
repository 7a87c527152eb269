/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps by name, and steps that are derived from ranges and calls; see steps.h.
 */
#include "derive/steps.h"

#include <opstrobe/internal/shadow_steps.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/captures.h"
#include "derive/extent.h"
#include "derive/outer_loop.h"
#include "trace/derived.h"
#include "trace/names.h"

#define DIGITS_MAX 18   /* largest number of digits that fits */
#define NEARLY_ALL 0.98 /* share of a trace whose sums are about those of the trace */

/* Parses digits, and moves behind them. Stops before a number would be too large. Returns false without digits. */
static bool parse_step_digits(const char **at, const char *end, uint64_t *ret_number)
{
	const char *start = *at;
	uint64_t number = 0;

	for (; *at < end && **at >= '0' && **at <= '9' && number <= INT64_MAX / 10 - 1; (*at)++)
		number = 10 * number + (uint64_t)(**at - '0');
	*ret_number = number;
	return *at > start;
}

bool ops_step_number(struct ops_string name, int64_t *ret_number)
{
	const char *at = name.bytes + strlen(OPS_STEP_PREFIX), *end = name.bytes + name.size, *digits;
	uint64_t number;

	if (!ops_string_starts(name, OPS_STEP_PREFIX))
		return false;
	while (at < end && *at == ' ')
		at++;
	if (at == end || *at++ != '#')
		return false;
	while (at < end && *at == ' ')
		at++;
	digits = at;
	if (!parse_step_digits(&at, end, &number) || at != end || end - digits > DIGITS_MAX)
		return false;
	*ret_number = (int64_t)number;
	return true;
}

static bool is_range(const struct ops_events *events, size_t row)
{
	return events->kind[row] == OPS_EVENT_USER_ANNOTATION || events->kind[row] == OPS_EVENT_CPU_OP;
}

bool ops_row_step(const struct ops_trace *trace, size_t row, int64_t *ret_number)
{
	const struct ops_events *events = ops_trace_events(trace);

	return is_range(events, row) && ops_step_number(ops_trace_string(trace, events->name[row]), ret_number);
}

bool ops_is_batch_name(struct ops_string name)
{
	return (ops_string_starts(name, "enumerate(DataLoader)#") && ops_string_ends(name, ".__next__")) ||
	       ops_string_starts(name, "enumerate(DataPipe)#");
}

/* --- derivation ----------------------------------------------------------------------------------------------------- */

/* What a name indicates about steps. */
enum name_class { UNKNOWN, OTHER, STEP, OPTIMIZER_STEP, ZERO_GRAD, BATCH, MODULE, SHADOW_STEP };

/* State of a process while its steps are derived. */
struct process {
	uint32_t optimizer;       /* name of the optimizer that stepped first; OPS_NONE: none */
	uint32_t optimizer_track; /* the thread of that optimizer */
	uint32_t batch_track;     /* the thread that fetched the first batch */
	int64_t from_ns;          /* where the next step begins */
	int64_t fetched_ns;       /* when the fetch of the open step ended */
	int64_t ran_ns;           /* latest end of an operator of the open step */
	bool fetched, ran;        /* whether fetched_ns and ran_ns are valid */
	int64_t number;
};

struct finder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	struct ops_steps *steps;
	uint8_t *names;        /* enum name_class by string */
	uint32_t *process_of;  /* by track */
	int64_t *begin_ns;     /* by track: where its first step begins */
	uint8_t *begin_class;  /* by track: the class of name that determined it */
	struct process *processes;
	size_t process_count;
};

static uint8_t class_of_name(struct ops_string name)
{
	int64_t number;

	if (ops_step_number(name, &number))
		return STEP;
	if (ops_string_starts(name, "Optimizer.step#"))
		return OPTIMIZER_STEP;
	if (ops_string_starts(name, "Optimizer.zero_grad#"))
		return ZERO_GRAD;
	if (ops_string_is(name, OPS_SHADOW_STEP_NAME))
		return SHADOW_STEP;
	if (ops_is_module_name(name))
		return MODULE;
	return ops_is_batch_name(name) ? BATCH : OTHER;
}

static uint8_t steps_class_of(struct finder *finder, size_t row)
{
	uint32_t name = finder->events->name[row];

	if (!finder->names[name])
		finder->names[name] = class_of_name(ops_trace_string(finder->trace, name));
	return finder->names[name];
}

static bool steps_add_step(struct finder *finder, int64_t number, int64_t start_ns, int64_t end_ns, uint32_t row,
                           uint32_t track)
{
	struct ops_step *step = OPS_ARRAY_PUSH(&finder->steps->list);

	if (!step)
		return false;
	*step = (struct ops_step){.number = number, .start_ns = start_ns, .end_ns = end_ns, .row = row, .track = track};
	snprintf(step->text, sizeof(step->text), "%" PRId64, number);
	return true;
}

static bool find_marked(struct finder *finder)
{
	const struct ops_events *events = finder->events;
	int64_t number;

	for (size_t row = 0; row < events->count; row++) {
		if (!is_range(events, row) || steps_class_of(finder, row) != STEP)
			continue;
		ops_step_number(ops_trace_string(finder->trace, events->name[row]), &number);
		if (!steps_add_step(finder, number, events->start_ns[row], events->end_ns[row], (uint32_t)row,
		                    events->track[row]))
			return false;
	}
	return true;
}

static void find_shadow_steps(struct finder *finder)
{
	const struct ops_events *events = finder->events;
	size_t step = 0;

	for (size_t row = 0; row < events->count; row++) {
		if (!is_range(events, row) || steps_class_of(finder, row) != SHADOW_STEP)
			continue;
		while (step < finder->steps->list.count && finder->steps->list.items[step].end_ns <= events->start_ns[row])
			step++;
		if (step < finder->steps->list.count && finder->steps->list.items[step].start_ns <= events->start_ns[row])
			finder->steps->list.items[step].is_shadow = true;
	}
}

/* Groups tracks by process, and finds the optimizer and the data loader that come first in each process. */
static bool find_processes(struct finder *finder)
{
	const struct ops_events *events = finder->events;
	struct ops_map by_pid = {0};
	size_t count;

	finder->tracks = ops_trace_tracks(finder->trace, &count);
	finder->process_of = ops_alloc_zeroed(count + 1, sizeof(*finder->process_of));
	finder->begin_ns = ops_alloc_zeroed(count + 1, sizeof(*finder->begin_ns));
	finder->begin_class = ops_alloc_zeroed(count + 1, 1);
	finder->processes = ops_alloc_zeroed(count + 1, sizeof(*finder->processes));
	for (size_t i = 0; finder->process_of && finder->begin_ns && finder->begin_class && finder->processes && i < count; i++) {
		uint32_t *process = ops_map_slot(&by_pid, (uint64_t)finder->tracks[i].pid, (uint32_t)by_pid.count);

		if (!process) {
			ops_map_release(&by_pid);
			return false;
		}
		finder->process_of[i] = *process;
		finder->processes[*process] = (struct process){.optimizer = OPS_NONE, .optimizer_track = OPS_NONE,
		                                               .batch_track = OPS_NONE};
	}
	finder->process_count = by_pid.count;
	ops_map_release(&by_pid);
	if (!finder->process_of || !finder->begin_ns || !finder->begin_class || !finder->processes)
		return false;
	for (size_t row = 0; row < events->count; row++) {
		struct process *process = &finder->processes[finder->process_of[events->track[row]]];
		uint8_t class = is_range(events, row) ? steps_class_of(finder, row) : OTHER;

		if (class == OPTIMIZER_STEP && process->optimizer == OPS_NONE) {
			process->optimizer = events->name[row];
			process->optimizer_track = events->track[row];
		} else if (class == BATCH && process->batch_track == OPS_NONE) {
			process->batch_track = events->track[row];
		}
	}
	return true;
}

/* Records where the first step of a thread begins: at its first batch, zero_grad() call or module, whichever comes
 * first, else at the thread's first row. Earlier time is set-up, such as building the model. */
static void note_begin(struct finder *finder, size_t row)
{
	const struct ops_events *events = finder->events;
	uint32_t track = events->track[row];
	uint8_t class = steps_class_of(finder, row);

	class = class == BATCH || class == ZERO_GRAD || class == MODULE ? class : OTHER;
	if (finder->begin_class[track] == UNKNOWN || (finder->begin_class[track] == OTHER && class != OTHER)) {
		finder->begin_ns[track] = events->start_ns[row];
		finder->begin_class[track] = class;
	}
}

/* The optimizer's step() ends a step. A step() inside another, such as that of a base class, is the same one. */
static bool end_by_optimizer(struct finder *finder, struct process *process, size_t row)
{
	const struct ops_events *events = finder->events;
	int64_t from_ns = process->number ? process->from_ns : finder->begin_ns[events->track[row]];

	if (process->number && events->end_ns[row] <= process->from_ns)
		return true;
	process->from_ns = events->end_ns[row];
	return steps_add_step(finder, process->number++, from_ns, events->end_ns[row], OPS_NONE, events->track[row]);
}

/* Ends a step at `end_ns` if an operator ran since its batch was fetched: the last fetch of an epoch returns no
 * batch. */
static bool end_by_batch(struct finder *finder, struct process *process, int64_t end_ns)
{
	if (!process->ran)
		return true;
	return steps_add_step(finder, process->number++, process->from_ns, end_ns, OPS_NONE, process->batch_track);
}

static bool extend_batch(struct finder *finder, struct process *process, size_t row, bool is_batch)
{
	const struct ops_events *events = finder->events;

	if (is_batch && (!process->fetched || events->start_ns[row] >= process->fetched_ns)) {
		if (!end_by_batch(finder, process, events->start_ns[row]))
			return false;
		process->from_ns = events->start_ns[row];
		process->fetched_ns = events->end_ns[row];
		process->fetched = true;
		process->ran = false;
	} else if (process->fetched && events->kind[row] == OPS_EVENT_CPU_OP && events->start_ns[row] >= process->fetched_ns) {
		if (!process->ran || events->end_ns[row] > process->ran_ns)
			process->ran_ns = events->end_ns[row];
		process->ran = true;
	}
	return true;
}

static bool has_optimizer(const struct finder *finder)
{
	for (size_t i = 0; i < finder->process_count; i++)
		if (finder->processes[i].optimizer != OPS_NONE)
			return true;
	return false;
}

static bool add_iterations(struct finder *finder, const struct ops_iterations *iterations)
{
	for (size_t i = 0; i < iterations->list.count; i++) {
		const struct ops_iteration *iteration = &iterations->list.items[i];

		if (!steps_add_step(finder, iteration->number, iteration->start_ns, iteration->end_ns, OPS_NONE, iteration->track))
			return false;
		finder->steps->list.items[i].kind = iteration->kind;
	}
	finder->steps->source = OPS_STEPS_ITERATIONS;
	return true;
}

/* Sets the kind of a marked step to that of its iterations if they agree. Other steps of a process have no kind. */
static void note_kinds(struct finder *finder, const struct ops_iterations *iterations)
{
	for (size_t i = 0; i < iterations->list.count; i++) {
		const struct ops_iteration *iteration = &iterations->list.items[i];
		uint32_t at = ops_steps_at(finder->steps, iteration->start_ns);
		struct ops_step *step = at == OPS_NONE ? NULL : &finder->steps->list.items[at];

		if (!step || step->track != iteration->track)
			continue;
		step->kind = step->kind == OPS_ITERATION_NONE || step->kind == iteration->kind ? iteration->kind : OPS_ITERATION_UNKNOWN;
	}
}

static bool add_loop(struct finder *finder)
{
	struct ops_outer_loop loop = {0};
	bool done = ops_outer_loop_find(&loop, finder->trace);
	size_t count = loop.starts_ns.count;

	for (size_t i = 0; done && i < count; i++)
		done = steps_add_step(finder, (int64_t)i, loop.starts_ns.items[i], i + 1 < count ? loop.starts_ns.items[i + 1] : loop.end_ns, OPS_NONE,
		                      loop.track);
	if (count) {
		finder->steps->source = OPS_STEPS_LOOP;
		finder->steps->loop_row = loop.row;
	}
	ops_outer_loop_release(&loop);
	return done;
}

/* --- loops instead of steps ------------------------------------------------------------------------------------------ */

#define OUTSIDE_MIN 0.5 /* minimum share of the time of operators, and of that of a loop, outside of steps that the loop is to replace */

/* Finds whether most of the time of operators on the thread of the steps is outside of all steps. */
static bool are_operators_outside(const struct finder *finder, const struct ops_steps *steps, bool *ret_outside)
{
	const struct ops_events *events = finder->events;
	uint8_t *inside = ops_alloc_zeroed(events->count + 1, 1); /* by row: it is an operator or in one */
	double all_ns = 0, outside_ns = 0;

	for (size_t row = 0; inside && row < events->count; row++) {
		bool within = events->parent[row] != OPS_NONE && inside[events->parent[row]];
		double ns = (double)ops_difference(events->end_ns[row], events->start_ns[row]);

		inside[row] = within || events->kind[row] == OPS_EVENT_CPU_OP;
		if (within || !inside[row] || events->track[row] != steps->list.items[0].track || (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)))
			continue;
		all_ns += ns;
		if (ops_steps_at(steps, events->start_ns[row]) == OPS_NONE)
			outside_ns += ns;
	}
	*ret_outside = outside_ns > OUTSIDE_MIN * all_ns;
	ops_free(inside);
	return inside != NULL;
}

/* Returns whether most of the time of a loop is outside of all steps of its thread. */
static bool is_loop_outside(const struct ops_steps *loop, const struct ops_steps *steps)
{
	double all_ns = 0, inside_ns = 0;
	size_t i = 0, k = 0;

	for (size_t each = 0; each < loop->list.count; each++)
		all_ns += (double)ops_difference(loop->list.items[each].end_ns, loop->list.items[each].start_ns);
	while (i < loop->list.count && k < steps->list.count) {
		const struct ops_step *iteration = &loop->list.items[i], *step = &steps->list.items[k];
		int64_t start_ns = iteration->start_ns > step->start_ns ? iteration->start_ns : step->start_ns;
		int64_t end_ns = iteration->end_ns < step->end_ns ? iteration->end_ns : step->end_ns;

		if (step->track == iteration->track && start_ns < end_ns)
			inside_ns += (double)ops_difference(end_ns, start_ns);
		if (step->end_ns <= iteration->end_ns)
			k++;
		else
			i++;
	}
	return inside_ns < (1 - OUTSIDE_MIN) * all_ns;
}

/* A program that trains shortly and then generates, or answers requests, does most of its work in another loop, whose iterations
 * then are its steps. A loop within steps is part of them, such as one of a validation. */
static bool prefer_loop(struct finder *finder)
{
	struct ops_steps *steps = finder->steps, replaced = *steps, ended = *steps;
	bool outside = false, done;

	/* The last batch lasts to the last operator, whatever that belongs to. */
	ended.list.count -= steps->source == OPS_STEPS_BATCHES;
	done = are_operators_outside(finder, &ended, &outside);
	if (!done || !outside)
		return done;
	*steps = (struct ops_steps){.loop_row = OPS_NONE};
	done = add_loop(finder);
	if (!done || !steps->list.count || steps->list.items[0].track != replaced.list.items[0].track || !is_loop_outside(steps, &ended)) {
		OPS_ARRAY_RELEASE(&steps->list);
		*steps = replaced;
	} else {
		OPS_ARRAY_RELEASE(&replaced.list);
	}
	return done;
}

/* Returns whether `opstrobe run` marked the steps, not the program. */
static bool marks_are_found(const struct ops_trace *trace)
{
	struct ops_string by;

	return ops_trace_find_metadata(trace, OPS_STEPS_FOUND_BY, &by);
}

/* Derives steps from optimizers, else from iterations of a server, else from batches, else from the outermost loop. */
static bool steps_derive(struct finder *finder, const struct ops_iterations *iterations)
{
	const struct ops_events *events = finder->events;
	const struct ops_captures *captures = ops_captures_of(finder->trace);
	bool done = captures && find_processes(finder);
	size_t capture = 0;

	if (done && iterations->list.count && !has_optimizer(finder))
		return add_iterations(finder, iterations);
	for (size_t row = 0; done && row < events->count; row++) {
		uint32_t track = events->track[row];
		struct process *process = &finder->processes[finder->process_of[track]];

		if (process->optimizer != OPS_NONE && process->optimizer_track == track) {
			note_begin(finder, row);
			/* What is captured does not run. */
			if (is_range(events, row) && events->name[row] == process->optimizer &&
			    !ops_intervals_within(&captures->times, events->start_ns[row], events->start_ns[row] + 1, &capture))
				done = end_by_optimizer(finder, process, row);
		} else if (process->optimizer == OPS_NONE && process->batch_track == track) {
			done = extend_batch(finder, process, row,
			                    is_range(events, row) && steps_class_of(finder, row) == BATCH);
		}
	}
	/* The step of the last batch lasts until the thread's last operator ends. */
	for (size_t i = 0; done && i < finder->process_count; i++)
		if (finder->processes[i].optimizer == OPS_NONE)
			done = end_by_batch(finder, &finder->processes[i], finder->processes[i].ran_ns);
	for (size_t i = 0; done && i < finder->process_count; i++)
		if (finder->processes[i].number)
			finder->steps->source = finder->processes[i].optimizer != OPS_NONE ? OPS_STEPS_OPTIMIZER : OPS_STEPS_BATCHES;
	return done && (finder->steps->list.count || add_loop(finder));
}

OPS_ORDER(steps_compare_steps, struct ops_step, OPS_UP(start_ns) OPS_UP(track))

static bool steps_find_steps(const struct ops_trace *trace, struct ops_steps *steps)
{
	struct finder finder = {.trace = trace, .events = ops_trace_events(trace), .steps = steps};
	struct ops_iterations iterations;
	bool done;

	finder.names = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1);
	done = ops_iterations_find(&iterations, trace) && finder.names && find_marked(&finder);
	if (done && steps->list.count) {
		find_shadow_steps(&finder);
		note_kinds(&finder, &iterations);
		steps->source = OPS_STEPS_MARKED;
		if (marks_are_found(trace))
			done = prefer_loop(&finder);
	} else if (done) {
		done = steps_derive(&finder, &iterations);
		if (done && steps->list.count > 1)
			qsort(steps->list.items, steps->list.count, sizeof(*steps->list.items), steps_compare_steps);
		if (done && (steps->source == OPS_STEPS_OPTIMIZER || steps->source == OPS_STEPS_BATCHES))
			done = prefer_loop(&finder);
	}
	ops_free(finder.names);
	ops_free(finder.process_of);
	ops_free(finder.begin_ns);
	ops_free(finder.begin_class);
	ops_free(finder.processes);
	ops_iterations_release(&iterations);
	return done;
}

static void free_steps(void *object)
{
	struct ops_steps *steps = object;

	OPS_ARRAY_RELEASE(&steps->list);
	ops_free(steps->helps);
	ops_free(steps);
}

/* The first step is apart if it takes more than this multiple of the median of the others. */
#define APART_RATIO 1.5

/* Only steps of one thread are compared: iterations of a server differ by kind, and processes have a first step each. */
static bool steps_find_apart(struct ops_steps *steps)
{
	size_t count = steps->list.count;
	double *lengths;

	if (count < 2 || steps->source == OPS_STEPS_ITERATIONS || ops_steps_counted(steps) < count)
		return true;
	lengths = ops_realloc_array(NULL, count, sizeof(*lengths));
	if (!lengths)
		return false;
	for (size_t i = 0; i < count; i++)
		lengths[i] = (double)ops_difference(steps->list.items[i].end_ns, steps->list.items[i].start_ns);
	steps->first_is_apart = lengths[0] > APART_RATIO * ops_median(lengths + 1, count - 1);
	ops_free(lengths);
	return true;
}

/* By track, for threads of processes without steps. */
static bool find_helping_tracks(const struct ops_trace *trace, struct ops_steps *steps)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_map with_steps = {0}, at_work = {0}; /* ids of processes */
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	bool done = (steps->helps = ops_alloc_zeroed(count + 1, 1)) != NULL, any = false;

	for (size_t i = 0; done && i < steps->list.count; i++)
		done = ops_map_slot(&with_steps, (uint64_t)tracks[steps->list.items[i].track].pid, 1) != NULL;
	for (size_t i = 0; done && steps->list.count && i < count; i++) {
		steps->helps[i] = tracks[i].kind == OPS_TRACK_THREAD && !(tracks[i].flags & OPS_TRACK_PID_TEXT) &&
		                  ops_map_find(&with_steps, (uint64_t)tracks[i].pid) == OPS_NONE;
		any |= steps->helps[i];
	}
	/* Files also have rows about devices and profilers in separate processes. */
	for (size_t row = 0; done && any && row < events->count; row++)
		if (steps->helps[events->track[row]] && (events->kind[row] == OPS_EVENT_CPU_OP || events->kind[row] == OPS_EVENT_PYTHON_FUNCTION))
			done = ops_map_slot(&at_work, (uint64_t)tracks[events->track[row]].pid, 1) != NULL;
	for (size_t i = 0; done && any && i < count; i++)
		steps->helps[i] = steps->helps[i] && ops_map_find(&at_work, (uint64_t)tracks[i].pid) != OPS_NONE;
	ops_map_release(&with_steps);
	ops_map_release(&at_work);
	return done;
}

static void derive_steps(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct ops_steps *steps = ops_alloc_zeroed(1, sizeof(*steps));

	if (steps)
		steps->loop_row = OPS_NONE;
	if (steps && steps_find_steps(trace, steps) && steps_find_apart(steps) && find_helping_tracks(trace, steps))
		*ret_made = (struct ops_derived_object){steps, free_steps, steps->list.count * sizeof(*steps->list.items)};
	else if (steps)
		free_steps(steps);
}

const struct ops_steps *ops_steps_of(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_STEPS, derive_steps);
}

uint32_t ops_steps_at(const struct ops_steps *steps, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, steps->list.count, mid, steps->list.items[mid].start_ns <= time_ns);
	return low && time_ns < steps->list.items[low - 1].end_ns ? (uint32_t)(low - 1) : OPS_NONE;
}

size_t ops_steps_of_track(const struct ops_steps *steps, uint32_t track)
{
	size_t count = 0;

	for (size_t i = 0; i < steps->list.count; i++)
		count += steps->list.items[i].track == track && !steps->list.items[i].is_shadow;
	return count;
}

size_t ops_steps_counted(const struct ops_steps *steps)
{
	return steps->list.count ? ops_steps_of_track(steps, steps->list.items[0].track) : 0;
}

size_t ops_steps_averaged(const struct ops_steps *steps)
{
	return ops_steps_counted(steps) - steps->first_is_apart;
}

bool ops_steps_averages(const struct ops_steps *steps, int64_t time_ns)
{
	uint32_t at = steps->list.count ? ops_steps_at(steps, time_ns) : 0;

	return at != OPS_NONE && (at || !steps->first_is_apart);
}

const char *ops_steps_source_name(enum ops_steps_source source)
{
	static const char *const names[] = {"none", "marks", "optimizer", "batches", "iterations", "loop"};

	return names[source];
}

const char *ops_steps_source_about(enum ops_steps_source source)
{
	static const char *const texts[] = {"no steps", "marks of the recording", "calls of the optimizer", "batches of the data loader",
	                                    "iterations of a server", "iterations of the outermost loop"};

	return texts[source];
}

bool ops_trace_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns, int64_t *ret_to_ns)
{
	const struct ops_steps *steps = ops_steps_of(trace);
	bool found = false;

	for (size_t i = 0; steps && i < steps->list.count; i++) {
		const struct ops_step *step = &steps->list.items[i];

		if ((uint64_t)step->number < first || (uint64_t)step->number > last)
			continue;
		if (!found || step->start_ns < *ret_from_ns)
			*ret_from_ns = step->start_ns;
		if (!found || step->end_ns > *ret_to_ns)
			*ret_to_ns = step->end_ns;
		found = true;
	}
	return found;
}

bool ops_steps_are_part(const struct ops_trace *trace)
{
	struct ops_interval extent = ops_extent_of(trace);
	int64_t from_ns = 0, to_ns = 0;

	return ops_trace_steps(trace, 0, INT64_MAX, &from_ns, &to_ns) &&
	       (double)ops_difference(to_ns, from_ns) < NEARLY_ALL * (double)ops_difference(extent.end_ns, extent.start_ns);
}

bool ops_steps_parse(const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
	const char *end = text + strlen(text);

	if (!parse_step_digits(&text, end, ret_first))
		return false;
	*ret_last = *ret_first;
	if (*text == ':') {
		text++;
		if (!parse_step_digits(&text, end, ret_last))
			return false;
	}
	return !*text && *ret_first <= *ret_last;
}

/* Finds the lowest and the highest number of a step. Returns false if the trace has no steps. */
static bool step_numbers(const struct ops_trace *trace, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct ops_steps *steps = ops_steps_of(trace);

	*ret_first = UINT64_MAX;
	*ret_last = 0;
	for (size_t i = 0; steps && i < steps->list.count; i++) {
		uint64_t number = (uint64_t)steps->list.items[i].number;

		*ret_first = number < *ret_first ? number : *ret_first;
		*ret_last = number > *ret_last ? number : *ret_last;
	}
	return steps && steps->list.count;
}

enum ops_code ops_trace_find_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns,
                                   int64_t *ret_to_ns, struct ops_error *error)
{
	char wanted[64];
	uint64_t least, most;

	if (ops_trace_steps(trace, first, last, ret_from_ns, ret_to_ns))
		return OPS_OK;
	if (!step_numbers(trace, &least, &most))
		return ops_fault(error, OPS_INVALID, "the trace has no steps");
	snprintf(wanted, sizeof(wanted), first < last ? "steps %" PRIu64 " to %" PRIu64 : "step %" PRIu64, first, last);
	return ops_fault(error, OPS_INVALID, "the trace has no %s (choose from %" PRIu64 " to %" PRIu64 ")", wanted, least, most);
}

bool ops_trace_opening(const struct ops_trace *trace, uint64_t *ret_first, uint64_t *ret_last)
{
	return ops_steps_are_part(trace) && step_numbers(trace, ret_first, ret_last);
}
