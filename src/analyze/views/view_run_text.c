/* SPDX-License-Identifier: Apache-2.0
 *
 * A page about the ranks of one job: a line for each rank, and the rank that is late. The page of one rank is in view_text.c.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <opstrobe/internal/views.h>

#include "analyze/format.h"
#include "analyze/ranks/trace_job.h"
#include "analyze/run_trace.h"
#include "analyze/views/view_distributed.h"
#include "analyze/views/view_step_stats.h"
#include "analyze/views/view_text.h"
#include "base/alloc.h"
#include "base/escape.h"
#include "base/fault.h"

/* A line of the table. */
struct rank_row {
	struct ops_string name;
	int64_t median_ns;
	double busy_pct;
	int64_t computing_ns, communicating_ns, hidden_ns, waiting_ns;
	const char *late;
};
#define RANK_FIELD(member) RESULT_FIELD(struct rank_row, member)

enum rank_option { RANK_HAS_DEVICES = 1, RANK_COMMUNICATES = 2, RANK_HAS_STEPS = 4, RANK_HAS_NO_STEPS = 8 };

static const struct result_column rank_columns[] = {
	{.name = "rank", .type = RESULT_TEXT, RANK_FIELD(name)},
	{.name = "median_step", .type = RESULT_TIME, .title = "median step", .priority = RESULT_MAJOR, .option = RANK_HAS_STEPS, RANK_FIELD(median_ns)},
	{.name = "recording", .type = RESULT_TIME, .priority = RESULT_MAJOR, .option = RANK_HAS_NO_STEPS, RANK_FIELD(median_ns)},
	{.name = "busy", .type = RESULT_PERCENT, .title = "GPU busy", .priority = RESULT_MAJOR, .option = RANK_HAS_DEVICES, RANK_FIELD(busy_pct)},
	{.name = "computing", .type = RESULT_TIME, .option = RANK_COMMUNICATES, RANK_FIELD(computing_ns)},
	{.name = "communicating", .type = RESULT_TIME, .priority = RESULT_MAJOR, .option = RANK_COMMUNICATES, RANK_FIELD(communicating_ns)},
	{.name = "hidden", .type = RESULT_TIME, .priority = RESULT_MINOR, .option = RANK_COMMUNICATES, RANK_FIELD(hidden_ns)},
	{.name = "waiting", .type = RESULT_TIME, .priority = RESULT_MAJOR, .option = RANK_COMMUNICATES, RANK_FIELD(waiting_ns)},
	{.name = "late", .type = RESULT_TEXT, .title = "", .priority = RESULT_MAJOR, .option = RANK_COMMUNICATES, RANK_FIELD(late)},
};
static const struct result_declaration rank_table = RESULT_DECLARATION("ranks", "A rank of a job", rank_columns);

struct ranks_page {
	struct page page;
	const struct ops_rank *ranks;
	struct view_worker *workers;
	struct view_worker **order; /* all workers */
	struct rank_row *rows;
	size_t count;
	size_t events, devices, steps_min, steps_max;
	int64_t longest_ns; /* of the recordings */
	struct ops_trace_job first;
};

/* --- reading -------------------------------------------------------------------------------------------------------- */

static bool ranks_same_folder(const char *a, const char *b)
{
	const char *left = a ? strrchr(a, '/') : NULL, *right = b ? strrchr(b, '/') : NULL;

	if (!left || !right)
		return !left && !right;
	return left - a == right - b && !memcmp(a, b, (size_t)(left - a));
}

/* Returns the mean utilization of the GPUs of a trace, in percent; NAN without GPUs. */
static double ranks_busy_pct(const struct ops_views *views)
{
	double sum = 0;

	for (size_t i = 0; i < views->gpus.count; i++) {
		struct view_gpu_figures figures;

		if (!view_gpu_figures(views, views->gpus.items[i], &figures))
			return NAN;
		sum += 100 * figures.utilization_ratio;
	}
	return views->gpus.count ? sum / (double)views->gpus.count : NAN;
}

/* Adds the figures that require the trace. */
static bool ranks_measure(struct ranks_page *ranks, struct rank_row *row, const struct ops_views *views)
{
	struct view_step_stats stats = {0};
	struct view_step_phases phases;
	bool done = view_phases_find(views, &phases) && view_step_stats_find(views, &phases, &stats);
	size_t steps = views->unmarked ? 0 : views->steps.count;

	row->median_ns = views->steps.count ? llround(stats.median_ns) : RESULT_NULL;
	row->busy_pct = ranks_busy_pct(views);
	ranks->events += views->events->count;
	ranks->devices += views->used.count;
	ranks->steps_min = steps < ranks->steps_min ? steps : ranks->steps_min;
	ranks->steps_max = steps > ranks->steps_max ? steps : ranks->steps_max;
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	return done;
}

