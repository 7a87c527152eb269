/* SPDX-License-Identifier: Apache-2.0
 *
 * What takes the time of the data loader: the rules are applied once more, to what makes batches alone, as if that were the step.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/program.h"

extern const struct advice_rule advice_rule_loader;

/* --- rows ------------------------------------------------------------------------------------------------------------ */

static bool is_worker_row(const struct advice *advice, uint32_t row)
{
	struct ops_function_text function;

	return ops_event_function(advice->trace, row, &function) && ops_is_worker_loop(function.file, function.name);
}

uint32_t advice_loader_track(const struct advice *advice)
{
	const struct ops_events *events = advice->events;
	uint32_t most = OPS_NONE;
	int64_t most_ns = 0;
	size_t tracks;
	int64_t *busy_ns;
	uint8_t *works;

	ops_trace_tracks(advice->trace, &tracks);
	busy_ns = ops_alloc_zeroed(tracks + 1, sizeof(*busy_ns));
	works = ops_alloc_zeroed(tracks + 1, 1);
	for (uint32_t row = 0; busy_ns && works && row < events->count; row++) {
		uint32_t track = events->track[row];

		works[track] |= is_worker_row(advice, row);
		if (!works[track] || (advice->zone[row] & ADVICE_WAITING))
			continue;
		busy_ns[track] = ops_sum(busy_ns[track], events->self_ns[row]);
		if (busy_ns[track] > most_ns) {
			most = track;
			most_ns = busy_ns[track];
		}
	}
	ops_free(busy_ns);
	ops_free(works);
	return most;
}

/* A row in which this process makes a batch. With workers it only waits for one. */
static bool makes_batch(const struct advice *advice, uint32_t row)
{
	return advice->views->parts[row] == VIEW_LOADER && !ops_string_contains(advice_name(advice, row), "_MultiProcessing");
}

/* A worker that waits for the indices of its next batch has nothing to do. */
static bool is_idle_worker(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return parent != OPS_NONE && (advice->zone[row] & ADVICE_WAITING) && is_worker_row(advice, parent);
}

bool advice_keep_loader(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	uint32_t track = advice_loader_track(advice);
	uint8_t *inside = ops_alloc_zeroed(events->count + 1, 1);

	for (uint32_t row = 0; inside && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (track == OPS_NONE)
			inside[row] = makes_batch(advice, row) || (parent != OPS_NONE && inside[parent]);
		else
			inside[row] = events->track[row] == track && !is_idle_worker(advice, row) && (parent == OPS_NONE || inside[parent]);
		if (!inside[row])
			advice->step_of[row] = OPS_NONE;
	}
	ops_free(inside);
	return inside != NULL;
}

/* Time in which the loader works, in steady steps. */
static int64_t loader_work_ns(const struct advice *advice)
{
	int64_t work_ns = 0;

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice_counts(advice, row) && !(advice->zone[row] & ADVICE_WAITING))
			work_ns = ops_sum(work_ns, advice_host_self_ns(advice, row));
	return work_ns;
}

/* --- causes ---------------------------------------------------------------------------------------------------------- */

/* Share of the loader's time that a cause must save. */
#define CAUSE_MIN 0.25

/* Rules about the loader as a whole, the machine or the complete program say nothing about what the loader does, and general ones
 * nothing about the cause. What workers do about waits, the rule about the loader says. */
static bool applies_inside(const struct advice_rule *rule)
{
	static const char *const outside[] = {"loader-*", "thread-count", "slow-first-steps", "slow-settings", "gc-pauses", "memory-*", "waiting-in-step", NULL};

	return rule->find && !rule->general && !advice_text_like((struct ops_string){rule->id, strlen(rule->id)}, outside);
}

/* Returns the finding that saves most, and at least this much; NULL: none. */
static const struct advice_finding *best_cause(const struct advice_report *inside, double least_ms)
{
	const struct advice_finding *best = NULL;

	for (size_t i = 0; i < inside->findings.count; i++) {
		const struct advice_finding *finding = &inside->findings.items[i];

		if (finding->where_count && finding->gain_ms >= (best ? best->gain_ms : least_ms))
			best = finding;
	}
	return best;
}

