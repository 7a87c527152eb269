/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that wait for the data loader, and the cause: loading in the main process, too few workers, or restarted
 * workers.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/program.h"
#include "derive/sample_moves.h"

struct loading {
	struct advice_tally lines; /* self time in the loader, by line of the program */
	int64_t longest_ns;        /* longest of the waits; the tally of the result has their times by the line that
	                            * gets a batch */
	int64_t starved_ns;        /* part of the waits in which a worker was ready while other programs had the
	                            * processors */
	uint64_t opened, samples;  /* files opened, and samples made by the program, in the main process */
	uint64_t fetched;          /* samples made by the program or by data sets of torch, in the main process */
	uint64_t fetched_by_code;  /* operators in them that do more than take a part of a tensor */
	int64_t fetch_ns;          /* time of these samples */
	uint64_t received;         /* tensors received from workers */
	uint64_t collated;         /* tensors that collate functions of torch make of Python values */
	int64_t collate_ns;        /* self time of these functions and of what they call */
	uint32_t collate_row;      /* the first row of them */
	uint8_t *kind;             /* enum loading_name, by string */
	uint8_t *collates;         /* by row: in such a function */
	uint32_t sample;           /* longest call of the program that makes a sample; OPS_NONE: unknown */
	struct advice_python_parts python; /* what functions of the program spend their time on */
	const struct advice_python_part *mentioned; /* NULL: none */
	bool in_process;           /* the steps wait longest for a loader without workers */
	uint8_t *counts;           /* by row: in loaders of that kind, in a steady step */
};

enum loading_name { NAME_OPENS = 1, NAME_MAKES_SAMPLE, NAME_RECEIVES, NAME_COLLATES, NAME_MAKES_TENSOR };

static bool is_inner(const struct advice *advice, uint32_t row)
{
	return advice->events->parent[row] != OPS_NONE && (advice->zone[advice->events->parent[row]] & ADVICE_IN_LOADER);
}

/* Rows come after their parents. */
static bool is_collating(struct loading *loading, const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	loading->collates[row] = loading->kind[advice->events->name[row]] == NAME_COLLATES || (parent != OPS_NONE && loading->collates[parent]);
	return loading->collates[row];
}

/* Adds the self time of rows in the loader at the line of the program around them; self time of a function of the
 * program is added at its loop. */
static void add_waits(struct loading *loading, const struct advice *advice, struct advice_result *result)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t own = OPS_NONE;

		if (!loading->counts[row])
			continue;
		/* A loader that reads from another loader waits for both. */
		if (advice->views->parts[row] == VIEW_LOADER && !is_inner(advice, row)) {
			advice_add(result, row, advice_host_ns(advice, row));
			if (advice_host_ns(advice, row) > loading->longest_ns)
				loading->longest_ns = advice_host_ns(advice, row);
			advice_claim(result, row);
		}
		if (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			own = advice_own_site(advice, row);
		if (own == OPS_NONE && is_collating(loading, advice, row)) {
			loading->collate_ns = ops_sum(loading->collate_ns, advice_host_self_ns(advice, row));
			loading->collate_row = loading->collate_row == OPS_NONE ? row : loading->collate_row;
			continue;
		}
		advice_tally_add_at(&loading->lines, own == OPS_NONE ? advice->site[row] : own, row,
		                    advice_host_self_ns(advice, row));
	}
}

/* Divides the time of each line among the lines at which samples found the program: without recorded calls, all of it is at the loop.
 * Returns false if out of memory. */