static enum ops_code ranks_add(struct ranks_page *ranks, const struct ops_rank *about, const struct ops_trace *trace, enum ops_rules rules,
                               struct ops_error *error)
{
	struct rank_row *row = &ranks->rows[ranks->count];
	struct ops_views views;
	bool done = ops_views_init(&views, trace, rules) && ranks_measure(ranks, row, &views);

	if (!done) {
		ops_views_release(&views);
		return ops_fault_memory(error);
	}
	row->name = ops_string_of(about->name);
	ranks->order[ranks->count] = &ranks->workers[ranks->count];
	return view_worker_init(&ranks->workers[ranks->count++], about, &views) ? OPS_OK : ops_fault_memory(error);
}

/* Adds all traces, until one is not of the job of the first. */
static enum ops_code ranks_read(struct ranks_page *ranks, const struct ops_trace_source *source, size_t count, enum ops_rules rules,
                                bool *ret_shared, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	*ret_shared = true;
	for (size_t i = 0; !code && *ret_shared && i < count; i++) {
		struct ops_trace *trace = NULL;
		struct ops_trace_job job;

		code = ops_run_trace(ranks->ranks, source, i, &trace, error);
		if (code)
			break;
		trace_job_read(trace, ranks->ranks[i].path, i ? &job : &ranks->first);
		*ret_shared = !i || ops_trace_job_is_shared(&ranks->first, &job, ranks_same_folder(ranks->ranks[0].path, ranks->ranks[i].path));
		if (*ret_shared) {
			const struct ops_trace_job *of = i ? &job : &ranks->first;

			ranks->longest_ns = of->end_ns - of->start_ns > ranks->longest_ns ? of->end_ns - of->start_ns : ranks->longest_ns;
			code = ranks_add(ranks, &ranks->ranks[i], trace, rules, error);
		}
		ops_trace_unref(trace);
	}
	return code;
}

/* --- page ----------------------------------------------------------------------------------------------------------- */

static void ranks_put_head(struct ranks_page *ranks)
{
	struct page *page = &ranks->page;
	char duration[OPS_FORMAT_ROOM];

	page_begin(page, PAGE_TITLE);
	page_count(page, "", ranks->count, "rank");
	page_count(page, ": ", ranks->events, "event");
	page_end(page, PAGE_TITLE);
	ops_format_duration(duration, (double)ranks->longest_ns);
	ops_buffer_printf(&page->out, " in %s", duration);
	page_count(page, ", ", ranks->devices, "device");
	if (ranks->steps_max && ranks->steps_min == ranks->steps_max) {
		page_count(page, ", ", ranks->steps_max, "step");
		ops_buffer_append_text(&page->out, " each");
	}
	ops_buffer_append_text(&page->out, "\n");
}

static void ranks_put_table(struct ranks_page *ranks, bool communicate, size_t late)
{
	struct result_table table = {.copies = true};
	unsigned options = (communicate ? RANK_COMMUNICATES : 0) | (ranks->steps_max ? RANK_HAS_STEPS : RANK_HAS_NO_STEPS);

	for (size_t i = 0; i < ranks->count; i++) {
		struct rank_row *row = &ranks->rows[i];
		struct view_overlap overlap = view_worker_mean_overlap(&ranks->workers[i]);

		row->computing_ns = overlap.computation_only_ns + overlap.overlap_ns;
		row->communicating_ns = overlap.communication_only_ns + overlap.overlap_ns;
		row->hidden_ns = overlap.overlap_ns;
		row->waiting_ns = view_worker_mean_wait(&ranks->workers[i]).synchronizing_ns;
		row->late = i == late ? "late" : "";
		options |= isnan(row->busy_pct) ? 0 : RANK_HAS_DEVICES;
	}
	result_declare(&table, &rank_table, options);
	for (size_t i = 0; i < ranks->count; i++)
		result_add(&table, &ranks->rows[i]);
	page_table(&ranks->page, "ranks", &table, 0);
}