/* Puts a sentence before the advice of the finding, and places before its places. */
static bool put_first(struct advice_report *report, struct advice_finding *finding, struct ops_buffer *text, const struct advice_where *places,
                      size_t place_count)
{
	struct advice_finding former = *finding;
	bool done;

	ops_buffer_append(text, finding->detail.bytes, finding->detail.size);
	finding->where_count = 0;
	for (size_t i = 0; i < place_count; i++)
		advice_add_place(places[i], finding);
	done = !text->failed && advice_report_keep(report, text->bytes, text->size, &finding->detail);
	for (size_t i = 0; done && i < finding->where_count; i++)
		done = advice_report_keep_where(report, &finding->where[i]);
	for (size_t i = 0; i < former.where_count; i++)
		advice_add_place(former.where[i], finding);
	return done;
}

static bool put_cause(struct advice_report *report, struct advice_finding *finding, const struct advice_finding *cause, double work_ms)
{
	struct ops_buffer text = {0};
	bool done;

	ops_buffer_printf(&text, "%s: that takes %s of the loader's time. %.*s%s ", cause->rule->title,
	                  ops_figure_of_percent(100 * fmin(cause->gain_ms / work_ms, 1)).text, (int)cause->detail.size, cause->detail.bytes,
	                  cause->rule->advice);
	done = put_first(report, finding, &text, cause->where, cause->where_count);
	ops_buffer_release(&text);
	return done;
}

static const struct advice_rest_line *longest_line(const struct advice_report *inside)
{
	const struct advice_rest_line *most = NULL;

	for (size_t i = 0; i < inside->rest.lines.count; i++)
		if (inside->rest.lines.items[i].where.file.size && (!most || inside->rest.lines.items[i].ns > most->ns))
			most = &inside->rest.lines.items[i];
	return most;
}

/* Without a cause: what a worker does outside of operators, or the line of the program with most time. */
static bool add_line(struct advice_report *report, struct advice_finding *finding, const struct advice *advice, double work_ns)
{
	const struct advice_rest_line *most = longest_line(advice->report);
	double most_ns = most ? most->ns * (double)advice->step_count : 0;
	struct advice_python_parts parts;
	const struct advice_python_part *part;
	struct advice_where places[2];
	char fact[256], advised[256];
	struct ops_buffer text = {0};
	size_t count = 0;
	bool done = advice_find_python_parts(advice, false, &parts);

	if (!done)
		return false;
	part = advice_describe_python(advice, &parts, "the loader's time", work_ns, fact, advised, sizeof(fact));
	if (part)
		ops_buffer_printf(&text, "%s %s", fact + (*fact == ' '), advised);
	if (part && part->site != OPS_NONE)
		places[count++] = advice_describe(advice, part->site, part->row);
	if (!count && most_ns >= CAUSE_MIN * work_ns) {
		places[count++] = most->where;
		ops_buffer_printf(&text, "The line named first takes %s of the loader's time", ops_figure_of_percent(100 * fmin(most_ns / work_ns, 1)).text);
		if (most->operators[0].name.size && most->kinds[REST_OPERATORS] > most->kinds[REST_PYTHON])
			ops_buffer_printf(&text, ", mostly in %.*s", (int)most->operators[0].name.size, most->operators[0].name.bytes);
		ops_buffer_append_text(&text, ". ");
	}
	done = put_first(report, finding, &text, places, count);
	ops_buffer_release(&text);
	return done;
}

/* --- sampled workers ------------------------------------------------------------------------------------------------- */

/* Returns the time that a sample found a worker working, in steady steps. */
static int64_t sampled_work_ns(const struct advice *advice, const uint8_t *workers, size_t sample)
{
	const struct ops_python_sample *of = &advice->samples.samples.items[sample];
	size_t step = view_step_at(advice->views, of->time_ns);

	return workers[of->stack] == OPS_SAMPLED_WORKS && step < advice->views->steps.count && advice->steady[step] ? of->weight_ns : 0;
}

