/* SPDX-License-Identifier: Apache-2.0
 *
 * The report on an incident: its facts, the cause, the differences from earlier steps, open events, and memory.
 */
#include <opstrobe/internal/incidents.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/query.h>

#include "analyze/incident/incident.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "base/json_writer.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/steps.h"

#define OPEN_MAX 32   /* limit on the listed open events */
#define SAMPLED_MAX 10 /* places of samples that are listed */
#define GROWTH_STEPS 3 /* fewer steps do not show how much a step adds */

struct report {
	const struct incident_facts *facts;
	const struct ops_trace *trace;
	struct ops_views own;
	const struct ops_views *views; /* NULL: no trace */
	struct view_step_stats stats;
	const struct view_outlier *outlier; /* NULL: the step is not in the trace, or there are too few steps */
	struct incident_sampled sampled;
	struct ops_json_writer json;
};

/* --- differences -------------------------------------------------------------------------------------------------------- */

/* Returns false if out of memory. */
static bool report_explain(struct report *report)
{
	struct view_step_phases phases = {0};
	size_t step = 0;
	char name[24];
	bool done;

	if (!report->views || !report->facts->has_step || report->views->unmarked)
		return true;
	snprintf(name, sizeof(name), "%lld", (long long)report->facts->step);
	while (step < report->views->steps.count && !ops_string_is(report->views->steps.items[step].name, name))
		step++;
	if (step == report->views->steps.count || report->views->steps.count < 3)
		return true;
	done = view_phases_find(report->views, &phases) && view_step_stats_explain(report->views, &phases, step, &report->stats);
	view_phases_release(&phases);
	if (done && report->stats.outlier_count)
		report->outlier = &report->stats.outliers[0];
	return done;
}

/* --- open events ---------------------------------------------------------------------------------------------------------- */