static bool divide_by_samples(struct loading *loading, const struct advice *advice)
{
	struct ops_sample_moves moves = {0};
	struct advice_tally *lines = &loading->lines;
	int64_t *before_ns = ops_alloc_zeroed(lines->count, sizeof(*before_ns));
	bool done = before_ns != NULL;

	for (size_t i = 0; done && i < advice->samples.samples.count; i++) {
		uint32_t row = advice->sample_row[i], to = advice->sample_site[i];

		if (row != OPS_NONE && to != OPS_NONE && advice->site[row] != OPS_NONE && loading->counts[row])
			done = ops_sample_moves_add(&moves, advice->site[row], to, advice->samples.samples.items[i].state, advice->samples.samples.items[i].weight_ns);
	}
	done = done && ops_sample_moves_divide(&moves);
	for (size_t i = 0; done && i < lines->count; i++)
		before_ns[i] = lines->costs[i].ns;
	for (size_t i = 0; done && i < moves.moves.count; i++) {
		const struct ops_sample_move *move = &moves.moves.items[i];
		int64_t ns = (int64_t)(move->part * (double)before_ns[move->from]);

		advice_tally_add_at(lines, move->to, lines->costs[move->from].row, ns);
		lines->costs[move->from].ns -= ns;
		lines->ns -= ns;
	}
	ops_free(before_ns);
	ops_sample_moves_release(&moves);
	return done;
}

static bool is_without_workers(const struct advice *advice, uint32_t row)
{
	return ops_string_contains(advice_name(advice, row), "_SingleProcess");
}

/* The time that the steps wait for loaders, and the longest of these waits. */
static int64_t rule_loader_waits_ns(const struct advice *advice, bool in_process, int64_t *ret_longest_ns)
{
	int64_t sum_ns = 0;

	*ret_longest_ns = 0;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t ns = advice_host_ns(advice, row);

		if (advice->views->parts[row] != VIEW_LOADER || !advice_counts(advice, row) || is_inner(advice, row) ||
		    is_without_workers(advice, row) != in_process)
			continue;
		sum_ns = ops_sum(sum_ns, ns);
		if (ns > *ret_longest_ns)
			*ret_longest_ns = ns;
	}
	return sum_ns;
}

int64_t advice_waits_for_workers_ns(const struct advice *advice)
{
	int64_t longest_ns, sum_ns = rule_loader_waits_ns(advice, false, &longest_ns);

	return sum_ns - longest_ns;
}

/* A loader with workers and one without, such as those of training and validation, have different remedies: only the kind counts for which
 * the steps wait longest. */
static void rule_loader_find_kind(struct loading *loading, const struct advice *advice)
{
	const struct ops_events *events = advice->events;
	int64_t longest_ns;

	loading->in_process = rule_loader_waits_ns(advice, true, &longest_ns) > rule_loader_waits_ns(advice, false, &longest_ns);
	/* Children come after their parents. */
	for (uint32_t row = 0; row < events->count; row++) {
		if (!(advice->zone[row] & ADVICE_IN_LOADER) || !advice_counts(advice, row))
			continue;
		if (advice->views->parts[row] == VIEW_LOADER && !is_inner(advice, row))
			loading->counts[row] = is_without_workers(advice, row) == loading->in_process;
		else
			loading->counts[row] = events->parent[row] == OPS_NONE || !(advice->zone[events->parent[row]] & ADVICE_IN_LOADER) ||
			                       loading->counts[events->parent[row]];
	}
}

/* Returns true if a row is below the call that makes a sample. */
static bool is_in_sample(const struct loading *loading, const struct advice *advice, uint32_t row)
{
	while ((row = advice->events->parent[row]) != OPS_NONE)
		if (loading->kind[advice->events->name[row]] == NAME_MAKES_SAMPLE)
			return true;
	return false;
}

/* Returns true for an operator that does more for a sample than take a part of a tensor. */
static bool computes_sample(const struct loading *loading, const struct advice *advice, uint32_t row)
{
	enum operator_kind kind;

	if (!advice_is_operator(advice, row) || (advice->zone[row] & ADVICE_IN_OPERATOR))
		return false;
	kind = advice_kind(advice, row);
	return kind != OPERATOR_NARROWS && kind != OPERATOR_SELECTS && kind != OPERATOR_VIEWS && is_in_sample(loading, advice, row);
}

