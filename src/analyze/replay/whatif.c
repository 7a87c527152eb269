/* SPDX-License-Identifier: Apache-2.0
 *
 * `whatif`: how long steps would take if parts took another time or did not run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/format.h"
#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/json_value.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

/* Predictions of a replay whose error exceeds this are not reliable. */
#define ERROR_PERCENT_MAX 10.0

/* --- columns ------------------------------------------------------------------------------------------------------------ */

enum { OF_RANKS = 1, AS_DATA = 2 };

struct whatif_row {
	const char *rank;
	struct ops_string change;
	int64_t events, step_ns, saved_ns, low_ns, high_ns;
	double percent, error_percent;
	struct ops_string note;
};

#define FIELD(member) RESULT_FIELD(struct whatif_row, member)

static const struct result_column whatif_columns[] = {
	{.name = "worker", .type = RESULT_TEXT, .title = "Trace", .about = "Name of the trace", .when = "several traces",
	 .option = OF_RANKS, FIELD(rank)},
	{.name = "change", .type = RESULT_TEXT, .priority = RESULT_MAJOR, .title = "Change",
	 .about = "What is different: nothing (measured and replayed), one change, or all of them", FIELD(change)},
	{.name = "events", .type = RESULT_COUNT, .priority = RESULT_MINOR, .title = "Events",
	 .about = "Events that the change is about, without those in them", .nullable = true, FIELD(events)},
	{.name = "step_us", .type = RESULT_TIME, .priority = RESULT_MAJOR, .title = "Step", .about = "Median time of a step",
	 .nullable = true, FIELD(step_ns)},
	{.name = "saved_us", .type = RESULT_TIME, .unbounded = true, .priority = RESULT_MAJOR, .title = "Saved",
	 .about = "Median over the steps of what a step becomes shorter", .nullable = true, FIELD(saved_ns)},
	{.name = "saved_low_us", .type = RESULT_TIME, .unbounded = true, .title = "From",
	 .about = "One step in twenty becomes shorter by less than this", .nullable = true, FIELD(low_ns)},
	{.name = "saved_high_us", .type = RESULT_TIME, .unbounded = true, .title = "To",
	 .about = "One step in twenty becomes shorter by more than this", .nullable = true, FIELD(high_ns)},
	{.name = "saved_percent", .type = RESULT_PERCENT, .unbounded = true, .priority = RESULT_MAJOR, .title = "Saved %",
	 .about = "Saved time by the replayed step without a change", .nullable = true, FIELD(percent)},
	{.name = "replay_error_percent", .type = RESULT_PERCENT, .unbounded = true, .option = AS_DATA, .when = "JSON and CSV",
	 .about = "Mean difference between the replayed and the measured steps, of the replay without a change", .nullable = true,
	 FIELD(error_percent)},
	{.name = "note", .type = RESULT_TEXT, .title = "Note", .about = "Why a change has no effect, or how far to trust the replay",
	 .nullable = true, FIELD(note)},
};
const struct result_declaration table_whatif =
	RESULT_DECLARATION("whatif", "The steps as measured, as replayed, and as replayed with a change", whatif_columns);

/* --- changes of a query --------------------------------------------------------------------------------------------------- */

struct whatif {
	struct analysis_run *run;
	struct replay_changes changes;
	struct ops_buffer texts[REPLAY_CHANGES_MAX]; /* name or pattern of each change */
	const struct replay *replay;
	const char *rank;
	int64_t *measured_ns, *unchanged_ns, *changed_ns;
	double *numbers;
};

static enum ops_code push_change(struct whatif *whatif, struct replay_change change)
{
	if (whatif->changes.count == REPLAY_CHANGES_MAX)
		return ops_fault(whatif->run->error, OPS_INVALID, "whatif takes at most %d changes", REPLAY_CHANGES_MAX);
	whatif->changes.items[whatif->changes.count++] = change;
	return OPS_OK;
}

/* Parses "PATTERN=FACTOR". The last '=' is the separator, since patterns may contain others. */
static enum ops_code parse_factor(struct whatif *whatif, struct ops_buffer *text, double *ret_factor)
{
	char *equals = text->size ? memrchr(text->bytes, '=', text->size) : NULL;
	struct ops_string number = {equals ? equals + 1 : "", equals ? (size_t)(text->bytes + text->size - equals - 1) : 0};

	if (!equals || equals == text->bytes || !ops_json_parse_number(number, ret_factor) || !(*ret_factor >= 0) ||
	    *ret_factor > 1e6)
		return ops_fault(whatif->run->error, OPS_INVALID, "option 'scale' must be PATTERN=FACTOR with a factor from 0 to 1000000, not '%.*s'",
		                 (int)(text->size < 80 ? text->size : 80), text->size ? text->bytes : "");
	text->size = (size_t)(equals - text->bytes);
	return OPS_OK;
}

