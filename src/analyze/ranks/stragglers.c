/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds stragglers. A collective ends everywhere at once, so the others wait for the rank that begins it last. Of all
 * communication that is long enough to matter, the kernel whose duration differs most from rank to rank is used.
 *
 * HTA considers only kernels of old NCCL versions, and drops step 0. Here all kernels that communicate count. A trace
 * without steps counts as one step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/text.h"

/* The last run of a kernel on a stream in one step of a rank. */
struct sample {
	uint32_t name; /* ids in a table of the run, since each rank has its own strings */
	uint32_t rank; /* index of the rank */
	int64_t stream;
	int64_t step;
	int64_t ts_ns;
	int64_t dur_ns;
	size_t order;
};

struct search {
	struct analysis_run *run;
	struct ops_intern names;
	OPS_ARRAY(struct sample) samples; /* one for each combination of name, stream, step and rank, sorted by these */
	int64_t *steps;
	size_t step_count;
	bool stepless; /* no rank has steps, and none are requested */
	int64_t first_ns;
	double step_ns; /* duration of an average step */
	int64_t candidates;
};

/* --- steps ------------------------------------------------------------------------------------------------------------ */

static bool stragglers_is_chosen(const struct search *search, int64_t step)
{
	return search->stepless ||
	       (search->step_count && bsearch(&step, search->steps, search->step_count, sizeof(step), ops_compare_int64));
}

/* Selects the requested steps among those that the filter kept. */
static enum ops_code choose_steps(struct search *search)
{
	const struct event_set *events = &search->run->events;
	size_t wanted_count, count = 0;
	const int64_t *wanted = analysis_integers(search->run, "profiler_steps", &wanted_count);
	bool all = !wanted;

	if (search->run->code)
		return search->run->code;
	search->steps = ops_alloc_zeroed(events->steps.count + 1, sizeof(*search->steps));
	if (!search->steps)
		return ops_fault_memory(search->run->error);
	for (size_t i = 0; i < events->count; i++) {
		const struct event_table *table = analysis_table(search->run, i);

		if (!table)
			return analysis_failed(search->run);
		for (size_t k = 0; k < table->kept_count; k++) {
			size_t at = event_step_index(events, table->rows[table->kept[k]].step);

			if (table->rows[table->kept[k]].stream < 0 && at < events->steps.count)
				search->steps[at] = 1;
		}
	}
	for (size_t i = 0; i < events->steps.count; i++)
		if (search->steps[i] && (all || analysis_integers_have(wanted, wanted_count, events->steps.items[i])))
			search->steps[count++] = events->steps.items[i];
	search->step_count = count;
	search->stepless = all && !events->steps.count;
	if (!count && !all)
		return ops_fault(search->run->error, OPS_INVALID, "option 'profiler_steps' matches no step of the traces");
	return OPS_OK;
}

/* Finds the start of the first step, and the average duration of a step. */
static bool stragglers_measure_steps(struct search *search)
{
	const struct event_set *events = &search->run->events;
	int64_t last_ns = INT64_MIN;

	search->first_ns = INT64_MAX;
	for (size_t i = 0; i < events->count; i++) {
		const struct event_table *table = analysis_table(search->run, i);

		if (!table)
			return false;
		for (size_t k = 0; k < table->kept_count; k++) {
			const struct event_row *row = &table->rows[table->kept[k]];

			if (!stragglers_is_chosen(search, row->step))
				continue;
			if (row->ts_ns < search->first_ns)
				search->first_ns = row->ts_ns;
			if (event_end(row) > last_ns)
				last_ns = event_end(row);
		}
	}
	if ((search->stepless || search->step_count) && last_ns > search->first_ns)
		search->step_ns = ((double)last_ns - (double)search->first_ns) / (double)(search->stepless ? 1 : search->step_count);
	return true;
}

/* --- kernels ---------------------------------------------------------------------------------------------------------- */

static bool stragglers_collect(struct search *search)
{
	const struct event_set *events = &search->run->events;

	for (size_t i = 0; i < events->count; i++) {
		const struct event_table *table = analysis_table(search->run, i);

		if (!table)
			return false;
		for (size_t k = 0; k < table->kept_count; k++) {
			const struct event_row *row = &table->rows[table->kept[k]];
			struct ops_string name = event_name(table, row);
			struct sample *sample;
			uint32_t id;

			if (!row->on_device || row->class_ != EVENT_COMMUNICATION || !stragglers_is_chosen(search, row->step) ||
			    (double)row->dur_ns < search->step_ns / 100)
				continue;
			id = ops_intern_add(&search->names, name.bytes, name.size);
			sample = id == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&search->samples);
			if (!sample)
				return false;
			*sample = (struct sample){id, (uint32_t)i, row->stream, row->step, row->ts_ns, row->dur_ns,
			                          search->samples.count};
		}
	}
	return true;
}

/* Groups runs of one kernel in one step, in order of the file. */
OPS_ORDER(compare_samples, struct sample, OPS_UP(name) OPS_UP(stream) OPS_UP(step) OPS_UP(rank) OPS_UP(order))

