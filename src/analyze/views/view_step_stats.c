/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparison of steps; see view_step_stats.h.
 */
#include "analyze/views/view_step_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/json_walk.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/helper_waits.h"
#include "derive/thread_states.h"

/* With fewer steps it is unclear which of them are typical. */
#define STEPS_MIN 4
/* An outlier takes longer than this multiple of the median of its kind, and differs from it by this many standard deviations. */
#define OUTLIER_RATIO 1.2
#define OUTLIER_DEVIATIONS 3
/* A cause explains at least this share of the excess of an outlier; counts are at least this multiple of the typical
 * ones. */
#define CAUSE_SHARE 0.1
#define COUNT_RATIO 1.5
#define COUNT_MORE 10

/* --- figures of each step ------------------------------------------------------------------------------------------- */

enum figure {
	FIGURE_LAST_CATEGORY = VIEW_TIME_OTHER, /* figures up to this one are enum view_category */
	FIGURE_FORWARD,
	FIGURE_BACKWARD,
	FIGURE_OPTIMIZER,
	FIGURE_COLLECTION,
	FIGURE_WAITED,
	FIGURE_OPERATORS,
	FIGURE_ALLOCATIONS,
	FIGURE_COUNT
};

/* The figures after the categories. */
static const struct {
	const char *name;
	const char *title;
} figures[] = {
	{"forward", "forward"},
	{"backward", "backward"},
	{"optimizer", "optimizer"},
	{"garbage_collection", "garbage collection"},
	{"waited_for_cpu", "waiting for a CPU"},
	{"operator_calls", "operator calls"},
	{"allocations", "allocations"},
};

static const char *figure_name(int figure)
{
	return figure <= FIGURE_LAST_CATEGORY ? view_category_name((enum view_category)figure)
	                                      : figures[figure - FIGURE_LAST_CATEGORY - 1].name;
}

static const char *figure_title(int figure)
{
	if (figure == VIEW_TIME_OTHER)
		return "Python and other";
	return figure <= FIGURE_LAST_CATEGORY ? view_category_title((enum view_category)figure)
	                                      : figures[figure - FIGURE_LAST_CATEGORY - 1].title;
}

struct table {
	const struct ops_views *views;
	double *cells;    /* FIGURE_COUNT numbers per step */
	uint8_t *outlier; /* by step */
	double *scratch;  /* one number per step */
	size_t count;
	size_t only; /* the only step to explain, whether an outlier or not; SIZE_MAX: all outliers */
};

static double *cell(const struct table *table, size_t step, int figure)
{
	return &table->cells[step * FIGURE_COUNT + (size_t)figure];
}

static double step_length_ns(const struct view_step *step)
{
	return (double)view_step_shown_ns(step, VIEW_TIME_COUNT);
}

static void count_events(const struct table *table)
{
	const struct ops_views *views = table->views;
	const struct ops_memory_record *records;
	size_t count;

	for (uint32_t row = 0; row < views->events->count; row++) {
		bool collects = views->parts[row] == VIEW_FUNCTION && ops_string_is(view_row_name(views, row), "Python GC");
		size_t step = collects || views->parts[row] == VIEW_OPERATOR ? view_step_at(views, view_start(views, row))
		                                                             : table->count;

		if (step == table->count || views->host_steps->helps[views->events->track[row]])
			continue;
		if (collects)
			*cell(table, step, FIGURE_COLLECTION) += (double)view_duration(views, row);
		else
			*cell(table, step, FIGURE_OPERATORS) += 1;
	}
	records = ops_trace_memory(views->trace, &count);
	for (size_t i = 0; i < count; i++) {
		size_t step = records[i].bytes > 0 && !records[i].out_of_memory ? view_step_at(views, records[i].time_ns)
		                                                                : table->count;

		if (step < table->count)
			*cell(table, step, FIGURE_ALLOCATIONS) += 1;
	}
}

static void view_step_stats_fill(const struct table *table, const struct view_step_phases *phases,
                                 const struct view_step_stats *stats)
{
	for (size_t i = 0; i < table->count; i++) {
		for (int category = 0; category <= FIGURE_LAST_CATEGORY; category++)
			*cell(table, i, category) = (double)view_step_shown_ns(&table->views->steps.items[i], (enum view_category)category);
		*cell(table, i, FIGURE_FORWARD) = (double)phases->steps[i].host_ns[OPS_PHASE_FORWARD];
		*cell(table, i, FIGURE_BACKWARD) = (double)phases->steps[i].host_ns[OPS_PHASE_BACKWARD];
		*cell(table, i, FIGURE_OPTIMIZER) = (double)phases->steps[i].host_ns[OPS_PHASE_OPTIMIZER];
		*cell(table, i, FIGURE_WAITED) = (double)stats->waits[i].waited_ns;
	}
	count_events(table);
}

