/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases of training; see phases.h, and docs/reference/definitions.md for the rules.
 */
#include "derive/phases.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"
#include "trace/names.h"

/* --- marks ---------------------------------------------------------------------------------------------------------- */

enum mark {
	MARK_UNKNOWN, /* the name was not examined yet */
	MARK_NONE,
	MARK_LOADER,
	MARK_OPTIMIZER,
	MARK_BACKWARD,
	MARK_FORWARD,  /* a module, or an operator that has a backward */
	MARK_OPERATOR, /* an operator of a trace without modules and links: forward unless another mark applies */
};

static enum mark mark_of_name(struct ops_string name)
{
	if (ops_is_batch_name(name))
		return MARK_LOADER;
	if (ops_string_starts(name, "Optimizer."))
		return MARK_OPTIMIZER;
	/* The engine's nodes. In traces with Python functions also "torch/autograd/graph.py(966): _engine_run_backward"
	 * and the built-in method that it calls. */
	if (ops_is_engine_name(name) || ops_string_contains(name, "run_backward"))
		return MARK_BACKWARD;
	/* DistributedDataParallel and DataParallel label their forward, Lightning each module. */
	if (ops_string_ends(name, "Parallel.forward") || ops_string_starts(name, OPS_LIGHTNING_PREFIX))
		return MARK_FORWARD;
	return MARK_NONE;
}

struct finder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	uint8_t *names;   /* enum mark by string id */
	uint8_t *forward; /* by row: an operator that a backward node is linked to */
	bool *main;       /* by track: the thread has steps */
	bool any_forward; /* the trace has modules or links, */
	bool any_mark;    /* or marks other than operators */
	struct track *tracks;
	struct ops_intervals sets[OPS_PHASE_COUNT];
};

static enum mark phases_mark_of(const struct finder *finder, uint32_t row)
{
	const struct ops_events *events = finder->events;
	uint8_t kind = events->kind[row], *name = &finder->names[events->name[row]];

	if (events->flags[row] & (OPS_EVENT_ASYNC | OPS_EVENT_HIDDEN) ||
	    (kind != OPS_EVENT_CPU_OP && kind != OPS_EVENT_USER_ANNOTATION && kind != OPS_EVENT_PYTHON_FUNCTION))
		return MARK_NONE;
	if (kind == OPS_EVENT_PYTHON_FUNCTION && events->python_module && events->python_module[row] != OPS_NONE)
		return MARK_FORWARD;
	if (*name == MARK_UNKNOWN)
		*name = (uint8_t)mark_of_name(ops_trace_string(finder->trace, events->name[row]));
	if (*name != MARK_NONE || kind != OPS_EVENT_CPU_OP)
		return (enum mark)*name;
	if (finder->forward[row])
		return MARK_FORWARD;
	return finder->any_forward ? MARK_NONE : MARK_OPERATOR;
}

static void find_forward(struct finder *finder)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(finder->trace, &count);
	const struct ops_events *events = finder->events;

	for (size_t i = 0; i < count; i++) {
		if (links[i].kind != OPS_LINK_FORWARD_BACKWARD)
			continue;
		finder->forward[links[i].from] = 1;
		finder->any_forward = true;
	}
	for (uint32_t row = 0; events->python_module && row < events->count && !finder->any_forward; row++)
		finder->any_forward = events->python_module[row] != OPS_NONE;
}

static void find_main(struct finder *finder, const struct ops_steps *steps)
{
	size_t tracks;

	ops_trace_tracks(finder->trace, &tracks);
	for (size_t i = 0; i < steps->list.count; i++)
		finder->main[steps->list.items[i].track] = true;
	for (size_t i = 0; i < tracks && !steps->list.count; i++)
		finder->main[i] = true;
}

/* --- walk over each thread ------------------------------------------------------------------------------------------ */

struct open {
	int64_t end_ns;
	enum ops_phase phase;
};

