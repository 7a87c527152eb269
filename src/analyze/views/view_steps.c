/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and how their time is spent. A step lasts until the last device work that it launched has ended. Work of a
 * category of higher rank hides that of the others.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/view_step_stats.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/search.h"
#include "derive/launches.h"

static int64_t view_steps_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* --- host steps ----------------------------------------------------------------------------------------------------- */

static bool view_steps_add_step(struct ops_views *views, struct ops_string name, int64_t start_ns, int64_t end_ns)
{
	return OPS_ARRAY_APPEND(&views->steps, (struct view_step){.name = name, .host_start_ns = start_ns, .host_end_ns = end_ns,
	                                                          .start_ns = start_ns, .end_ns = end_ns});
}

/* Includes calls outside of operators that launch device work, such as a replay of a CUDA graph. Returns false if out of memory. */
static bool extend_to_launches(const struct ops_views *views, int64_t *start_ns, int64_t *end_ns)
{
	const uint32_t *launchers = ops_launchers(views->trace);

	for (uint32_t row = 0; launchers && row < views->events->count; row++) {
		uint32_t call = launchers[row];

		if (!ops_kind_is_work(views->events->kind[row]) || call == OPS_NONE)
			continue;
		*start_ns = *start_ns < view_start(views, call) ? *start_ns : view_start(views, call);
		*end_ns = view_steps_later(*end_ns, view_end(views, call));
	}
	return launchers != NULL;
}

/* Without marked steps, adds one step: all host work, or all events if there is none. A trace that has only memory
 * records has no step. */
static bool view_steps_add_whole(struct ops_views *views)
{
	int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
	bool host = false;

	for (int pass = 0; pass < 2 && !host; pass++)
		for (uint32_t row = 0; row < views->events->count; row++) {
			uint8_t part = views->parts[row];
			bool taken = pass ? part != VIEW_NOTHING && part != VIEW_WINDOW
			                  : part == VIEW_OPERATOR || part == VIEW_OLD_PYTHON || part == VIEW_LOADER ||
			                            part == VIEW_OPTIMIZER;

			if (!taken)
				continue;
			host = true;
			start_ns = start_ns < view_start(views, row) ? start_ns : view_start(views, row);
			end_ns = view_steps_later(end_ns, view_end(views, row));
		}
	if (host && !views->policy->only_marked_steps && !extend_to_launches(views, &start_ns, &end_ns))
		return false;
	return !host || view_steps_add_step(views, (struct ops_string){"0", 1}, start_ns, end_ns);
}

/* Finds steps by number, and by how often their process had that number before. */
struct step_finder {
	struct ops_map processes; /* from process id to its index */
	struct ops_map numbers;   /* from number of a step to its index */
	struct ops_map times;     /* from process and step to the number of earlier ones */
	struct ops_map steps;     /* from step and occurrence to index in views.steps */
};

/* Returns "12" for "ProfilerStep#12". */
static struct ops_string view_steps_number_of(struct ops_string name)
{
	size_t digits = 0;

	while (digits < name.size && name.bytes[name.size - 1 - digits] >= '0' && name.bytes[name.size - 1 - digits] <= '9')
		digits++;
	return (struct ops_string){name.bytes + name.size - digits, digits};
}

/* Finds the step that another process, which runs the same step at the same time, began before; OPS_NONE if it is new.
 * Returns false if out of memory. */
static bool find_step(const struct ops_views *views, struct step_finder *finder, const struct ops_step *step, uint32_t *ret_step)
{
	size_t tracks;
	int64_t pid = ops_trace_tracks(views->trace, &tracks)[step->track].pid;
	uint32_t *process = ops_map_slot(&finder->processes, (uint64_t)pid, (uint32_t)finder->processes.count);
	uint32_t *number = ops_map_slot(&finder->numbers, (uint64_t)step->number, (uint32_t)finder->numbers.count);
	uint32_t *times = process && number ? ops_map_slot(&finder->times, (uint64_t)*process << 32 | *number, 0) : NULL;
	uint32_t *place = times ? ops_map_slot(&finder->steps, (uint64_t)*number << 32 | (*times)++, (uint32_t)views->steps.count) : NULL;

	if (!place)
		return false;
	if (*place < views->steps.count && views->steps.items[*place].host_end_ns <= step->start_ns)
		*place = (uint32_t)views->steps.count; /* that one was at another time */
	*ret_step = *place < views->steps.count ? *place : OPS_NONE;
	return true;
}