/* Counts what makes loading slow whatever a sample contains. */
static void count_loading(struct loading *loading, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint8_t of = loading->kind[advice->events->name[row]];

		if (!loading->counts[row])
			continue;
		loading->fetched_by_code += computes_sample(loading, advice, row);
		if (!of)
			continue;
		if (of == NAME_MAKES_SAMPLE && !is_in_sample(loading, advice, row)) {
			loading->fetched++;
			loading->fetch_ns = ops_sum(loading->fetch_ns, advice_host_ns(advice, row));
		}
		loading->opened += of == NAME_OPENS;
		loading->received += of == NAME_RECEIVES;
		loading->collated += of == NAME_MAKES_TENSOR && loading->collates[row];
		if (of != NAME_MAKES_SAMPLE || advice_own_site(advice, row) == OPS_NONE)
			continue;
		loading->samples++;
		if (loading->sample == OPS_NONE || advice_host_ns(advice, row) > advice_host_ns(advice, loading->sample))
			loading->sample = row;
	}
}

/* Minimum number of files that a sample opens, and of tensors in a batch, to be mentioned. */
#define OPENED_MIN 1
#define RECEIVED_MIN 32
/* Minimum share of the waits of collating, to be mentioned. */
#define PART_MIN 0.4

static bool mainly_collates(const struct loading *loading, const struct advice *advice, double all_ns)
{
	return loading->in_process && (double)loading->collate_ns >= PART_MIN * all_ns && advice_per_step(advice, loading->collated) >= RECEIVED_MIN;
}

/* A sample of rows of tensors takes some microseconds; Python code for it takes longer. */
#define FETCH_NS_MAX 100000

/* Returns true if batches are made of many samples that are only parts of tensors. */
static bool fetches_rows(const struct loading *loading, const struct advice *advice, double all_ns)
{
	return loading->in_process && advice_per_step(advice, loading->fetched) >= RECEIVED_MIN && loading->fetched_by_code * 10 < loading->fetched &&
	       loading->fetch_ns < FETCH_NS_MAX * (int64_t)loading->fetched && (double)ops_sum(loading->fetch_ns, loading->collate_ns) >= PART_MIN * all_ns;
}

static bool reads_archive(const struct loading *loading, const struct advice *advice)
{
	struct ops_function_text callee;

	return loading->python.called.row != OPS_NONE && ops_event_function(advice->trace, loading->python.called.row, &callee) &&
	       ops_string_is(callee.name, "NpzFile.__getitem__");
}

/* Formats a sentence about what makes loading slow, and what to do about it. */
static void describe_loading(struct loading *loading, const struct advice *advice, double all_ns, char *fact, char *advised, size_t size)
{
	double received = advice_per_step(advice, loading->received);

	*fact = *advised = '\0';
	if (loading->in_process && loading->samples && loading->opened >= OPENED_MIN * loading->samples) {
		snprintf(fact, size, " Files are opened %s times for each sample.", ops_figure_of_number((double)loading->opened / (double)loading->samples).text);
		snprintf(advised, size, "If %s the same file, keep it open, read what a sample needs with one call, or keep small data in memory. ",
		         loading->opened > loading->samples ? "a sample opens" : "samples open");
	} else if (received >= RECEIVED_MIN) {
		snprintf(fact, size, " Each batch arrives as %s separate tensors.", ops_figure_of_number(received).text);
		snprintf(advised, size, "Each tensor is passed by its own file descriptor: join them in collate_fn, with their lengths, or pass arrays of NumPy. ");
	} else if (mainly_collates(loading, advice, all_ns)) {
		snprintf(fact, size, " The default collate function makes %s of Python values for each batch.",
		         advice_counted(advice, loading->collated, "tensor", "tensors").text);
		snprintf(advised, size, "Samples have lists of numbers: return a tensor or an array for each field, made once before the epochs. ");
	} else if (fetches_rows(loading, advice, all_ns)) {
		snprintf(fact, size, " The data set returns the samples of a batch one by one: %s selections from tensors, which are then stacked.",
		         ops_figure_of_number(advice_per_step(advice, loading->fetched)).text);
		snprintf(advised, size, "Select complete batches: sampler=BatchSampler(RandomSampler(data), size, drop_last=True) and batch_size=None, or "
		                        "a data set with __getitems__. ");
	} else if (loading->in_process) {
		loading->mentioned = advice_describe_python(advice, &loading->python, "that", all_ns, fact, advised, size);
	}
}

