/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps by phase of training; see view_phases.h.
 */
#include "analyze/views/view_phases.h"

#include <math.h>

#include "base/alloc.h"

static struct ops_interval host_range(const struct view_step *step)
{
	return (struct ops_interval){step->host_start_ns, step->host_end_ns};
}

/* Finds the times at which an operator runs on any thread of the processes that have steps. */
static bool view_phases_find_operators(const struct ops_views *views, struct ops_intervals *running)
{
	for (uint32_t row = 0; row < views->events->count; row++)
		if (views->parts[row] == VIEW_OPERATOR && !views->host_steps->helps[views->events->track[row]] && !ops_intervals_merge(running, view_start(views, row), view_end(views, row)))
			return false;
	return true;
}

/* Device work belongs to the phase, and to the step, in which its call starts. */
static void view_phases_add_device_work(const struct ops_views *views, const struct ops_phases *found,
                                        struct view_step_phases *phases)
{
	for (size_t i = 0; i < views->launches.count; i++) {
		const struct view_launch *launch = &views->launches.items[i];
		int64_t start_ns = view_start(views, launch->row);
		enum ops_phase phase;
		size_t step = view_step_at(views, start_ns);

		if (step == views->steps.count)
			continue;
		phase = ops_phase_at(found, start_ns);
		for (uint32_t e = launch->first; e != OPS_NONE; e = views->device_events.items[e].next)
			view_add(&phases->steps[step].device_ns[phase],
			         view_duration(views, views->device_events.items[e].row));
	}
}

static void average(const struct ops_views *views, struct view_step_phases *phases)
{
	size_t from = view_averaged_from(views);
	double count = (double)(views->steps.count - from);

	for (size_t i = from; i < views->steps.count; i++)
		for (int phase = 0; phase < OPS_PHASE_COUNT; phase++) {
			phases->host_ns[phase] += (double)phases->steps[i].host_ns[phase] / count;
			phases->operators_ns[phase] += (double)phases->steps[i].operators_ns[phase] / count;
			phases->device_ns[phase] += (double)phases->steps[i].device_ns[phase] / count;
			phases->total_ns += (double)phases->steps[i].host_ns[phase] / count;
			phases->known |= phase != OPS_PHASE_OTHER && phases->steps[i].host_ns[phase] > 0;
		}
}

bool view_phases_find(const struct ops_views *views, struct view_step_phases *phases)
{
	size_t count = views->steps.count;
	struct ops_intervals running = {0};
	struct ops_phases found = {0}, operating = {0};
	struct ops_interval_sums sums = {0};
	bool done;

	*phases = (struct view_step_phases){.steps = ops_alloc_zeroed(count + 1, sizeof(*phases->steps))};
	done = phases->steps && view_phases_find_operators(views, &running) &&
	       ops_phases_find(&found, views->trace, views->host_steps) && ops_phases_intersect(&found, &running, &operating) &&
	       ops_interval_sums_init(&sums, &running);
	for (size_t i = 0; done && i < count; i++) {
		struct ops_interval range = host_range(&views->steps.items[i]);

		ops_phases_within(&found, range, phases->steps[i].host_ns);
		ops_phases_within(&operating, range, phases->steps[i].operators_ns);
		/* Of the time outside of phases, only what an operator takes counts. */
		phases->steps[i].operators_ns[OPS_PHASE_OTHER] -= range.end_ns - range.start_ns - ops_interval_sums_within(&sums, range.start_ns, range.end_ns);
	}
	if (done) {
		view_phases_add_device_work(views, &found, phases);
		average(views, phases);
	}
	ops_interval_sums_release(&sums);
	ops_phases_release(&operating);
	ops_phases_release(&found);
	ops_intervals_release(&running);
	return done;
}

void view_phases_release(struct view_step_phases *phases)
{
	ops_free(phases->steps);
	phases->steps = NULL;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void view_phases_write_averages(struct ops_json_writer *json, const char *key, const double ns[OPS_PHASE_COUNT],
                                       double total_ns)
{
	ops_json_member_open(json, key, '{');
	for (int phase = 0; phase < OPS_PHASE_COUNT; phase++) {
		ops_json_member_number(json, ops_phase_name((enum ops_phase)phase), ns[phase] / 1000);
	}
	if (total_ns >= 0) {
		ops_json_member_number(json, "total", total_ns / 1000);
	}
	ops_json_close(json, '}');
}

void view_phases_write(const struct ops_views *views, const struct view_step_phases *phases, struct ops_json_writer *json)
{
	ops_json_key(json, "phases");
	if (!phases->known) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member_open(json, "rows", '[');
	for (size_t i = 0; i < views->steps.count; i++) {
		const struct view_step *step = &views->steps.items[i];

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", step->name);
		for (int phase = 0; phase < OPS_PHASE_COUNT; phase++)
			ops_json_member_us(json, ops_phase_name((enum ops_phase)phase), phases->steps[i].host_ns[phase]);
		ops_json_member_us(json, "total", step->host_end_ns - step->host_start_ns);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	view_phases_write_averages(json, "average", phases->host_ns, phases->total_ns);
	ops_json_member_open(json, "average_pct", '{');
	for (int phase = 0; phase < OPS_PHASE_COUNT; phase++) {
		ops_json_member_number(json, ops_phase_name((enum ops_phase)phase),
		                       phases->total_ns > 0 ? 100 * phases->host_ns[phase] / phases->total_ns : (double)NAN);
	}
	ops_json_close(json, '}');
	view_phases_write_averages(json, "average_operators", phases->operators_ns, -1);
	view_phases_write_averages(json, "average_device", phases->device_ns, -1);
	ops_json_close(json, '}');
}