static bool add_view_step(struct ops_views *views, struct step_finder *finder, const struct ops_step *step)
{
	struct view_step *known;
	uint32_t at;
	bool done;

	if (!find_step(views, finder, step, &at))
		return false;
	if (at == OPS_NONE) {
		done = view_steps_add_step(views,
		                           step->row == OPS_NONE ? (struct ops_string){step->text, strlen(step->text)}
		                                                 : view_steps_number_of(view_row_name(views, step->row)),
		                           step->start_ns, step->end_ns);
		if (done)
			views->steps.items[views->steps.count - 1].kind = (enum ops_iteration_kind)step->kind;
		return done;
	}
	known = &views->steps.items[at];
	known->host_end_ns = known->end_ns = view_steps_later(known->end_ns, step->end_ns);
	return true;
}

/* Adds the rows that mark steps. Those on devices count as if they were further steps. */
static bool add_marked_steps(struct ops_views *views, struct step_finder *finder)
{
	bool done = true;

	for (uint32_t row = 0; done && row < views->events->count; row++) {
		struct ops_step step = {.row = row, .track = views->events->track[row], .start_ns = view_start(views, row),
		                        .end_ns = view_end(views, row)};

		if (views->parts[row] != VIEW_STEP)
			continue;
		ops_step_number(view_row_name(views, row), &step.number);
		if (views->events->kind[row] == OPS_EVENT_GPU_USER_ANNOTATION)
			done = view_steps_add_step(views, view_steps_number_of(view_row_name(views, row)), step.start_ns, step.end_ns);
		else
			done = add_view_step(views, finder, &step);
	}
	return done;
}

/* A step that several processes run together counts as one, as in a trace merged from several ranks. */
static bool find_host_steps(struct ops_views *views)
{
	struct step_finder finder = {0};
	bool done = (views->host_steps = ops_steps_of(views->trace)) != NULL;

	if (done && views->policy->only_marked_steps)
		done = add_marked_steps(views, &finder);
	for (size_t i = 0; done && !views->policy->only_marked_steps && i < views->host_steps->list.count; i++)
		if (!views->host_steps->list.items[i].is_shadow)
			done = add_view_step(views, &finder, &views->host_steps->list.items[i]);
	ops_map_release(&finder.processes);
	ops_map_release(&finder.numbers);
	ops_map_release(&finder.times);
	ops_map_release(&finder.steps);
	views->unmarked = !views->steps.count;
	return done && (views->steps.count || view_steps_add_whole(views));
}

/* --- device time ---------------------------------------------------------------------------------------------------- */

static void view_steps_add_device_event(const struct ops_views *views, struct view_step *step, uint32_t row)
{
	if (step->device_events++ == 0 || view_start(views, row) < step->device_start_ns)
		step->device_start_ns = view_start(views, row);
	if (step->device_events == 1 || view_end(views, row) > step->device_end_ns)
		step->device_end_ns = view_end(views, row);
}

/* Adds the launched work of each call to the steps. Both are in order of start, so `first` advances with the steps. A
 * call belongs to the first step that contains it completely; steps of one program do not overlap. */
static void view_steps_add_launches(struct ops_views *views, uint8_t *in_step)
{
	size_t step = 0;

	for (size_t i = 0; i < views->launches.count; i++) {
		const struct view_launch *launch = &views->launches.items[i];
		int64_t start_ns = view_start(views, launch->row);

		while (step + 1 < views->steps.count && views->steps.items[step + 1].host_start_ns <= start_ns)
			step++;
		for (size_t s = step; s < views->steps.count && s + 2 > step; s--) {
			struct view_step *in = &views->steps.items[s];

			if (start_ns < in->host_start_ns || view_end(views, launch->row) > in->host_end_ns)
				continue;
			for (uint32_t e = launch->first; e != OPS_NONE; e = views->device_events.items[e].next) {
				in_step[e] = 1;
				view_steps_add_device_event(views, in, views->device_events.items[e].row);
			}
			break;
		}
	}
}