/* The open rows of a thread, outermost first, and the time up to which its time is assigned to phases. */
struct track {
	OPS_ARRAY(struct open) open;
	int64_t at_ns;
};

/* Returns the phase that a mark begins within another phase, or OPS_PHASE_OTHER if the outer phase continues. A
 * backward pass may compute forwards again (checkpointing), and an optimizer may call a closure that runs the
 * passes. */
static enum ops_phase phase_within(enum ops_phase outer, enum mark mark)
{
	static const enum ops_phase phases[] = {
		[MARK_LOADER] = OPS_PHASE_DATA_LOADING, [MARK_OPTIMIZER] = OPS_PHASE_OPTIMIZER, [MARK_BACKWARD] = OPS_PHASE_BACKWARD,
		[MARK_FORWARD] = OPS_PHASE_FORWARD,     [MARK_OPERATOR] = OPS_PHASE_FORWARD,
	};

	if (outer == OPS_PHASE_OTHER)
		return phases[mark];
	if (outer == OPS_PHASE_DATA_LOADING || outer == phases[mark] || mark == MARK_OPERATOR)
		return OPS_PHASE_OTHER;
	if (outer == OPS_PHASE_BACKWARD && mark != MARK_OPTIMIZER)
		return OPS_PHASE_OTHER;
	return phases[mark];
}

/* Assigns the thread's time up to `until_ns` to the innermost mark. On a thread without steps, only what the engine
 * runs counts. */
static bool pass_time(struct finder *finder, uint32_t number, int64_t until_ns)
{
	struct track *track = &finder->tracks[number];
	bool done = true;

	while (done && track->open.count) {
		const struct open *top = &track->open.items[track->open.count - 1];
		int64_t end_ns = top->end_ns < until_ns ? top->end_ns : until_ns;

		if (end_ns > track->at_ns && (finder->main[number] || track->open.items[0].phase == OPS_PHASE_BACKWARD))
			done = ops_intervals_push(&finder->sets[top->phase], track->at_ns, end_ns);
		track->at_ns = end_ns > track->at_ns ? end_ns : track->at_ns;
		if (top->end_ns > until_ns)
			break;
		track->open.count--;
	}
	return done;
}

static bool add_mark(struct finder *finder, uint32_t row, enum mark mark)
{
	struct track *track = &finder->tracks[finder->events->track[row]];
	int64_t start_ns = finder->events->start_ns[row], end_ns = finder->events->end_ns[row];
	enum ops_phase outer, phase;

	if (!pass_time(finder, finder->events->track[row], start_ns))
		return false;
	outer = track->open.count ? track->open.items[track->open.count - 1].phase : OPS_PHASE_OTHER;
	phase = phase_within(outer, mark);
	if (phase == OPS_PHASE_OTHER)
		return true;
	if (track->open.count && track->open.items[track->open.count - 1].end_ns < end_ns)
		end_ns = track->open.items[track->open.count - 1].end_ns;
	if (!OPS_ARRAY_APPEND(&track->open, (struct open){end_ns, phase}))
		return false;
	track->at_ns = start_ns;
	return true;
}

static bool phases_walk(struct finder *finder)
{
	size_t tracks;
	bool done = true;

	ops_trace_tracks(finder->trace, &tracks);
	for (uint32_t row = 0; done && row < finder->events->count; row++) {
		enum mark mark = phases_mark_of(finder, row);

		finder->any_mark |= mark != MARK_NONE && mark != MARK_OPERATOR;
		done = mark == MARK_NONE || add_mark(finder, row, mark);
	}
	for (uint32_t i = 0; done && i < tracks; i++)
		done = pass_time(finder, i, INT64_MAX);
	return done;
}

/* Operators alone do not prove a forward pass: some other phase must also occur. */
static void forget_operators(struct finder *finder)
{
	if (!finder->any_forward && !finder->any_mark)
		ops_intervals_release(&finder->sets[OPS_PHASE_FORWARD]);
}