/* If the workers themselves wait for a processor, more of them would not help, and less work does not if other programs have it. */
static bool find_starved(struct loading *loading, const struct advice *advice)
{
	size_t steps = advice->views->steps.count;
	int64_t *waits = ops_alloc_zeroed(steps + 1, sizeof(*waits));

	if (!waits)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->views->parts[row] == VIEW_LOADER && loading->counts[row] && !is_inner(advice, row))
			waits[advice->step_of[row]] = ops_sum(waits[advice->step_of[row]], advice_host_ns(advice, row));
	for (size_t i = 0; i < steps; i++) {
		const struct ops_step_wait *wait = &advice->machine.waits[i];
		int64_t step_ns = advice->views->steps.items[i].end_ns - advice->views->steps.items[i].start_ns, starved_ns;

		/* After the batch arrives, this thread waits for a processor as it does elsewhere. Workers that share
		 * caches with other programs are slow as well. */
		starved_ns = ops_sum(wait->children_waited_ns,
		                     step_ns > 0 ? (int64_t)((double)wait->waited_ns * (double)waits[i] / (double)step_ns) : 0);
		starved_ns = (int64_t)((1 - view_waited_own(advice->machine.waited)) * (double)(starved_ns < waits[i] ? starved_ns : waits[i]));
		loading->starved_ns = ops_sum(loading->starved_ns, starved_ns);
	}
	ops_free(waits);
	return true;
}

/* With workers, the loop only waits for work that does not fit into the rest of a step; w workers hide w times its
 * length. Up to eight are assumed, since more rarely scale. */
#define WORKERS_MAX 8
/* Passing a batch between processes takes some tenths of a millisecond. If the wait is hardly longer, workers may gain
 * nothing. */
#define HANDOVER_MS 2.0

/* Minimum part of the waits that lines of the program explain, if they are to be named. On a busy machine most of a wait may be one for
 * a processor, which is subtracted from the lines. */
#define LINES_PART 8

/* On a device the wait costs the idle time that it causes. The device computes as long as work is queued. */
static double idle_share(const struct advice *advice, double load_ns)
{
	double idle_ns = (double)advice->idle.ns[ADVICE_IDLE_LOADER];

	if (!(advice->has & ADVICE_NEEDS_DEVICE))
		return 1;
	return idle_ns < load_ns ? idle_ns / load_ns : 1;
}

/* Where the workers of the loader are set. */
static const char *const making[] = {"*: DataLoader.__init__", NULL};
static const char *const opening[] = {"*npyio*: load", NULL};

/* If collating takes most of the time, that is due to what the samples are. */
static void add_collating(struct loading *loading, const struct advice *advice, double all_ns)
{
	uint32_t row = loading->collate_row;

	if (row == OPS_NONE)
		return;
	if (loading->sample != OPS_NONE && mainly_collates(loading, advice, all_ns)) {
		advice_tally_add_at(&loading->lines, advice_own_site(advice, loading->sample), loading->sample, loading->collate_ns);
		return;
	}
	while (advice->events->parent[row] != OPS_NONE && advice->views->parts[row] != VIEW_LOADER)
		row = advice->events->parent[row];
	advice_tally_add_at(&loading->lines, advice->site[loading->collate_row], row, loading->collate_ns);
}