/* Returns the start of the first step, which is not before earlier work on the device ends. */
static int64_t first_start(const struct ops_views *views, const uint8_t *in_step)
{
	const struct view_step *first = &views->steps.items[0];
	int64_t start_ns = first->host_start_ns;

	if (!first->device_events)
		return start_ns;
	for (size_t i = 0; i < views->device_events.count; i++) {
		int64_t end_ns = view_end(views, views->device_events.items[i].row);

		if (!in_step[i] && end_ns < first->device_start_ns)
			start_ns = view_steps_later(start_ns, end_ns);
	}
	return start_ns;
}

/* Drops trailing steps whose device work is not recorded completely, and reports that. Iterations of a server differ in
 * what they launch, so fewer events do not mean that some are missing. */
static void drop_last(struct ops_views *views)
{
	size_t *count = &views->steps.count, before = *count;
	const struct view_step *steps = views->steps.items;

	while (*count > 1 && steps[*count - 1].device_events == 0)
		--*count;
	if (*count > 1 && views->host_steps->source != OPS_STEPS_ITERATIONS &&
	    (double)steps[*count - 2].device_events * 0.8 > (double)steps[*count - 1].device_events)
		--*count;
	views->left_out = before - *count;
}

static bool view_steps_stretch(struct ops_views *views)
{
	uint8_t *in_step = ops_alloc_zeroed(views->device_events.count + 1, sizeof(*in_step));
	bool any = false;
	int64_t at_ns;

	if (!in_step)
		return false;
	view_steps_add_launches(views, in_step);
	for (size_t i = 0; i < views->steps.count; i++)
		any |= views->steps.items[i].device_events != 0;
	if (any) {
		at_ns = first_start(views, in_step);
		for (size_t i = 0; i < views->steps.count; i++) {
			struct view_step *step = &views->steps.items[i];

			step->start_ns = view_steps_later(at_ns, step->host_start_ns);
			step->end_ns = view_steps_later(step->host_end_ns,
			                                step->device_events ? step->device_end_ns : step->start_ns);
			step->end_ns = view_steps_later(step->end_ns, step->start_ns);
			at_ns = step->end_ns;
		}
		drop_last(views);
	}
	ops_free(in_step);
	return true;
}

/* --- categories ----------------------------------------------------------------------------------------------------- */

static enum view_category view_steps_category_of(const struct ops_views *views, uint32_t row)
{
	if (views->host_steps->helps[views->events->track[row]])
		return VIEW_TIME_COUNT;
	switch (views->parts[row]) {
	case VIEW_KERNEL:
		return VIEW_TIME_KERNEL;
	case VIEW_COPY:
		return VIEW_TIME_MEMCPY;
	case VIEW_FILL:
		return VIEW_TIME_MEMSET;
	case VIEW_LAUNCH:
		return VIEW_TIME_RUNTIME;
	case VIEW_LOADER:
		return VIEW_TIME_LOADER;
	case VIEW_OPERATOR:
	case VIEW_LABEL:
		return views->names[views->events->name[row]] & VIEW_NAME_COLLECTIVE ? VIEW_TIME_COMMUNICATION : VIEW_TIME_CPU;
	case VIEW_OLD_PYTHON:
	case VIEW_OPTIMIZER:
		return VIEW_TIME_CPU;
	default:
		return VIEW_TIME_COUNT;
	}
}

/* The work of a category, without what the TensorBoard plugin also counts: labels, and calls of collectives that
 * kernels execute. */
struct work {
	struct ops_intervals computing;
	struct ops_intervals talking;
};

static bool add_work(const struct ops_views *views, struct work *work, uint32_t row, enum view_category category)
{
	uint16_t name = views->names[views->events->name[row]];
	bool computes = views->policy->labels_compute || views->parts[row] != VIEW_LABEL;
	bool talks = views->policy->host_calls_count || !(views->has_kernels && (name & VIEW_NAME_NCCL));

	if (category == VIEW_TIME_CPU && computes)
		return ops_intervals_merge(&work->computing, view_start(views, row), view_end(views, row));
	if (category == VIEW_TIME_COMMUNICATION && talks)
		return ops_intervals_merge(&work->talking, view_start(views, row), view_end(views, row));
	return true;
}