static bool same_kernel(const struct sample *a, const struct sample *b)
{
	return a->name == b->name && a->stream == b->stream;
}

static void keep_last_ones(struct search *search)
{
	struct sample *samples = search->samples.items;
	size_t kept = 0;

	if (search->samples.count)
		qsort(samples, search->samples.count, sizeof(*samples), compare_samples);
	for (size_t i = 0; i < search->samples.count; i++) {
		bool again = kept && same_kernel(&samples[kept - 1], &samples[i]) &&
		             samples[kept - 1].step == samples[i].step && samples[kept - 1].rank == samples[i].rank;

		samples[again ? kept - 1 : kept++] = samples[i];
	}
	search->samples.count = kept;
}

/* Returns the standard deviation of the durations of `count` runs; NaN for one run. */
static double deviation(const struct sample *samples, size_t count)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		mean += (double)samples[i].dur_ns / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += pow((double)samples[i].dur_ns - mean, 2);
	return count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}

/* Returns the end of the runs of the same step. */
static size_t step_end(const struct search *search, size_t from)
{
	const struct sample *samples = search->samples.items;
	size_t to = from + 1;

	while (to < search->samples.count && same_kernel(&samples[from], &samples[to]) && samples[from].step == samples[to].step)
		to++;
	return to;
}

/* Chooses the kernel whose durations differ most, averaged over the steps. Chooses none if no kernel ran on two
 * ranks. */
static size_t choose_kernel(const struct search *search, size_t *ret_end)
{
	size_t chosen = *ret_end = 0;
	double most = -1;

	for (size_t from = 0, to; from < search->samples.count; from = to) {
		double sum = 0;
		size_t steps = 0;

		for (to = from; to < search->samples.count && same_kernel(&search->samples.items[from], &search->samples.items[to]);) {
			size_t end = step_end(search, to);
			double differs = deviation(&search->samples.items[to], end - to);

			if (!isnan(differs))
				sum += differs, steps++;
			to = end;
		}
		if (steps && sum / (double)steps > most) {
			most = sum / (double)steps;
			chosen = from;
			*ret_end = to;
		}
	}
	return chosen;
}

/* --- scores ----------------------------------------------------------------------------------------------------------- */

struct late {
	uint32_t rank;
	int64_t score;
};

OPS_ORDER(latest_first, struct sample, OPS_DOWN(ts_ns))

OPS_ORDER(most_often_first, struct late, OPS_DOWN(score) OPS_UP(rank))

/* In each step the ranks that begin last get a point. */
static void score(struct search *search, size_t from, size_t end, struct late *ranks)
{
	for (size_t to; from < end; from = to) {
		struct sample *samples = &search->samples.items[from];
		size_t count, limit;

		to = step_end(search, from);
		count = to - from;
		limit = (size_t)search->candidates < count ? (size_t)search->candidates : count;
		qsort(samples, count, sizeof(*samples), latest_first);
		for (size_t i = 0; i < count && samples[i].ts_ns >= samples[limit - 1].ts_ns; i++)
			ranks[samples[i].rank].score++;
	}
}

static enum ops_code stragglers_answer(struct search *search)
{
	size_t count = search->run->count, end, from = choose_kernel(search, &end), found = 0;
	struct late *ranks = ops_alloc_zeroed(count + 1, sizeof(*ranks));
	int64_t *numbers = ops_alloc_zeroed(count + 1, sizeof(*numbers));
	struct ops_json_writer *json = &search->run->result.json;
	enum ops_code code = ranks && numbers ? OPS_OK : ops_fault_memory(search->run->error);

	for (uint32_t i = 0; !code && i < count; i++)
		ranks[i].rank = i;
	if (!code) {
		score(search, from, end, ranks);
		qsort(ranks, count, sizeof(*ranks), most_often_first);
		for (size_t i = 0; i < count && (int64_t)i < search->candidates && ranks[i].score > 0; i++)
			numbers[found++] = search->run->ranks[ranks[i].rank].rank;
		qsort(numbers, found, sizeof(*numbers), ops_compare_int64);
		ops_json_open(json, '[');
		for (size_t i = 0; i < found; i++)
			ops_json_integer(json, numbers[i]);
		ops_json_close(json, ']');
	}
	ops_free(ranks);
	ops_free(numbers);
	return code;
}

enum ops_code analysis_potential_stragglers(struct analysis_run *run)
{
	struct search search = {.run = run, .candidates = analysis_integer(run, "num_candidates")};
	enum ops_code code = run->code;

	if (search.candidates < 1)
		search.candidates = 1;
	if (!code)
		code = choose_steps(&search);
	if (!code && !(stragglers_measure_steps(&search) && stragglers_collect(&search)))
		code = analysis_failed(run);
	if (!code) {
		keep_last_ones(&search);
		code = stragglers_answer(&search);
	}
	ops_free(search.steps);
	ops_intern_release(&search.names);
	OPS_ARRAY_RELEASE(&search.samples);
	return code;
}