static bool rule_loader_report(const struct advice *advice, struct advice_result *result, struct loading *loading)
{
	/* Starting workers makes the first wait long, only once. */
	int64_t once_ns = loading->in_process ? 0 : loading->longest_ns;
	double starved_ns = loading->in_process ? 0 : (double)loading->starved_ns;
	double all_ns = (double)(result->tally.ns - once_ns);
	double load_ns = all_ns < (double)advice->steps_ns ? all_ns : (double)advice->steps_ns;
	/* These waits may be another matter (rule_contention.c). */
	double contended_ns = loading->in_process || advice_contention_rule(advice) != result->rule ? 0 : (double)advice->contended_ns;
	double rest_ns = (double)advice->steps_ns - load_ns, left_ns, gain_ns;
	const struct advice_tally *lines = loading->in_process && loading->lines.ns > result->tally.ns / LINES_PART
	                                           ? &loading->lines : &result->tally;
	double workers = rest_ns > 0 ? load_ns / rest_ns : WORKERS_MAX;
	char detail[640], less[192] = "", fact[256], advised[256];
	int count;

	workers = workers < 1 ? 1 : workers > WORKERS_MAX ? WORKERS_MAX : workers;
	count = (int)workers + (workers > (int)workers);
	left_ns = load_ns / count - rest_ns;
	gain_ns = (load_ns - starved_ns - (left_ns > 0 && loading->in_process ? left_ns : 0)) * idle_share(advice, load_ns);
	gain_ns += contended_ns;
	describe_loading(loading, advice, all_ns, fact, advised, sizeof(fact));
	if (loading->in_process)
		snprintf(detail, sizeof(detail), "%sBatches are made in the main process (num_workers=0). Pass num_workers=%d and "
		                                 "persistent_workers=True, and make the line named first faster.", advised, count);
	else
		snprintf(detail, sizeof(detail), "%sThe workers are too slow. Use more of them or a larger prefetch_factor, or "
		                                 "make __getitem__ faster.", advised);
	if (loading->in_process && left_ns > 0)
		snprintf(less, sizeof(less), "; %s of that %d worker%s cannot hide behind the %s of the rest of a step",
		         advice_time(advice_step_ms(advice, left_ns)).text, count, count == 1 ? "" : "s", advice_time(advice_step_ms(advice, rest_ns)).text);
	else if (contended_ns > 0)
		snprintf(less, sizeof(less), ", and %s for CPUs that mainly the workers have", advice_time(advice_step_ms(advice, contended_ns)).text);
	else if (starved_ns > 0)
		snprintf(less, sizeof(less), "; for %s of that the workers waited for a CPU",
		         advice_time(advice_step_ms(advice, starved_ns)).text);
	if (loading->mentioned && loading->mentioned->site != OPS_NONE)
		advice_tally_add_at(&loading->lines, loading->mentioned->site, loading->mentioned->row, loading->mentioned->ns);
	result->confidence = advice_step_ms(advice, load_ns) < HANDOVER_MS ? ADVICE_UNSURE : ADVICE_SURE;
	result->detail = detail;
	advice_list_calls(result, reads_archive(loading, advice) ? opening : making);
	return advice_report_at(result, lines, gain_ns,
	                        "Each step waits %s for its batch%s%s%s.%s", advice_spent(advice, load_ns).text,
	                        loading->in_process ? ", which is made in the main process" : "",
	                        less, advice->has & ADVICE_NEEDS_DEVICE ? "; only the time during which the device is idle "
	                                                                  "counts" : "", fact);
}

static bool rule_loader_find(const struct advice *advice, struct advice_result *result)
{
	static const struct advice_named names[] = {{"<built-in function open>", NAME_OPENS}, {"<built-in method open of *", NAME_OPENS},
	                                            {"*__getitem__", NAME_MAKES_SAMPLE}, {"*: rebuild_storage_*", NAME_RECEIVES},
	                                            {"*torch/utils/data/_utils/collate.py(*", NAME_COLLATES}, {"aten::lift_fresh", NAME_MAKES_TENSOR}, {0}};
	struct loading loading = {.collate_row = OPS_NONE, .sample = OPS_NONE, .kind = advice_named_kinds(advice, names),
	                          .collates = ops_alloc_zeroed(advice->events->count + 1, 1), .counts = ops_alloc_zeroed(advice->events->count + 1, 1)};
	bool done = loading.kind && loading.collates && loading.counts && advice_tally_init(&loading.lines, advice);

	if (done) {
		rule_loader_find_kind(&loading, advice);
		add_waits(&loading, advice, result);
		count_loading(&loading, advice);
	}
	done = done && divide_by_samples(&loading, advice) && find_starved(&loading, advice) && advice_find_python_parts(advice, true, &loading.python);
	if (done) {
		add_collating(&loading, advice, (double)result->tally.ns);
		done = rule_loader_report(advice, result, &loading);
	}
	advice_tally_release(&loading.lines);
	ops_free(loading.kind);
	ops_free(loading.collates);
	ops_free(loading.counts);
	return done;
}