static bool collect_times(struct ops_views *views, struct work *work)
{
	uint32_t next = 0; /* device events are also rows in order */

	for (uint32_t row = 0; row < views->events->count; row++) {
		enum view_category category = view_steps_category_of(views, row);
		int64_t start_ns = view_start(views, row), end_ns = view_end(views, row);

		if (category <= VIEW_TIME_MEMSET) {
			const struct view_device_event *event = &views->device_events.items[next++];

			if (event->communicates)
				category = VIEW_TIME_COMMUNICATION;
			if (event->part == VIEW_KERNEL && !ops_intervals_merge(&views->all_kernels, start_ns, end_ns))
				return false;
		}
		if (category != VIEW_TIME_COUNT && !ops_intervals_merge(&views->times[category], start_ns, end_ns))
			return false;
		if (!add_work(views, work, row, category))
			return false;
	}
	for (int i = 0; i < VIEW_TIME_COUNT; i++)
		ops_intervals_trim(&views->times[i]);
	ops_intervals_trim(&views->all_kernels);
	return true;
}

/* Adds its part of these spans to each step. Steps may contain others. */
static bool view_steps_share_out(struct ops_views *views, const struct ops_intervals *spans, enum view_category category)
{
	struct ops_interval_sums sums;
	bool done = ops_interval_sums_init(&sums, spans);

	for (size_t i = 0; done && i < views->steps.count; i++) {
		struct view_step *step = &views->steps.items[i];

		step->time_ns[category] = ops_interval_sums_within(&sums, step->start_ns, step->end_ns);
	}
	ops_interval_sums_release(&sums);
	return done;
}

/* Adds to each step the part of a category that is not work. */
static bool set_apart(struct ops_views *views, const struct ops_intervals *taken, const struct work *work,
                      enum view_category category)
{
	struct ops_intervals idle = {0};
	struct ops_interval_sums sums = {0};
	bool done = category != VIEW_TIME_CPU && category != VIEW_TIME_COMMUNICATION;

	if (done)
		return true;
	done = ops_intervals_subtract(taken, category == VIEW_TIME_CPU ? &work->computing : &work->talking, &idle) &&
	       ops_interval_sums_init(&sums, &idle);
	for (size_t i = 0; done && i < views->steps.count; i++) {
		struct view_step *step = &views->steps.items[i];

		*(category == VIEW_TIME_CPU ? &step->label_ns : &step->call_ns) =
			ops_interval_sums_within(&sums, step->start_ns, step->end_ns);
	}
	ops_interval_sums_release(&sums);
	ops_intervals_release(&idle);
	return done;
}

static bool add_all_steps(const struct ops_views *views, struct ops_intervals *spans)
{
	for (size_t i = 0; i < views->steps.count; i++)
		if (!ops_intervals_merge(spans, views->steps.items[i].start_ns, views->steps.items[i].end_ns))
			return false;
	return true;
}

static bool break_down(struct ops_views *views, const struct work *work)
{
	struct ops_intervals free_spans = {0};
	bool done = add_all_steps(views, &free_spans);

	for (int category = 0; done && category < VIEW_TIME_OTHER; category++) {
		struct ops_intervals taken = {0}, left = {0};

		if (views->policy->breakdown_restarts && !free_spans.count && !add_all_steps(views, &free_spans))
			return false;
		done = ops_intervals_intersect(&views->times[category], &free_spans, &taken) &&
		       ops_intervals_subtract(&free_spans, &views->times[category], &left) &&
		       view_steps_share_out(views, &taken, (enum view_category)category) &&
		       set_apart(views, &taken, work, (enum view_category)category);
		ops_intervals_release(&taken);
		ops_intervals_release(&free_spans);
		free_spans = left; /* an empty list stays empty */
	}
	done = done && view_steps_share_out(views, &free_spans, VIEW_TIME_OTHER);
	ops_intervals_release(&free_spans);
	return done;
}

/* A collective belongs to the step that contains its host part completely. Both are in order of start. */
static void assign_collectives(struct ops_views *views)
{
	for (size_t i = 0; i < views->collectives.count; i++) {
		struct view_collective *collective = &views->collectives.items[i];
		size_t low = 0;

		OPS_LOWER_BOUND(low, views->steps.count, mid,
		                views->steps.items[mid].start_ns <= view_start(views, collective->row));
		if (low && view_end(views, collective->row) <= views->steps.items[low - 1].end_ns)
			collective->step = (uint32_t)(low - 1);
	}
}