/* Writes the innermost events of each thread that had not ended. */
static void write_open(struct report *report)
{
	const struct ops_events *events = report->trace ? ops_trace_events(report->trace) : NULL;
	size_t tracks_count, count = 0;
	const struct ops_track *tracks = report->trace ? ops_trace_tracks(report->trace, &tracks_count) : NULL;

	ops_json_key(&report->json, "open_events");
	ops_json_open(&report->json, '[');
	for (size_t row = events ? events->count : 0; row-- > 0 && count < OPEN_MAX;) {
		if (!(events->flags[row] & OPS_EVENT_UNFINISHED) || events->flags[row] & OPS_EVENT_HIDDEN)
			continue;
		ops_json_open(&report->json, '{');
		ops_json_member(&report->json, "tid", tracks[events->track[row]].tid);
		ops_json_member_string(&report->json, "name", ops_trace_string(report->trace, events->name[row]));
		ops_json_member(&report->json, "open_ns", events->end_ns[row] - events->start_ns[row]);
		ops_json_close(&report->json, '}');
		count++;
	}
	ops_json_close(&report->json, ']');
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

/* Finds how much a step adds, by the median, to the bytes that the CPU's allocator or that of the first reporting
 * device holds at its end. Returns false if there are too few steps. */
static bool memory_growth(const struct report *report, int64_t *ret_bytes)
{
	const struct ops_steps *steps = ops_steps_of(report->trace);
	size_t count, at = 0, known = 0;
	const struct ops_memory_record *records = ops_trace_memory(report->trace, &count);
	double *growth = steps && steps->list.count && count ? ops_alloc_zeroed(steps->list.count, sizeof(*growth)) : NULL;
	int64_t live = 0, before = 0;

	if (!growth)
		return false;
	for (size_t i = 0; i < steps->list.count; i++) {
		for (; at < count && records[at].time_ns <= steps->list.items[i].end_ns; at++)
			live += records[at].out_of_memory ? 0 : records[at].bytes;
		if (i)
			growth[known++] = (double)(live - before);
		before = live;
	}
	*ret_bytes = (int64_t)ops_median(growth, known);
	ops_free(growth);
	return known >= GROWTH_STEPS;
}

static void write_memory_report(struct report *report)
{
	const struct ops_rank rank = {.trace = report->trace};
	const struct ops_run run = {.ranks = &rank, .count = 1};
	struct ops_query_options options = {.size = sizeof(options), .format = OPS_FORMAT_TEXT, .columns = 100, .args = "{\"limit\": 5}"};
	struct ops_error error;
	size_t count = 0, size;
	int64_t growth;
	char *text;

	if (report->trace)
		ops_trace_memory(report->trace, &count);
	ops_json_key(&report->json, "memory");
	if (!count) {
		ops_json_null(&report->json);
		return;
	}
	ops_json_open(&report->json, '{');
	ops_json_key(&report->json, "growth_per_step_bytes");
	if (memory_growth(report, &growth))
		ops_json_integer(&report->json, growth);
	else
		ops_json_null(&report->json);
	if (!ops_query(&run, "memory", &options, &text, &size, &error)) {
		ops_json_member_string(&report->json, "text", (struct ops_string){text, size});
		ops_free(text);
	}
	options.format = OPS_FORMAT_JSON;
	if (!ops_query(&run, "memory", &options, &text, &size, &error)) {
		ops_json_key(&report->json, "held");
		ops_json_raw(&report->json, text, size);
		ops_free(text);
	}
	ops_json_close(&report->json, '}');
}

/* --- report --------------------------------------------------------------------------------------------------------------- */

static void write_place(struct report *report, const struct incident_frame *place)
{
	ops_json_key(&report->json, "where");
	if (!place || !place->file.size) {
		ops_json_null(&report->json);
		return;
	}
	ops_json_open(&report->json, '{');
	ops_json_member_string(&report->json, "file", place->file);
	ops_json_member(&report->json, "line", place->line);
	ops_json_member_string(&report->json, "function", place->function);
	ops_json_close(&report->json, '}');
}

/* Writes the C functions in which each of `threads` is, in their order, if native stacks were read. */
static void write_native(struct report *report)
{
	const struct incident_facts *facts = report->facts;
	struct ops_json_writer *json = &report->json;
	struct ops_string native;

	if (!ops_json_find_member(facts->json, "native", &native))
		return;
	ops_json_member_open(json, "thread_native", '[');
	for (size_t i = 0; i < facts->threads.count; i++) {
		const struct incident_stack *stack = &facts->threads.items[i];

		ops_json_open(json, '[');
		for (size_t k = 0; k < stack->native_count; k++) {
			ops_json_open(json, '{');
			ops_json_member_string(json, "file", stack->native[k].file);
			ops_json_member(json, "line", stack->native[k].line);
			ops_json_member_string(json, "function", stack->native[k].function);
			ops_json_close(json, '}');
		}
		ops_json_close(json, ']');
	}
	ops_json_close(json, ']');
}

/* Writes the meaning of the stacks in the facts: what each of `threads` does, in their order, and where the sampled
 * thread was. */
static void write_doings(struct report *report)
{
	struct ops_json_writer *json = &report->json;
	const struct incident_facts *facts = report->facts;

	ops_json_member_open(json, "thread_doings", '[');
	for (size_t i = 0; i < facts->threads.count; i++) {
		const char *text = incident_doing_text(incident_stack_doing(&facts->threads.items[i]));

		ops_json_word(json, text);
	}
	ops_json_close(json, ']');
	OPS_JSON_LIST(json, "thread_launchers", i, facts->threads.count,
	              ops_json_integer(json, (int64_t)incident_stack_launchers(&facts->threads.items[i])));
	ops_json_member(json, "end_launchers", (int64_t)incident_stack_launchers(&facts->end));
	ops_json_member_open(json, "meanwhile", '[');
	for (size_t i = 0; i < facts->samples.count; i++) {
		const struct incident_stack *stack = &facts->samples.items[i];

		ops_json_open(json, '{');
		ops_json_member(json, "count", stack->count);
		ops_json_member_text(json, "doing", incident_doing_text(incident_stack_doing(stack)));
		write_place(report, incident_stack_place(stack));
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Where the thread of the step was by samples, and where it is in other steps. */
static void write_sampled_places(struct report *report)
{
	struct ops_json_writer *json = &report->json;
	const struct incident_sampled *sampled = &report->sampled;

	if (!sampled->count)
		return;
	ops_json_member_open(json, "sampled", '{');
	ops_json_member(json, "tid", sampled->tid);
	ops_json_member(json, "samples", (int64_t)sampled->count);
	ops_json_member(json, "usual_samples", (int64_t)sampled->usual_count);
	ops_json_member(json, "usual_steps", (int64_t)sampled->usual_steps);
	ops_json_member(json, "period_ns", (int64_t)(sampled->total_ns / (double)sampled->count));
	ops_json_member_open(json, "places", '[');
	for (size_t i = 0; i < sampled->places.count && i < SAMPLED_MAX; i++) {
		const struct incident_sampled_place *place = &sampled->places.items[i];

		if (place->ns <= 0)
			continue;
		ops_json_open(json, '{');
		ops_json_member_text(json, "doing", incident_doing_text(place->doing));
		write_place(report, &place->place);
		ops_json_member_number(json, "share", incident_sampled_share(place->ns, sampled->total_ns));
		ops_json_member_number(json, "usual_share", incident_sampled_share(place->usual_ns, sampled->usual_total_ns));
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

static void report_write(struct report *report, struct incident_cause *cause)
{
	struct ops_json_writer *json = &report->json;
	struct ops_string facts = report->facts->json, box;

	ops_json_open(json, '{');
	ops_json_member_string(json, "title", (struct ops_string){ops_buffer_text(&cause->title), cause->title.size});
	ops_json_member_string(json, "cause", (struct ops_string){ops_buffer_text(&cause->text), cause->text.size});
	ops_json_member_text(json, "cause_kind", cause->kind);
	write_place(report, &cause->place);
	ops_json_key(json, "has_trace");
	ops_json_bool(json, report->trace != NULL);
	if (report->trace && ops_trace_find_metadata(report->trace, "black_box", &box)) {
		ops_json_member_raw(json, "black_box", box);
	}
	ops_json_key(json, "difference");
	if (report->outlier)
		view_outlier_write(report->views, report->outlier, json);
	else
		ops_json_null(json);
	write_open(report);
	write_doings(report);
	write_native(report);
	write_sampled_places(report);
	write_memory_report(report);
	/* Appends the facts without their braces. */
	while (facts.size && facts.bytes[facts.size - 1] != '}')
		facts.size--;
	if (facts.size > 2) {
		ops_buffer_append_text(json->out, ",");
		ops_buffer_append(json->out, facts.bytes + 1, facts.size - 2);
	}
	ops_json_close(json, '}');
}

enum ops_code ops_incident_report(const char *facts_text, size_t facts_size, const struct ops_trace *trace, char **ret_text,
                                  size_t *ret_size, struct ops_error *error)
{
	struct incident_facts facts;
	struct incident_cause cause = {0};
	struct ops_buffer out = {0};
	struct report report = {.facts = &facts, .trace = trace, .json = {.out = &out}};
	enum ops_code code = incident_facts_read(&facts, (struct ops_string){facts_text, facts_size}, error);

	if (!code && trace) {
		report.views = ops_views_open(&report.own, trace, OPS_RULES_OPSTROBE, true);
		code = report.views ? OPS_OK : ops_fault_memory(error);
	}
	if (!code && (!report_explain(&report) || !incident_sampled_find(&facts, trace, &report.sampled) ||
	              !incident_cause_find(&facts, report.views, report.outlier, &report.sampled, &cause)))
		code = ops_fault_memory(error);
	if (!code)
		report_write(&report, &cause);
	view_step_stats_release(&report.stats);
	incident_sampled_release(&report.sampled);
	if (trace)
		ops_views_release(&report.own);
	ops_buffer_release(&cause.text);
	ops_buffer_release(&cause.title);
	incident_facts_release(&facts);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