/* --- order ---------------------------------------------------------------------------------------------------------- */

static enum ops_iteration_kind kind_of(const struct table *table, size_t step)
{
	return table->views->steps.items[step].kind;
}

/* Counts the steps of a kind, and computes the other figures without the first step if it is apart: means leave it out, too. */
static void find_kind(const struct table *table, enum ops_iteration_kind kind, struct view_step_kind *of)
{
	size_t from = view_averaged_from(table->views), count = 0;
	double sum_ns = 0;

	*of = (struct view_step_kind){0};
	for (size_t i = 0; i < table->count; i++) {
		of->count += kind_of(table, i) == kind;
		if (i >= from && kind_of(table, i) == kind)
			sum_ns += table->scratch[count++] = step_length_ns(&table->views->steps.items[i]);
	}
	if (!count)
		return;
	of->mean_ns = sum_ns / (double)count;
	of->median_ns = ops_median(table->scratch, count);
	of->p95_ns = ops_quantile(table->scratch, count, 0.95);
	for (size_t i = 0; i < count; i++)
		table->scratch[i] = fabs(table->scratch[i] - of->median_ns);
	of->deviation_ns = OPS_DEVIATION_OF_MAD * ops_median(table->scratch, count);
}

/* A step is compared with those of its kind: a prefill takes longer than a decode. */
static void find_lengths(const struct table *table, struct view_step_stats *stats)
{
	size_t from = view_averaged_from(table->views), count = table->count - from;

	for (size_t i = 0; i < count; i++)
		table->scratch[i] = step_length_ns(&table->views->steps.items[from + i]);
	stats->median_ns = ops_median(table->scratch, count);
	stats->p95_ns = ops_quantile(table->scratch, count, 0.95);
	for (int kind = 0; kind < OPS_ITERATION_KIND_COUNT; kind++)
		find_kind(table, (enum ops_iteration_kind)kind, &stats->kinds[kind]);
	for (size_t i = 0; i < table->count; i++) {
		const struct view_step_kind *of = &stats->kinds[kind_of(table, i)];
		double ns = step_length_ns(&table->views->steps.items[i]);

		table->outlier[i] = of->count >= STEPS_MIN && ns > OUTLIER_RATIO * of->median_ns &&
		                    ns > of->median_ns + OUTLIER_DEVIATIONS * of->deviation_ns;
		stats->outliers_in_all += table->outlier[i];
	}
	if (table->only != SIZE_MAX) {
		stats->outliers_in_all += !table->outlier[table->only];
		table->outlier[table->only] = true;
	}
}

/* Returns the median of a figure over the steps of a kind that are not outliers. */
static double typical(const struct table *table, enum ops_iteration_kind kind, int figure)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		if (!table->outlier[i] && kind_of(table, i) == kind)
			table->scratch[count++] = *cell(table, i, figure);
	return ops_median(table->scratch, count);
}

/* Chooses the longest outliers, in order of steps. */
static void view_step_stats_choose(const struct table *table, struct view_step_stats *stats)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct view_step *step = &table->views->steps.items[i];
		double ns = step_length_ns(step);
		size_t longer = 0;

		if (table->only != SIZE_MAX && i != table->only)
			continue;
		for (size_t j = 0; table->only == SIZE_MAX && table->outlier[i] && j < table->count; j++) {
			double other_ns = step_length_ns(&table->views->steps.items[j]);

			longer += table->outlier[j] && (other_ns > ns || (other_ns == ns && j < i));
		}
		if (table->outlier[i] && longer < VIEW_OUTLIERS_MAX)
			stats->outliers[stats->outlier_count++] = (struct view_outlier){.step = i, .over_ns = ns - stats->kinds[step->kind].median_ns};
	}
}