/* Writes in which step the others wait longest for a rank, as the page of ranks does, and for what. */
static void ranks_put_longest(struct ranks_page *ranks)
{
	struct page *page = &ranks->page;
	const struct view_names *steps = &ranks->workers[0].steps;
	struct view_late_rank worst = {.worker = SIZE_MAX};
	const struct view_worker *worker;
	const struct view_late *late;
	struct ops_string step = {0};
	char time[OPS_FORMAT_ROOM], at[OPS_FORMAT_ROOM];

	for (size_t i = 1; i < steps->texts.count; i++) {
		struct view_late_rank here = view_late_rank_find((const struct view_worker *const *)ranks->order, ranks->count, view_names_at(steps, i));

		if (here.worker == SIZE_MAX || (worst.worker != SIZE_MAX && here.wait_ns <= worst.wait_ns))
			continue;
		worst = here;
		step = view_names_at(steps, i);
	}
	if (worst.worker == SIZE_MAX)
		return;
	worker = &ranks->workers[worst.worker];
	late = &worker->lates[ops_intern_find(&worker->steps.texts, step.bytes, step.size) - 1];
	ops_format_duration(time, worst.wait_ns);
	ops_buffer_append_text(&page->out, page->markdown ? "\nlongest " : "longest ");
	if (ranks->steps_max) {
		ops_buffer_append_text(&page->out, "in step ");
		page_name(page, step, 40, false);
		ops_buffer_append_text(&page->out, ", ");
	}
	ops_buffer_append_text(&page->out, "for ");
	page_name(page, ops_string_of(worker->name), 40, false);
	ops_buffer_printf(&page->out, ": %s", time);
	if (late->wait_ns) {
		ops_buffer_append_text(&page->out, ", mainly at ");
		page_name(page, ops_intern_text(&worker->texts, worker->names[late->collective]), 40, false);
		page_at(worker->views.first_ns, late->span.start_ns, at);
		ops_buffer_printf(&page->out, ", %s after its start", at);
	}
	ops_buffer_append_text(&page->out, "\n");
}

/* Writes which rank is late, and in which operation the others wait longest for it. */
static void ranks_put_late(struct ranks_page *ranks, struct view_late_rank late)
{
	struct page *page = &ranks->page;
	char time[OPS_FORMAT_ROOM];

	if (late.worker == SIZE_MAX) {
		ops_buffer_append_text(&page->out, "\nno rank is late: all wait about equally long\n");
		return;
	}
	ops_format_duration(time, late.wait_ns);
	ops_buffer_append_text(&page->out, "\n");
	page_begin(page, PAGE_TITLE);
	ops_buffer_append_text(&page->out, "late rank: ");
	page_name(page, ops_string_of(ranks->workers[late.worker].name), 40, false);
	page_end(page, PAGE_TITLE);
	ops_buffer_printf(&page->out, "; the others wait %s%s longer than it does\n", time, ranks->steps_max ? " a step" : "");
	ranks_put_longest(ranks);
}

/* Writes how to see one rank. */
static void ranks_put_hint(struct ranks_page *ranks, const char *path)
{
	if (ranks->page.markdown) { /* a report has one rank itself */
		ops_buffer_append_text(&ranks->page.out, "\nto see another rank than the one below: `opstrobe report --format markdown TRACE`\n");
	} else if (path) {
		ops_buffer_append_text(&ranks->page.out, "\nto see one rank: opstrobe ");
		ops_plain_append(&ranks->page.out, path, strlen(path));
		ops_buffer_append_text(&ranks->page.out, "\n");
	}
}

/* `*ret_rank` is the late rank, else the first. */
static bool ranks_put(struct ranks_page *ranks, size_t *ret_rank)
{
	struct view_late_rank late = {.worker = SIZE_MAX};
	bool communicate;

	if (!view_workers_measure(ranks->order, ranks->count, &communicate))
		return false;
	if (communicate)
		late = view_late_rank_find((const struct view_worker *const *)ranks->order, ranks->count, (struct ops_string){0});
	ranks_put_head(ranks);
	ranks_put_table(ranks, communicate, late.worker);
	if (communicate)
		ranks_put_late(ranks, late);
	*ret_rank = late.worker == SIZE_MAX ? 0 : late.worker;
	ranks_put_hint(ranks, ranks->ranks[*ret_rank].path);
	return true;
}

enum ops_code ops_run_text(const struct ops_trace_source *source, const struct ops_rank *ranks, size_t count, enum ops_rules rules,
                           unsigned look, char **ret_text, size_t *ret_size, size_t *ret_rank, struct ops_error *error)
{
	struct ranks_page page = {.page = page_of(look), .ranks = ranks, .steps_min = SIZE_MAX,
	                          .workers = ops_alloc_zeroed(count + 1, sizeof(*page.workers)),
	                          .order = ops_alloc_zeroed(count + 1, sizeof(*page.order)),
	                          .rows = ops_alloc_zeroed(count + 1, sizeof(*page.rows))};
	bool shared = false;
	size_t rank = 0;
	enum ops_code code = page.workers && page.order && page.rows ? OPS_OK : ops_fault_memory(error);

	if (!code)
		code = ranks_read(&page, source, count, rules, &shared, error);
	if (!code && shared && !ranks_put(&page, &rank))
		code = ops_fault_memory(error);
	for (size_t i = 0; i < page.count; i++)
		view_worker_release(&page.workers[i]);
	ops_free(page.workers);
	ops_free(page.order);
	ops_free(page.rows);
	if (!code && shared && ret_rank)
		*ret_rank = rank;
	if (!code && shared)
		return page_finish(&page.page, ret_text, ret_size, error);
	page_release(&page.page);
	if (!code)
		*ret_text = NULL;
	return code;
}