/* Sums the time of workers by line of the program. Returns the sum over all of them, also where no line of the program is. */
static int64_t sum_sampled_lines(const struct advice *advice, const uint8_t *workers, int64_t *by_site)
{
	int64_t all_ns = 0;

	for (size_t i = 0; i < advice->samples.samples.count; i++) {
		int64_t ns = sampled_work_ns(advice, workers, i);
		uint32_t site = advice->sample_site[i];

		all_ns = ops_sum(all_ns, ns);
		if (site != OPS_NONE)
			by_site[site] = ops_sum(by_site[site], ns);
	}
	return all_ns;
}

/* Without recorded calls, sampled stacks know in which line workers take their time. */
static bool add_sampled_line(struct advice_report *report, struct advice_finding *finding, const struct advice *advice)
{
	uint8_t *workers = ops_sampled_workers(&advice->samples);
	int64_t *by_site = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*by_site)), all_ns, most_ns = 0;
	struct ops_buffer text = {0};
	struct advice_where place;
	uint32_t most = 0;
	bool done = workers && by_site;

	if (done) {
		all_ns = sum_sampled_lines(advice, workers, by_site);
		for (uint32_t site = 0; site < advice->sites.count; site++)
			most = by_site[site] > by_site[most] ? site : most;
		most_ns = by_site[most];
		if (most_ns > 0 && (double)most_ns >= CAUSE_MIN * (double)all_ns) {
			place = advice_describe(advice, most, OPS_NONE);
			ops_buffer_printf(&text, "Workers spend %s of their time in the line named first. ",
			                  ops_figure_of_percent(100 * (double)most_ns / (double)all_ns).text);
			done = put_first(report, finding, &text, &place, 1);
		}
	}
	ops_buffer_release(&text);
	ops_free(workers);
	ops_free(by_site);
	return done;
}

/* --- the finding ------------------------------------------------------------------------------------------------------ */

static bool explain_finding(struct advice_report *report, struct advice_finding *finding, struct advice *inside, const struct advice_rule *const *rules,
                         size_t count)
{
	const struct advice_finding *cause;
	double work_ns, work_ms;

	if (!advice_run_rules(inside, rules, count))
		return false;
	work_ns = (double)loader_work_ns(inside);
	work_ms = advice_step_ms(inside, work_ns);
	cause = best_cause(inside->report, CAUSE_MIN * work_ms);
	if (work_ms > 0 && cause)
		return put_cause(report, finding, cause, work_ms);
	/* What Python does in the main process is known to the rule about the loader. */
	if (advice_loader_track(inside) == OPS_NONE)
		return add_sampled_line(report, finding, inside);
	return !(work_ms > 0) || add_line(report, finding, inside, work_ns);
}

static bool explain_apart(struct advice_report *report, struct advice_finding *finding, const struct ops_trace *trace)
{
	const struct advice_rule **rules = ops_alloc_zeroed(advice_rule_count, sizeof(const struct advice_rule *));
	struct advice_report of_inside = {.traces = report->traces};
	struct advice inside;
	size_t count = 0;
	bool done = rules != NULL;

	for (size_t i = 0; done && i < advice_rule_count; i++)
		if (applies_inside(advice_rules[i]))
			rules[count++] = advice_rules[i];
	if (done) {
		done = advice_init(&inside, trace, &of_inside, true) && explain_finding(report, finding, &inside, rules, count);
		advice_release(&inside);
	}
	advice_report_release(&of_inside);
	ops_free(rules);
	return done;
}

bool advice_explain_loader(struct advice_report *report, size_t first, const struct ops_trace *trace)
{
	for (size_t i = first; i < report->findings.count; i++)
		if (report->findings.items[i].rule == &advice_rule_loader)
			return explain_apart(report, &report->findings.items[i], trace);
	return true;
}