/* --- causes --------------------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_causes, struct view_cause,
          OPS_UP(is_count) OPS_ORDER_BY(right->value - right->typical, left->value - left->typical))

static void explain(const struct table *table, struct view_outlier *outlier)
{
	struct view_cause causes[FIGURE_COUNT];
	size_t count = 0;

	for (int figure = 0; figure < FIGURE_COUNT; figure++) {
		double usual = typical(table, kind_of(table, outlier->step), figure);
		double value = *cell(table, outlier->step, figure), more = value - usual;
		bool is_count = figure >= FIGURE_OPERATORS;

		if (is_count ? more < COUNT_MORE || value < COUNT_RATIO * usual : more < CAUSE_SHARE * outlier->over_ns)
			continue;
		causes[count++] = (struct view_cause){figure_name(figure), figure_title(figure), is_count, value, usual};
	}
	qsort(causes, count, sizeof(*causes), compare_causes);
	outlier->cause_count = count < VIEW_CAUSES_MAX ? count : VIEW_CAUSES_MAX;
	memcpy(outlier->causes, causes, outlier->cause_count * sizeof(*causes));
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

struct name_sum {
	double self_ns;
	double calls;
};

/* Returns the self time of a row, on its thread or on its device; negative if it cannot explain a step. */
static double view_step_stats_own_ns(const struct ops_views *views, uint32_t row)
{
	switch (views->parts[row]) {
	case VIEW_OPERATOR:
	case VIEW_FUNCTION:
	case VIEW_MODULE:
	case VIEW_LOADER:
	case VIEW_LAUNCH:
		return (double)views->events->self_ns[row];
	case VIEW_KERNEL:
	case VIEW_COPY:
	case VIEW_FILL:
		return (double)view_duration(views, row);
	default:
		return -1;
	}
}

static void view_step_stats_add_name(struct view_outlier *outlier, struct view_excess excess)
{
	size_t at = outlier->excess_count;

	while (at > 0 && outlier->excesses[at - 1].self_ns - outlier->excesses[at - 1].typical_self_ns < excess.self_ns - excess.typical_self_ns) {
		if (at < VIEW_CAUSES_MAX)
			outlier->excesses[at] = outlier->excesses[at - 1];
		at--;
	}
	if (at == VIEW_CAUSES_MAX)
		return;
	outlier->excesses[at] = excess;
	outlier->excess_count += outlier->excess_count < VIEW_CAUSES_MAX;
}

/* Sums by name over the typical steps of each kind, and over each explained outlier, one array after another. */
static bool view_step_stats_compare_names(const struct table *table, struct view_step_stats *stats)
{
	const struct ops_views *views = table->views;
	size_t names = ops_trace_string_count(views->trace), usual[OPS_ITERATION_KIND_COUNT] = {0};
	struct name_sum *sums = ops_alloc_zeroed((names + 1) * (stats->outlier_count + OPS_ITERATION_KIND_COUNT), sizeof(*sums));
	const struct ops_helper_waits *waits = ops_helper_waits_of(views->trace);
	bool done = sums && waits;

	for (size_t i = 0; i < table->count; i++)
		usual[kind_of(table, i)] += !table->outlier[i];

	for (uint32_t row = 0; done && row < views->events->count; row++) {
		double self_ns = view_step_stats_own_ns(views, row);
		size_t step = self_ns >= 0 ? view_step_at(views, view_start(views, row)) : table->count, list = 0;

		if (step == table->count || views->host_steps->helps[views->events->track[row]] || ops_bit(waits->rows, row))
			continue;
		while (table->outlier[step] && list < stats->outlier_count && stats->outliers[list].step != step)
			list++;
		if (table->outlier[step] && list == stats->outlier_count)
			continue; /* an outlier that is not shown */
		list = table->outlier[step] ? OPS_ITERATION_KIND_COUNT + list : (size_t)kind_of(table, step);
		sums[list * (names + 1) + views->events->name[row]].self_ns += self_ns;
		sums[list * (names + 1) + views->events->name[row]].calls += 1;
	}
	for (size_t i = 0; done && i < stats->outlier_count; i++)
		for (uint32_t name = 0; name < names; name++) {
			enum ops_iteration_kind kind = kind_of(table, stats->outliers[i].step);
			const struct name_sum *here = &sums[(i + OPS_ITERATION_KIND_COUNT) * (names + 1) + name];
			const struct name_sum *others = &sums[(size_t)kind * (names + 1) + name];
			struct view_excess excess = {name, here->self_ns, others->self_ns / (double)usual[kind], here->calls,
			                             others->calls / (double)usual[kind]};

			if (excess.self_ns - excess.typical_self_ns >= CAUSE_SHARE * stats->outliers[i].over_ns)
				view_step_stats_add_name(&stats->outliers[i], excess);
		}
	ops_free(sums);
	return done;
}