/* --- merge of the threads ------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_ranges, struct ops_phase_range, OPS_UP(start_ns))

/* Where threads are in several phases at a time, the first of these counts, since the caller of backward() waits for
 * the engine. */
static bool phases_merge(struct finder *finder, struct ops_phases *phases)
{
	static const enum ops_phase order[] = {OPS_PHASE_BACKWARD, OPS_PHASE_OPTIMIZER, OPS_PHASE_FORWARD, OPS_PHASE_DATA_LOADING};
	struct ops_intervals taken = {0};
	bool done = true;

	for (size_t i = 0; done && i < sizeof(order) / sizeof(*order); i++) {
		struct ops_intervals left = {0};

		ops_intervals_sort(&finder->sets[order[i]]);
		done = ops_intervals_subtract(&finder->sets[order[i]], &taken, &left);
		for (size_t j = 0; done && j < left.count; j++) {
			struct ops_phase_range *range = OPS_ARRAY_PUSH(&phases->ranges);

			done = range && ops_intervals_push(&taken, left.items[j].start_ns, left.items[j].end_ns);
			if (range)
				*range = (struct ops_phase_range){left.items[j].start_ns, left.items[j].end_ns, order[i]};
		}
		ops_intervals_sort(&taken);
		ops_intervals_release(&left);
	}
	ops_intervals_release(&taken);
	OPS_ARRAY_SORT(&phases->ranges, compare_ranges);
	return done;
}

static size_t phases_step_at(const struct ops_steps *steps, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, steps->list.count, mid, steps->list.items[mid].start_ns <= time_ns);
	return low;
}

/* Time between two parts of a forward pass, or of a backward pass, belongs to that pass if no other phase occurs
 * there. */
static void phases_join(struct ops_phases *phases, const struct ops_steps *steps)
{
	struct ops_phase_range *ranges = phases->ranges.items;
	size_t kept = 0;

	for (size_t i = 0; i < phases->ranges.count; i++) {
		bool passes = ranges[i].phase == OPS_PHASE_FORWARD || ranges[i].phase == OPS_PHASE_BACKWARD;

		if (kept && ranges[kept - 1].phase == ranges[i].phase &&
		    (ranges[kept - 1].end_ns == ranges[i].start_ns ||
		     (passes && phases_step_at(steps, ranges[kept - 1].start_ns) == phases_step_at(steps, ranges[i].start_ns))))
			ranges[kept - 1].end_ns = ranges[i].end_ns;
		else
			ranges[kept++] = ranges[i];
	}
	phases->ranges.count = kept;
}

static void phases_release(struct finder *finder)
{
	size_t tracks;

	ops_trace_tracks(finder->trace, &tracks);
	for (size_t i = 0; finder->tracks && i < tracks; i++)
		OPS_ARRAY_RELEASE(&finder->tracks[i].open);
	for (int i = 0; i < OPS_PHASE_COUNT; i++)
		ops_intervals_release(&finder->sets[i]);
	ops_free(finder->tracks);
	ops_free(finder->names);
	ops_free(finder->forward);
	ops_free(finder->main);
}

/* Adds up the time of each phase before each range. */
static bool sum_phases(struct ops_phases *phases)
{
	phases->before_ns = ops_alloc_zeroed(phases->ranges.count + 1, sizeof(*phases->before_ns));
	for (size_t i = 0; phases->before_ns && i < phases->ranges.count; i++) {
		const struct ops_phase_range *range = &phases->ranges.items[i];

		memcpy(phases->before_ns[i + 1], phases->before_ns[i], sizeof(*phases->before_ns));
		phases->before_ns[i + 1][range->phase] += range->end_ns - range->start_ns;
	}
	return phases->before_ns != NULL;
}