/* Reads an option that is a text or a list of texts, each of which is a change. */
static enum ops_code whatif_read_texts(struct whatif *whatif, const char *option, struct replay_change change, bool factors)
{
	struct ops_string value = analysis_arg(whatif->run, option), item;
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	enum ops_code code;
	size_t count;

	if (value.bytes[0] != '"')
		analysis_texts(whatif->run, option, &count);
	code = whatif->run->code;
	if (code || ops_string_is(value, "null"))
		return code;
	while (!code && ops_json_next_element(&walk, &item)) {
		struct ops_buffer *text = &whatif->texts[whatif->changes.count];

		code = push_change(whatif, change);
		if (code)
			return code;
		ops_json_decode(text, item.bytes + 1, item.size - 2);
		if (text->failed)
			return ops_fault_memory(whatif->run->error);
		if (!text->size)
			return ops_fault(whatif->run->error, OPS_INVALID, "option '%s' of whatif is empty", option);
		if (factors)
			code = parse_factor(whatif, text, &whatif->changes.items[whatif->changes.count - 1].factor);
	}
	return code;
}

static enum ops_code whatif_read_switch(struct whatif *whatif, const char *option, enum replay_change_kind kind)
{
	bool set = analysis_bool(whatif->run, option);

	return whatif->run->code || !set ? whatif->run->code : push_change(whatif, (struct replay_change){.kind = kind});
}

#define WORKERS_MAX 1024

static enum ops_code read_workers(struct whatif *whatif)
{
	int64_t workers;
	enum ops_code code;

	if (ops_string_is(analysis_arg(whatif->run, "workers"), "null"))
		return OPS_OK;
	workers = analysis_count(whatif->run, "workers");
	code = whatif->run->code;
	if (!code && (workers < 1 || workers > WORKERS_MAX))
		code = ops_fault(whatif->run->error, OPS_INVALID, "option 'workers' of whatif must be from 1 to %d", WORKERS_MAX);
	return code ? code : push_change(whatif, (struct replay_change){.kind = REPLAY_WORKERS, .workers = workers});
}

static enum ops_code read_changes(struct whatif *whatif)
{
	enum ops_code code = whatif_read_switch(whatif, "remove_syncs", REPLAY_REMOVE_SYNCS);

	if (!code)
		code = whatif_read_switch(whatif, "no_launch_overhead", REPLAY_NO_LAUNCH_OVERHEAD);
	if (!code)
		code = read_workers(whatif);
	if (!code)
		code = whatif_read_texts(whatif, "overlap", (struct replay_change){.kind = REPLAY_OVERLAP}, false);
	if (!code)
		code = whatif_read_texts(whatif, "scale", (struct replay_change){.kind = REPLAY_SCALE}, true);
	if (!code)
		code = whatif_read_texts(whatif, "drop", (struct replay_change){.kind = REPLAY_SCALE}, false);
	return code;
}

/* --- texts ---------------------------------------------------------------------------------------------------------------- */

static void append_change(const struct whatif *whatif, size_t i, struct ops_buffer *out)
{
	const struct replay_change *change = &whatif->changes.items[i];
	struct ops_string text = {whatif->texts[i].bytes ? whatif->texts[i].bytes : "", whatif->texts[i].size};
	char number[32];

	switch (change->kind) {
	case REPLAY_REMOVE_SYNCS:
		ops_buffer_append_text(out, "without synchronisations");
		break;
	case REPLAY_NO_LAUNCH_OVERHEAD:
		ops_buffer_append_text(out, "without launch overhead");
		break;
	case REPLAY_WORKERS:
		ops_buffer_printf(out, "%lld loader worker%s", (long long)change->workers, change->workers == 1 ? "" : "s");
		break;
	case REPLAY_OVERLAP:
		ops_buffer_printf(out, "'%.*s' overlapped", (int)text.size, text.bytes);
		break;
	case REPLAY_SCALE:
		if (change->factor == 0) {
			ops_buffer_printf(out, "without '%.*s'", (int)text.size, text.bytes);
		} else {
			*result_short_number(number, change->factor) = '\0';
			ops_buffer_printf(out, "'%.*s' × %s", (int)text.size, text.bytes, number);
		}
	}
}