/* --- waiting for a processor ---------------------------------------------------------------------------------------- */

/* Without waits that were recorded by step, estimates those of the thread of the steps. */
static bool estimate_waits(const struct ops_views *views, struct ops_step_wait *waits)
{
	struct ops_thread_states states;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(views->trace, &count);
	uint32_t track, thread = OPS_NONE;
	bool done = ops_thread_states_read(&states, views->trace) && view_main_track(views, &track);

	if (done && track != OPS_NONE)
		thread = ops_thread_samples_of(&states, &tracks[track]);
	for (size_t i = 0; thread != OPS_NONE && i < views->steps.count; i++) {
		const struct view_step *step = &views->steps.items[i];

		if (ops_step_wait_sampled(&states.threads.items[thread], step->host_start_ns, step->host_end_ns, &waits[i]))
			waits[i].number = (int64_t)i;
	}
	ops_thread_states_release(&states);
	return done;
}

bool view_waits_find(const struct ops_views *views, struct ops_step_wait *ret_waits, struct view_waited *ret_waited)
{
	struct ops_step_waits recorded;
	bool done = ops_step_waits_read(&recorded, views->trace), is_marked = views->host_steps->source == OPS_STEPS_MARKED;
	double waited_ns = 0, all_ns = 0;
	size_t cursor = 0, known = 0;

	for (size_t i = 0; done && i < views->steps.count; i++) {
		int64_t number;
		const struct ops_step_wait *wait = is_marked && ops_json_parse_integer(views->steps.items[i].name, &number)
		                                           ? ops_step_waits_find(&recorded, number, &cursor) : NULL;

		ret_waits[i] = wait ? *wait : (struct ops_step_wait){.number = -1};
	}
	if (done && !recorded.items.count)
		done = estimate_waits(views, ret_waits);
	for (size_t i = 0; done && i < views->steps.count; i++) {
		if (ret_waits[i].number < 0)
			continue;
		known++;
		waited_ns += (double)ret_waits[i].waited_ns;
		all_ns += (double)views->steps.items[i].host_end_ns - (double)views->steps.items[i].host_start_ns;
	}
	*ret_waited = (struct view_waited){all_ns > 0 && 2 * known >= views->steps.count ? fmin(1, waited_ns / all_ns) : (double)NAN, recorded.threads_share, recorded.children_share};
	ops_step_waits_release(&recorded);
	return done;
}

const char *view_waited_for(struct view_waited waited)
{
	return view_waited_own(waited) > 0 ? "other threads and child processes of the program" : "other threads";
}

static bool view_step_stats_find_waits(const struct ops_views *views, struct view_step_stats *stats)
{
	bool done = view_waits_find(views, stats->waits, &stats->waited);

	for (size_t i = 0; done && i < views->steps.count; i++) {
		stats->waited_steps += stats->waits[i].number >= 0;
		stats->waited_average_ns += (double)stats->waits[i].waited_ns;
	}
	stats->has_waits = done && !isnan(stats->waited.ratio);
	stats->waited_average_ns = stats->waited_steps ? stats->waited_average_ns / (double)stats->waited_steps : 0;
	return done;
}

/* --- statistics ----------------------------------------------------------------------------------------------------- */

static bool view_step_stats_fill_all(const struct ops_views *views, const struct view_step_phases *phases, size_t only,
                                     struct view_step_stats *stats)
{
	struct table table = {.views = views, .count = views->steps.count, .only = only};
	bool done;

	*stats = (struct view_step_stats){.waits = ops_alloc_zeroed(table.count + 1, sizeof(*stats->waits))};
	table.cells = ops_alloc_zeroed((table.count + 1) * FIGURE_COUNT, sizeof(*table.cells));
	table.outlier = ops_alloc_zeroed(table.count + 1, sizeof(*table.outlier));
	table.scratch = ops_alloc_zeroed(table.count + 1, sizeof(*table.scratch));
	done = stats->waits && table.cells && table.outlier && table.scratch && view_step_stats_find_waits(views, stats);
	if (done && table.count)
		find_lengths(&table, stats);
	if (done && stats->outliers_in_all) {
		view_step_stats_fill(&table, phases, stats);
		view_step_stats_choose(&table, stats);
		for (size_t i = 0; i < stats->outlier_count; i++)
			explain(&table, &stats->outliers[i]);
		done = view_step_stats_compare_names(&table, stats);
	}
	ops_free(table.cells);
	ops_free(table.outlier);
	ops_free(table.scratch);
	return done;
}

