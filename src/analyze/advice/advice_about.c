/* SPDX-License-Identifier: Apache-2.0
 *
 * Members about a trace in a list of traces, in addition to its first finding.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/ranks/trace_job.h"
#include "analyze/views/view_phases.h"
#include "analyze/views/view_step_stats.h"
#include "derive/extent.h"

static bool write_steps(const struct ops_views *views, struct ops_json_writer *json)
{
	struct view_step_phases phases;
	struct view_step_stats stats = {0};
	bool done = view_phases_find(views, &phases) && view_step_stats_find(views, &phases, &stats);

	ops_json_member_open(json, "steps", '{');
	ops_json_member_text(json, "from", ops_steps_source_name(views->host_steps->source));
	ops_json_member(json, "count", views->unmarked ? 0 : (int64_t)views->steps.count);
	ops_json_member_number(json, "median", !views->unmarked && views->steps.count ? stats.median_ns / 1000 : (double)NAN);
	ops_json_close(json, '}');
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	return done;
}

/* Writes the names of the devices that ran kernels. */
static void write_devices(const struct ops_views *views, struct ops_json_writer *json)
{
	ops_json_member_open(json, "devices", '[');
	for (size_t i = 0; i < views->gpus.count; i++) {
		struct ops_string name = {"", 0};
		char text[32];

		for (size_t j = 0; j < views->devices.count; j++)
			if (views->devices.items[j].id == views->gpus.items[i])
				name = views->devices.items[j].name_json;
		snprintf(text, sizeof(text), "\"GPU %lld\"", (long long)views->gpus.items[i]);
		ops_json_raw(json, name.size ? name.bytes : text, name.size ? name.size : strlen(text));
	}
	ops_json_close(json, ']');
}

/* Writes the command line, which recordings by Opstrobe contain. */
static void write_command(const struct ops_trace *trace, struct ops_json_writer *json)
{
	struct ops_string command;

	ops_json_key(json, "command");
	if (trace_find_member(trace, "recording", "command", &command) && command.size && command.bytes[0] == '"')
		ops_json_raw(json, command.bytes, command.size);
	else
		ops_json_null(json);
}

bool advice_write_about(const struct ops_rank *rank, struct ops_json_writer *json)
{
	const char *host = ops_trace_info(rank->trace)->host_name;
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, rank->trace, OPS_RULES_OPSTROBE, true);
	struct ops_interval extent = ops_extent_of(rank->trace);
	struct ops_trace_job job;
	bool done = views != NULL;

	trace_job_read(rank->trace, rank->path, &job);
	ops_json_member(json, "start_ns", job.start_ns);
	ops_json_member_us(json, "duration_us", ops_difference(extent.end_ns, extent.start_ns));
	if (done) {
		done = write_steps(views, json);
		write_devices(views, json);
	}
	ops_views_release(&own);
	ops_json_member_or_null(json, "rank", job.rank);
	ops_json_member_or_null(json, "world_size", job.world_size);
	ops_json_key(json, "host");
	if (*host)
		ops_json_word(json, host);
	else
		ops_json_null(json);
	write_command(rank->trace, json);
	return done;
}