/* Returns why a change has no effect. */
static const char *why_nothing(const struct whatif *whatif, const struct replay_change *change, int64_t saved_ns)
{
	if (change->kind == REPLAY_WORKERS && !change->events) {
		if (!whatif->replay->batch_period_ns)
			return "no data loader in this trace";
		return whatif->replay->batches.count ? "the trace does not say how many workers the loader has: record with_stack"
		                                     : "steps do not wait for the workers of the loader";
	}
	if (!change->events)
		return change->kind == REPLAY_REMOVE_SYNCS         ? "no synchronisation in this trace"
		       : change->kind == REPLAY_NO_LAUNCH_OVERHEAD ? "no work is launched on a device in this trace"
		       : change->kind == REPLAY_OVERLAP            ? "no such communication in this trace"
		                                                   : "no such event in this trace";
	return saved_ns == 0 ? "no effect on the steps: other work hides it, or it is outside of them" : NULL;
}

/* --- figures -------------------------------------------------------------------------------------------------------------- */

static double *differences(const struct whatif *whatif, const int64_t *before, const int64_t *after)
{
	size_t count = whatif->replay->steps.count;

	for (size_t i = 0; i < count; i++)
		whatif->numbers[i] = (double)before[i] - (after ? (double)after[i] : 0);
	qsort(whatif->numbers, count, sizeof(*whatif->numbers), ops_compare_double);
	return whatif->numbers;
}

static int64_t quantile_ns(const struct whatif *whatif, const double *sorted, double share)
{
	return (int64_t)ops_quantile(sorted, whatif->replay->steps.count, share);
}

static int64_t median_ns(const struct whatif *whatif, const int64_t *times_ns)
{
	return quantile_ns(whatif, differences(whatif, times_ns, NULL), 0.5);
}

static void whatif_add_row(const struct whatif *whatif, struct whatif_row row)
{
	row.rank = whatif->rank;
	result_add(&whatif->run->result.table, &row);
}

/* Adds a row without a change. */
static void add_plain(const struct whatif *whatif, const char *name, int64_t step_ns, double error_percent, const char *note)
{
	whatif_add_row(whatif, (struct whatif_row){.change = ops_string_of(name), .events = RESULT_NULL, .step_ns = step_ns,
	                                           .saved_ns = RESULT_NULL, .low_ns = RESULT_NULL, .high_ns = RESULT_NULL,
	                                           .percent = (double)NAN, .error_percent = error_percent,
	                                           .note = ops_string_of(note)});
}

static void add_measured(const struct whatif *whatif)
{
	char note[64];
	size_t count = whatif->replay->steps.count;

	if (whatif->replay->trace_steps->source == OPS_STEPS_NONE)
		snprintf(note, sizeof(note), "the trace has no steps: all of it counts as one");
	else
		snprintf(note, sizeof(note), "median of %zu step%s", count, count == 1 ? "" : "s");
	add_plain(whatif, "measured", median_ns(whatif, whatif->measured_ns), (double)NAN, note);
}

static void add_unchanged(const struct whatif *whatif)
{
	size_t count = whatif->replay->steps.count;
	double percent = 0;
	char note[128];

	for (size_t i = 0; i < count; i++)
		if (whatif->measured_ns[i] > 0)
			percent += 100 * fabs((double)(whatif->unchanged_ns[i] - whatif->measured_ns[i])) / (double)whatif->measured_ns[i] /
			           (double)count;
	percent = result_round(percent, 2);
	snprintf(note, sizeof(note), "differs from the measured steps by %s%s", ops_figure_of_percent(percent).text,
	         percent > ERROR_PERCENT_MAX ? ": too far to trust the predictions" : "");
	add_plain(whatif, "replayed", median_ns(whatif, whatif->unchanged_ns), percent, note);
}

static void add_changed(const struct whatif *whatif, struct ops_string change, int64_t events, const struct replay_change *only)
{
	struct whatif_row row = {.change = change, .events = events, .step_ns = median_ns(whatif, whatif->changed_ns),
	                         .error_percent = (double)NAN};
	int64_t unchanged_ns = median_ns(whatif, whatif->unchanged_ns);
	const double *saved = differences(whatif, whatif->unchanged_ns, whatif->changed_ns);
	const char *why;

	row.saved_ns = quantile_ns(whatif, saved, 0.5);
	row.low_ns = quantile_ns(whatif, saved, 0.05);
	row.high_ns = quantile_ns(whatif, saved, 0.95);
	row.percent = unchanged_ns > 0 ? result_round(100 * (double)row.saved_ns / (double)unchanged_ns, 2) : (double)NAN;
	why = only ? why_nothing(whatif, only, row.low_ns == 0 && row.high_ns == 0 ? 0 : 1) : NULL;
	row.note = why ? ops_string_of(why) : (struct ops_string){0};
	whatif_add_row(whatif, row);
}