static const char *const starting[] = {"*: _MultiProcessingDataLoaderIter.__init__",
                                       "*: _MultiProcessingDataLoaderIter._shutdown_workers", NULL};

/* Waits for batches of workers: the first one of an iterator, whose workers start, and others. */
struct restarts {
	int64_t others_ns;
	uint64_t others;
	int64_t first_ns;  /* what first waits take more than others do */
};

/* Goes through the waits in order. If `claims`, claims what the first ones take more than others. */
static void go_through_waits(struct restarts *restarts, const struct advice *advice, struct advice_result *result, bool claims)
{
	int64_t usual_ns = restarts->others ? restarts->others_ns / (int64_t)restarts->others : 0;
	bool is_first = false;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t ns = advice_host_ns(advice, row);

		is_first |= result->which[advice->events->name[row]] == 1;
		if (advice->views->parts[row] != VIEW_LOADER || is_inner(advice, row))
			continue;
		if (!claims && !is_first && advice_counts(advice, row)) {
			restarts->others_ns = ops_sum(restarts->others_ns, ns);
			restarts->others++;
		} else if (claims && is_first && ns > usual_ns && advice_counts(advice, row)) {
			ns = advice_claim_share(result, row, 1 - (double)usual_ns / (double)ns);
			restarts->first_ns = ops_sum(restarts->first_ns, ns);
			advice_add(result, row, ns);
		}
		is_first = false;
	}
}

/* Finds iterators of loaders with workers that are created within steps, each of which starts its processes. The first
 * one is required. */
static bool find_restarts(const struct advice *advice, struct advice_result *result)
{
	struct restarts restarts = {0};
	uint64_t changes; /* number of times that workers are started or stopped */
	char first[160] = "";

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row))
			advice_add(result, row, advice_claim(result, row));
	changes = result->tally.events;
	if (changes < 2) {
		result->claims.count = 0;
		return true;
	}
	go_through_waits(&restarts, advice, result, false);
	go_through_waits(&restarts, advice, result, true);
	if (restarts.first_ns > 0)
		snprintf(first, sizeof(first), " Of that, the first batches after a start take %s longer than others.",
		         advice_time(advice_step_ms(advice, (double)restarts.first_ns)).text);
	advice_list_calls(result, making);
	return advice_report_costs(result, "Workers are started or stopped %llu times within steps, in %s a step.%s",
	                           (unsigned long long)changes, advice_cost(result).text, first);
}

const struct advice_rule advice_rule_loader = {
	.id = "loader-bound",
	.title = "The program waits for the data loader",
	.condition = "Steps contain 'enumerate(DataLoader)'. If batches are made in the main process, or by workers that were recorded, the line with the most "
		     "time comes first. If a rule about operators or loops, applied to what makes the batches, explains a quarter of its time, the advice begins with it. The evidence says if each sample opens files, if a batch from workers consists of 32 tensors or more, if the default collate "
		     "function makes as many of Python values, or else which function of a library or in C, or which function that searches with "
		     "`in`, takes most of the time.",
	.gain = "the wait, less what workers cannot hide behind the rest of the step",
	.explanation = "While the step waits, the batch is read, decoded and collated. Workers can do this ahead of time.",
	.advice = "Decode once and store the result, index complete batches instead of single samples, and replace Python code "
		  "for each sample by tensor operations. To check: the share of 'enumerate(DataLoader)' in a step.",
	.link = "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
	.needs = ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_WAITS,
	.find = rule_loader_find,
};

const struct advice_rule advice_rule_restarts = {
	.id = "loader-restarts",
	.title = "The workers of the data loader are restarted for each epoch",
	.condition = "Steps create or end iterators of loaders with workers, more than once.",
	.gain = "the time of starting and stopping, and what the first batch of an iterator takes more than others",
	.explanation = "Each new iterator over a loader with workers starts its processes and waits for their first batches.",
	.advice = "Pass persistent_workers=True, and create the loader once. To check: only the first step contains "
		       "_MultiProcessingDataLoaderIter.__init__.",
	.link = "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_SURE,
	.names = starting,
	.find = find_restarts,
};