bool view_step_stats_find(const struct ops_views *views, const struct view_step_phases *phases, struct view_step_stats *stats)
{
	return view_step_stats_fill_all(views, phases, SIZE_MAX, stats);
}

bool view_step_stats_explain(const struct ops_views *views, const struct view_step_phases *phases, size_t step,
                             struct view_step_stats *stats)
{
	return view_step_stats_fill_all(views, phases, step, stats);
}

void view_step_stats_release(struct view_step_stats *stats)
{
	ops_free(stats->waits);
	stats->waits = NULL;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

void view_outlier_write(const struct ops_views *views, const struct view_outlier *outlier, struct ops_json_writer *json)
{
	const struct view_step *step = &views->steps.items[outlier->step];

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", step->name);
	if (step->kind != OPS_ITERATION_NONE)
		ops_json_member_text(json, "kind", ops_iteration_kind_name(step->kind));
	ops_json_member_number(json, "total", step_length_ns(step) / 1000);
	ops_json_member_number(json, "over_median", outlier->over_ns / 1000);
	ops_json_member_open(json, "causes", '[');
	for (size_t i = 0; i < outlier->cause_count; i++) {
		const struct view_cause *cause = &outlier->causes[i];
		double unit = cause->is_count ? 1 : 1000;

		ops_json_open(json, '{');
		ops_json_member_text(json, "what", cause->name);
		ops_json_member_text(json, "title", cause->title);
		ops_json_member_bool(json, "is_count", cause->is_count);
		ops_json_member_number(json, "value", cause->value / unit);
		ops_json_member_number(json, "typical", cause->typical / unit);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	ops_json_member_open(json, "events", '[');
	for (size_t i = 0; i < outlier->excess_count; i++) {
		const struct view_excess *excess = &outlier->excesses[i];
		struct ops_string name = ops_trace_string(views->trace, excess->name);

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", name);
		ops_json_member_number(json, "self", excess->self_ns / 1000);
		ops_json_member_number(json, "typical_self", excess->typical_self_ns / 1000);
		ops_json_member_number(json, "calls", excess->calls);
		ops_json_member_number(json, "typical_calls", excess->typical_calls);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

static void write_waits(const struct ops_views *views, const struct view_step_stats *stats, struct ops_json_writer *json)
{
	ops_json_key(json, "waited_for_cpu");
	if (!stats->has_waits) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member_number(json, "ratio", stats->waited.ratio);
	ops_json_member_number(json, "own_ratio", view_waited_own(stats->waited));
	ops_json_member_text(json, "had_by", view_waited_for(stats->waited));
	ops_json_member_number(json, "average", stats->waited_average_ns / 1000);
	ops_json_member_bool(json, "much", view_waited_distorts(stats->waited));
	ops_json_member_open(json, "rows", '[');
	for (size_t i = 0; i < views->steps.count; i++) {
		if (stats->waits[i].number < 0)
			ops_json_null(json);
		else
			ops_json_us(json, stats->waits[i].waited_ns);
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

/* Iterations by kind. */
static void write_kinds(const struct view_step_stats *stats, struct ops_json_writer *json)
{
	ops_json_member_open(json, "kinds", '[');
	for (int kind = OPS_ITERATION_NONE + 1; kind < OPS_ITERATION_KIND_COUNT; kind++) {
		const struct view_step_kind *of = &stats->kinds[kind];

		if (!of->count)
			continue;
		ops_json_open(json, '{');
		ops_json_member_text(json, "kind", ops_iteration_kind_name((enum ops_iteration_kind)kind));
		ops_json_member(json, "count", (int64_t)of->count);
		ops_json_member_number(json, "median", of->median_ns / 1000);
		ops_json_member_number(json, "mean", of->mean_ns / 1000);
		ops_json_member_number(json, "p95", of->p95_ns / 1000);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

void view_step_stats_write(const struct ops_views *views, const struct view_step_stats *stats, struct ops_json_writer *json)
{
	bool any = views->steps.count > 0;

	ops_json_member_number(json, "median", any ? stats->median_ns / 1000 : (double)NAN);
	ops_json_member_number(json, "p95", any ? stats->p95_ns / 1000 : (double)NAN);
	ops_json_member(json, "outlier_count", (int64_t)stats->outliers_in_all);
	OPS_JSON_LIST(json, "outliers", i, stats->outlier_count,
	              view_outlier_write(views, &stats->outliers[i], json));
	write_waits(views, stats, json);
	write_kinds(stats, json);
}