bool view_steps_find(struct ops_views *views)
{
	struct work work = {0};
	bool done = find_host_steps(views) && view_steps_stretch(views) && collect_times(views, &work) &&
	            break_down(views, &work);

	if (done)
		assign_collectives(views);
	ops_intervals_release(&work.computing);
	ops_intervals_release(&work.talking);
	return done;
}

/* --- figures -------------------------------------------------------------------------------------------------------- */

static int64_t view_steps_step_ns(const struct view_step *step, enum view_category category)
{
	return category == VIEW_TIME_COUNT ? step->end_ns - step->start_ns : step->time_ns[category];
}

static const char *const names[] = {"kernel", "memcpy", "memset", "communication", "runtime",
                                    "dataloader", "cpu_exec", "other", "total"};

const char *view_category_name(enum view_category category)
{
	return names[category];
}

const char *view_category_title(enum view_category category)
{
	static const char *const titles[] = {"kernels",       "memory copies", "memory sets", "communication",
	                                     "runtime calls", "data loading",  "operators",   "other"};

	return titles[category];
}

size_t view_step_at(const struct ops_views *views, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, views->steps.count, mid, views->steps.items[mid].host_start_ns <= time_ns);
	return low && time_ns < views->steps.items[low - 1].host_end_ns ? low - 1 : views->steps.count;
}

double view_outside_ratio(const struct ops_views *views)
{
	const struct ops_events *events = views->events;
	double all_ns = 0, outside_ns = 0;

	for (uint32_t row = 0; !views->unmarked && row < events->count; row++) {
		if (views->parts[row] != VIEW_OPERATOR || events->track[row] != views->host_steps->list.items[0].track)
			continue;
		all_ns += (double)events->self_ns[row];
		if (view_step_at(views, view_start(views, row)) == views->steps.count)
			outside_ns += (double)events->self_ns[row];
	}
	return all_ns > 0 ? outside_ns / all_ns : 0;
}

int64_t view_step_shown_ns(const struct view_step *step, enum view_category category)
{
	int64_t time_ns = view_steps_step_ns(step, category);

	switch (category) {
	case VIEW_TIME_COMMUNICATION:
		return time_ns - step->call_ns;
	case VIEW_TIME_CPU:
		return time_ns - step->label_ns + step->call_ns;
	case VIEW_TIME_OTHER:
		return time_ns + step->label_ns;
	default:
		return time_ns;
	}
}

static int64_t label_ns(const struct view_step *step, enum view_category category)
{
	(void)category;
	return step->label_ns;
}

static int64_t call_ns(const struct view_step *step, enum view_category category)
{
	(void)category;
	return step->call_ns;
}

typedef int64_t step_time(const struct view_step *step, enum view_category category);

size_t view_averaged_from(const struct ops_views *views)
{
	return views->policy == ops_policy_of(OPS_RULES_OPSTROBE) && views->host_steps->first_is_apart && views->steps.count > 1 ? 1 : 0;
}

static double average_ns(const struct ops_views *views, step_time *time, enum view_category category)
{
	size_t from = time == view_step_shown_ns ? view_averaged_from(views) : 0; /* the plugin's means cover all steps */
	double sum_ns = 0;

	for (size_t i = from; i < views->steps.count; i++)
		sum_ns += (double)time(&views->steps.items[i], category);
	return views->steps.count ? sum_ns / (double)(views->steps.count - from) : 0;
}

bool view_averages(const struct ops_views *views, int64_t time_ns)
{
	if (view_averaged_from(views))
		return ops_steps_averages(views->host_steps, time_ns);
	return !views->host_steps->list.count || ops_steps_at(views->host_steps, time_ns) != OPS_NONE;
}

bool view_averages_event(const struct ops_views *views, const struct view_device_event *event)
{
	uint32_t row = event->launch == OPS_NONE ? event->row : views->launches.items[event->launch].row;

	return !event->queued_before && view_averages(views, view_start(views, row));
}

double view_step_divisor(const struct ops_views *views)
{
	return views->unmarked ? (double)NAN : (double)(ops_steps_counted(views->host_steps) - view_averaged_from(views));
}

double view_step_average_ns(const struct ops_views *views, enum view_category category)
{
	return average_ns(views, view_steps_step_ns, category);
}

double view_step_shown_average_ns(const struct ops_views *views, enum view_category category)
{
	return average_ns(views, view_step_shown_ns, category);
}