bool ops_phases_find(struct ops_phases *phases, const struct ops_trace *trace, const struct ops_steps *steps)
{
	struct finder finder = {.trace = trace, .events = ops_trace_events(trace)};
	size_t tracks;
	bool done;

	*phases = (struct ops_phases){0};
	ops_trace_tracks(trace, &tracks);
	finder.names = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, sizeof(*finder.names));
	finder.forward = ops_alloc_zeroed(finder.events->count + 1, sizeof(*finder.forward));
	finder.main = ops_alloc_zeroed(tracks + 1, sizeof(*finder.main));
	finder.tracks = ops_alloc_zeroed(tracks + 1, sizeof(*finder.tracks));
	done = finder.names && finder.forward && finder.main && finder.tracks;
	if (done) {
		find_forward(&finder);
		find_main(&finder, steps);
		done = phases_walk(&finder);
		forget_operators(&finder);
	}
	done = done && phases_merge(&finder, phases);
	if (done)
		phases_join(phases, steps);
	done = done && sum_phases(phases);
	phases_release(&finder);
	return done;
}

void ops_phases_release(struct ops_phases *phases)
{
	OPS_ARRAY_RELEASE(&phases->ranges);
	ops_free(phases->before_ns);
	phases->before_ns = NULL;
}

/* --- queries -------------------------------------------------------------------------------------------------------- */

/* Returns the first range that ends after a time. */
static size_t range_after(const struct ops_phases *phases, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, phases->ranges.count, mid, phases->ranges.items[mid].end_ns <= time_ns);
	return low;
}

enum ops_phase ops_phase_at(const struct ops_phases *phases, int64_t time_ns)
{
	size_t at = range_after(phases, time_ns);

	if (at == phases->ranges.count || phases->ranges.items[at].start_ns > time_ns)
		return OPS_PHASE_OTHER;
	return phases->ranges.items[at].phase;
}

void ops_phases_within(const struct ops_phases *phases, struct ops_interval range, int64_t ret_ns[OPS_PHASE_COUNT])
{
	const struct ops_phase_range *ranges = phases->ranges.items;
	size_t first = range_after(phases, range.start_ns), end = first;

	OPS_LOWER_BOUND(end, phases->ranges.count, mid, ranges[mid].start_ns < range.end_ns);
	ret_ns[OPS_PHASE_OTHER] = range.end_ns - range.start_ns;
	for (int phase = 0; phase < OPS_PHASE_OTHER; phase++)
		ret_ns[phase] = phases->before_ns[end][phase] - phases->before_ns[first][phase];
	if (first < end && ranges[first].start_ns < range.start_ns)
		ret_ns[ranges[first].phase] -= range.start_ns - ranges[first].start_ns;
	if (first < end && ranges[end - 1].end_ns > range.end_ns)
		ret_ns[ranges[end - 1].phase] -= ranges[end - 1].end_ns - range.end_ns;
	for (int phase = 0; phase < OPS_PHASE_OTHER; phase++)
		ret_ns[OPS_PHASE_OTHER] -= ret_ns[phase];
}

bool ops_phases_intersect(const struct ops_phases *phases, const struct ops_intervals *merged, struct ops_phases *ret_common)
{
	size_t i = 0, j = 0;

	*ret_common = (struct ops_phases){0};
	while (i < phases->ranges.count && j < merged->count) {
		const struct ops_phase_range *range = &phases->ranges.items[i];
		const struct ops_interval *interval = &merged->items[j];
		struct ops_phase_range common = {range->start_ns > interval->start_ns ? range->start_ns : interval->start_ns,
		                                 range->end_ns < interval->end_ns ? range->end_ns : interval->end_ns, range->phase};

		if (common.start_ns < common.end_ns && !OPS_ARRAY_APPEND(&ret_common->ranges, common))
			return false;
		if (range->end_ns < interval->end_ns)
			i++;
		else
			j++;
	}
	return sum_phases(ret_common);
}

const char *ops_phase_name(enum ops_phase phase)
{
	static const char *const names[] = {"data_loading", "forward", "backward", "optimizer", "other"};

	return names[phase];
}

const char *ops_phase_title(enum ops_phase phase)
{
	static const char *const titles[] = {"data loading", "forward", "backward", "optimizer", "other"};

	return titles[phase];
}