/* --- one trace ------------------------------------------------------------------------------------------------------------ */

static enum ops_code mark_texts(struct whatif *whatif)
{
	enum ops_code code = OPS_OK;

	whatif->changes.mask = ops_alloc_zeroed(whatif->replay->events->count + 1, sizeof(*whatif->changes.mask));
	if (!whatif->changes.mask)
		return ops_fault_memory(whatif->run->error);
	for (size_t i = 0; !code && i < whatif->changes.count; i++) {
		enum replay_change_kind kind = whatif->changes.items[i].kind;
		struct ops_string text = {whatif->texts[i].bytes, whatif->texts[i].size};

		whatif->changes.items[i].events = 0;
		if (kind == REPLAY_SCALE || kind == REPLAY_OVERLAP)
			code = replay_match(whatif->replay, text, kind == REPLAY_OVERLAP, whatif->changes.mask, (uint16_t)(1u << i),
			                    whatif->run->error);
	}
	return code;
}

/* Adds a row for each change by itself, then for all together. */
static bool add_changes(struct whatif *whatif)
{
	unsigned all = (1u << whatif->changes.count) - 1;
	bool done = true;

	for (size_t i = 0; done && i < whatif->changes.count; i++) {
		struct ops_buffer text = {0};

		append_change(whatif, i, &text);
		done = !text.failed && replay_run(whatif->replay, &whatif->changes, 1u << i, whatif->changed_ns);
		if (done)
			add_changed(whatif, (struct ops_string){text.bytes, text.size}, (int64_t)whatif->changes.items[i].events,
			            &whatif->changes.items[i]);
		ops_buffer_release(&text);
	}
	if (!done || whatif->changes.count < 2)
		return done;
	done = replay_run(whatif->replay, &whatif->changes, all, whatif->changed_ns);
	if (done)
		add_changed(whatif, ops_string_of("all of these"), RESULT_NULL, NULL);
	return done;
}

static bool replay_whatif(struct whatif *whatif)
{
	size_t count = whatif->replay->steps.count;

	whatif->measured_ns = ops_alloc_zeroed(3 * count + 1, sizeof(*whatif->measured_ns));
	whatif->numbers = ops_alloc_zeroed(count + 1, sizeof(*whatif->numbers));
	if (!whatif->measured_ns || !whatif->numbers)
		return false;
	whatif->unchanged_ns = whatif->measured_ns + count;
	whatif->changed_ns = whatif->unchanged_ns + count;
	for (size_t i = 0; i < count; i++)
		whatif->measured_ns[i] = whatif->replay->steps.items[i].measured_ns;
	if (!replay_select(whatif->replay, &whatif->changes) ||
	    !replay_run(whatif->replay, &whatif->changes, 0, whatif->unchanged_ns))
		return false;
	add_measured(whatif);
	add_unchanged(whatif);
	return add_changes(whatif);
}

static enum ops_code whatif_of_trace(struct whatif *whatif, const struct ops_trace *trace)
{
	struct replay replay;
	enum ops_code code = replay_init(&replay, trace) ? OPS_OK : ops_fault_memory(whatif->run->error);

	whatif->replay = &replay;
	if (!code)
		code = mark_texts(whatif);
	if (!code && !replay.steps.count)
		add_plain(whatif, "measured", RESULT_NULL, (double)NAN, "the trace has no events on the host to replay");
	else if (!code && !replay_whatif(whatif))
		code = ops_fault_memory(whatif->run->error);
	ops_free(whatif->measured_ns);
	ops_free(whatif->numbers);
	whatif->measured_ns = NULL;
	whatif->numbers = NULL;
	replay_changes_release(&whatif->changes);
	replay_release(&replay);
	return code;
}

enum ops_code analysis_whatif(struct analysis_run *run)
{
	struct whatif whatif = {.run = run};
	bool data = run->format == OPS_FORMAT_JSON || run->format == OPS_FORMAT_CSV;
	enum ops_code code = read_changes(&whatif);

	run->result.table.copies = true;
	result_declare(&run->result.table, &table_whatif, (run->count > 1 ? OF_RANKS : 0) | (data ? AS_DATA : 0));
	for (size_t i = 0; !code && i < run->count; i++) {
		struct ops_trace *trace = NULL;

		code = analysis_open_trace(run, i, &trace);
		whatif.rank = run->count > 1 ? run->ranks[i].name : NULL;
		if (!code)
			code = whatif_of_trace(&whatif, trace);
		ops_trace_unref(trace);
	}
	for (size_t i = 0; i < REPLAY_CHANGES_MAX; i++)
		ops_buffer_release(&whatif.texts[i]);
	return code;
}