/* `with_labels`: also writes the two parts that step_ns and view_step_shown_ns() assign to different categories. */
static void view_steps_write_rows(const struct ops_views *views, step_time *time, bool with_labels,
                                  struct ops_json_writer *json)
{
	ops_json_member_open(json, "rows", '[');
	for (size_t i = 0; i < views->steps.count; i++) {
		const struct view_step *step = &views->steps.items[i];

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", step->name);
		if (step->kind != OPS_ITERATION_NONE)
			ops_json_member_text(json, "kind", ops_iteration_kind_name(step->kind));
		for (int c = 0; c <= VIEW_TIME_COUNT; c++)
			ops_json_member_us(json, names[c], time(step, (enum view_category)c));
		if (with_labels) {
			ops_json_member_us(json, "cpu_exec_labels", step->label_ns);
			ops_json_member_us(json, "communication_calls", step->call_ns);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void view_steps_write_average(const struct ops_views *views, const char *name, step_time *time,
                                     enum view_category category, struct ops_json_writer *json)
{
	ops_json_member_number(json, name, average_ns(views, time, category) / 1000);
}

static void view_steps_write_averages(const struct ops_views *views, step_time *time, bool with_labels,
                                      struct ops_json_writer *json)
{
	double total_ns = average_ns(views, time, VIEW_TIME_COUNT);

	ops_json_member_open(json, "average", '{');
	for (int c = 0; c <= VIEW_TIME_COUNT; c++)
		view_steps_write_average(views, names[c], time, (enum view_category)c, json);
	if (with_labels) {
		view_steps_write_average(views, "cpu_exec_labels", label_ns, VIEW_TIME_COUNT, json);
		view_steps_write_average(views, "communication_calls", call_ns, VIEW_TIME_COUNT, json);
	}
	ops_json_close(json, '}');
	ops_json_member_open(json, "average_pct", '{');
	for (int c = 0; c <= VIEW_TIME_COUNT; c++) {
		double part_ns = average_ns(views, time, (enum view_category)c), percent = 100 * part_ns / total_ns;

		assert(part_ns >= 0 && part_ns <= total_ns * (1 + 1e-6));
		if (with_labels) /* like the plugin */
			percent = rint(10000 * part_ns / total_ns) / 100;
		ops_json_member_number(json, names[c], total_ns > 0 ? percent : (double)NAN);
	}
	ops_json_close(json, '}');
}

bool view_write_steps(const struct ops_views *views, struct ops_json_writer *json)
{
	struct view_step_phases phases;
	struct view_step_stats stats = {0};
	bool done = view_phases_find(views, &phases) && view_step_stats_find(views, &phases, &stats);
	const char *source = ops_steps_source_name(views->host_steps->source);

	ops_json_member_open(json, "steps", '{');
	ops_json_key(json, "from"); /* without steps the trace is one step, "0" */
	ops_json_word(json, source);
	OPS_JSON_LIST(json, "names", i, views->steps.count,
	              ops_json_text(json, views->steps.items[i].name.bytes, views->steps.items[i].name.size));
	view_steps_write_rows(views, view_steps_step_ns, true, json);
	ops_json_member(json, "left_out", (int64_t)views->left_out);
	ops_json_member_open(json, "left_out_names", '[');
	for (size_t i = 0; i < views->left_out; i++) /* they follow the steps that count */
		ops_json_text(json, views->steps.items[views->steps.count + i].name.bytes,
		              views->steps.items[views->steps.count + i].name.size);
	ops_json_close(json, ']');
	view_steps_write_averages(views, view_steps_step_ns, true, json);
	ops_json_key(json, "apart");
	if (view_averaged_from(views))
		ops_json_text(json, views->steps.items[0].name.bytes, views->steps.items[0].name.size);
	else
		ops_json_null(json);
	ops_json_member_number(json, "outside_ratio", view_outside_ratio(views));
	ops_json_key(json, "breakdown"); /* the parts shown in text, for the viewer */
	ops_json_open(json, '{');
	view_steps_write_rows(views, view_step_shown_ns, false, json);
	view_steps_write_averages(views, view_step_shown_ns, false, json);
	ops_json_close(json, '}');
	if (done) {
		view_phases_write(views, &phases, json);
		view_step_stats_write(views, &stats, json);
	}
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	ops_json_close(json, '}');
	return done;
}
