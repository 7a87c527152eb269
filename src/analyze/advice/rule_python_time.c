/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the program that compute in Python: time in steps outside of operators, because no tensor operation is
 * used or C functions are called one by one.
 */
#include <math.h>
#include <stdio.h>

#include <opstrobe/internal/trace.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/program.h"
#include "trace/names.h"

/* Minimum self time of a call that computes rather than combines calls, since a hundred lines of Python take less; and
 * the share of the step below which it does not matter. */
#define CALL_NS_MIN 100000
#define SHARE_MIN 0.05

/* Minimum share of that time for reporting waits for Python on other threads. */
#define WAITED_MIN 0.05

/* Between two calls of operators, a function assigns, compares and looks up names, and recording adds overhead. This is
 * not computation. */
#define GLUE_NS 5000

static int64_t at_least_zero(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* A function of the program, or a step. */
static bool is_own(const struct advice *advice, uint32_t row)
{
	return (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && advice_own_site(advice, row) != OPS_NONE) ||
	       advice->views->parts[row] == VIEW_STEP;
}

/* Returns the function of a package that a row calls, perhaps by a wrapper of torch, such as torch.no_grad() around generate(); OPS_NONE:
 * none. */
static uint32_t called_of_package(const struct advice *advice, const struct ops_wrappers *wrappers, uint32_t row)
{
	struct ops_function_text function;

	while (wrappers->into && wrappers->into[row] != OPS_NONE)
		row = wrappers->into[row];
	return advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && !is_own(advice, row) && ops_event_function(advice->trace, row, &function) &&
	                       advice_is_named_library(function.file)
	               ? row
	               : OPS_NONE;
}

/* Returns the time outside of operators of C functions, and of packages other than torch, that the program calls
 * directly. Python code of torch only connects operators. */
static int64_t borrowed_ns(const struct advice *advice, const struct ops_wrappers *wrappers, uint32_t row)
{
	struct ops_function_text function;

	if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || ops_is_module_name(advice_name(advice, row)) ||
	    (advice->zone[row] & ADVICE_IN_IMPORT))
		return 0;
	if (ops_event_function(advice->trace, row, &function) && (ops_path_in_torch(function.file).bytes || ops_file_is_generated(function.file)) &&
	    called_of_package(advice, wrappers, row) == OPS_NONE)
		return 0;
	return at_least_zero(ops_difference(ops_difference(advice_left_ns(advice, row), advice->operator_ns[row]),
	                                    at_least_zero(advice->stalled_ns[row] - advice->claimed_ns[row])));
}

/* The same for calls of C functions and of packages. */
#define CALLED_NS_MIN 50000

/* A call at least this long is reported at its own line. Shorter ones are part of a loop, and count for the calling
 * function. */
static int64_t least_ns(const struct advice *advice, uint32_t row)
{
	return is_own(advice, row) ? CALL_NS_MIN : CALLED_NS_MIN;
}

/* Time by row. */
struct python_time {
	int64_t *own_ns;   /* of the row, with short calls in it */
	int64_t *all_ns;   /* the same, with what does not count as computation */
	int64_t *short_ns; /* of a call that counts for the row around it */
};

/* Gathers the unclaimed self time of functions, with calls that lead to no operator: short functions of the program, C
 * functions and functions of packages. Walks from the last row to the first, since children come after their
 * parents. */
static void rule_python_time_gather(const struct advice *advice, const struct ops_wrappers *wrappers, struct python_time *time)
{
	int64_t *own_ns = time->own_ns;

	for (uint32_t row = (uint32_t)advice->events->count; row-- > 0;) {
		uint32_t parent = advice->events->parent[row];
		bool inside = parent != OPS_NONE && is_own(advice, parent);

		if (!advice_counts(advice, row))
			continue;
		if (is_own(advice, row))
			own_ns[row] = at_least_zero(ops_sum(own_ns[row], advice_self_left_ns(advice, row)));
		else
			own_ns[row] = inside ? borrowed_ns(advice, wrappers, row) : 0;
		time->all_ns[row] = ops_sum(time->all_ns[row], is_own(advice, row) ? at_least_zero(advice_self_left_ns(advice, row)) : own_ns[row]);
		if (!inside)
			continue;
		if (own_ns[row] < least_ns(advice, row)) {
			own_ns[parent] = ops_sum(own_ns[parent], own_ns[row]);
			time->all_ns[parent] = ops_sum(time->all_ns[parent], own_ns[row]);
			time->short_ns[row] = own_ns[row];
			own_ns[row] = 0;
		}
		if (advice->operator_ns[row])
			own_ns[parent] = ops_difference(own_ns[parent], GLUE_NS);
	}
}

/* Releasing large tensors to the allocator is not computation. */
#define FREED_BYTES_MIN (1 << 20)

static bool leave_out_frees(const struct advice *advice, int64_t *own_ns)
{
	struct advice_frees frees = {0};
	bool done = advice_find_frees(advice, FREED_BYTES_MIN, &frees);

	for (size_t i = 0; done && i < frees.count; i++)
		own_ns[frees.items[i].row] = ops_difference(own_ns[frees.items[i].row], frees.items[i].ns);
	OPS_ARRAY_RELEASE(&frees);
	return done;
}

/* Shares of self time before the calls of a function that make its other lines places. */
#define LINES_SHARE 0.5

/* A function that calls nothing is known by its first line only. Adds the line that calls it. */
static void add_line_of_call(const struct advice *advice, struct advice_result *result, uint32_t row, int64_t own_ns)
{
	struct ops_function_text function;
	uint32_t own = advice_own_site(advice, row);

	if (own != OPS_NONE && ops_event_function(advice->trace, row, &function) && advice->sites.items[own].line == function.line && advice->site[row] != OPS_NONE)
		advice_add_at(result, advice->site[row], row, (int64_t)(LINES_SHARE * (double)own_ns));
}

/* Adds the lines of the calls of functions with the self time before them, which is half as certain: it may belong to a line before.
 * Returns false if out of memory. */
static bool add_lines_of_calls(const struct advice *advice, struct advice_result *result, const int64_t *own_ns)
{
	const struct ops_events *events = advice->events;
	int64_t *called_ns = ops_realloc_array(NULL, events->count + 1, sizeof(*called_ns)); /* by row: the end of its last call so far */

	for (uint32_t row = 0; called_ns && row < events->count; row++) {
		uint32_t parent = events->parent[row];
		int64_t gap_ns;

		called_ns[row] = events->start_ns[row];
		if (parent == OPS_NONE || own_ns[parent] <= 0 || !is_own(advice, parent))
			continue;
		gap_ns = ops_difference(events->start_ns[row], called_ns[parent]);
		called_ns[parent] = events->end_ns[row];
		if (gap_ns > 0 && gap_ns <= events->self_ns[parent] && advice->site[row] != OPS_NONE && advice->site[row] != advice_self_site(advice, parent))
			advice_add_at(result, advice->site[row], parent,
			              (int64_t)(LINES_SHARE * (double)own_ns[parent] * (double)gap_ns / (double)events->self_ns[parent]));
	}
	ops_free(called_ns);
	return called_ns != NULL;
}

/* Adds the lines of short functions that count for the one that calls them. Returns false if out of memory. */
static bool add_lines_of_short(const struct advice *advice, struct advice_result *result, const int64_t *own_ns)
{
	uint32_t *counted = ops_realloc_array(NULL, advice->events->count + 1, sizeof(*counted)); /* by row: the row for which it counts */

	for (uint32_t row = 0; counted && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row], at;

		counted[row] = at = own_ns[row] > 0 || !is_own(advice, row) ? row : parent == OPS_NONE ? OPS_NONE : counted[parent];
		if (at != OPS_NONE && at != row && own_ns[at] > 0)
			advice_add_at(result, advice_self_site(advice, row), row, (int64_t)(LINES_SHARE * (double)advice_self_left_ns(advice, row)));
	}
	ops_free(counted);
	return counted != NULL;
}

static bool can_compute(const struct advice *advice, const int64_t *own_ns, uint32_t row)
{
	return own_ns[row] >= least_ns(advice, row) && advice_counts(advice, row) && !(advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_WAITING)) &&
	       !advice->claimed[row];
}

/* Returns, by string, the time of C functions and functions of packages that the program calls; NULL if out of memory. */
static int64_t *sum_called(const struct advice *advice, const int64_t *own_ns)
{
	int64_t *called_ns = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*called_ns));

	for (uint32_t row = 0; called_ns && row < advice->events->count; row++) {
		uint32_t name = advice->events->name[row];

		if (can_compute(advice, own_ns, row) && !is_own(advice, row))
			called_ns[name] = ops_sum(called_ns[name], own_ns[row]);
	}
	return called_ns;
}

/* Adds self time that matters. Time that is too short for a call or for the steps becomes 0, unless the same function of a package or in C
 * is called so often that it matters. */
static bool rule_python_time_add_own(const struct advice *advice, struct advice_result *result, int64_t *own_ns)
{
	int64_t *called_ns = sum_called(advice, own_ns);

	for (uint32_t row = 0; called_ns && row < advice->events->count; row++) {
		bool matters = (double)own_ns[row] >= SHARE_MIN * (double)advice->steps_ns / (double)(advice->step_count * 4) ||
		               (double)called_ns[advice->events->name[row]] >= SHARE_MIN * (double)advice->steps_ns;

		if (!can_compute(advice, own_ns, row) || !matters)
			own_ns[row] = 0;
		else
			advice_add_at(result, advice_self_site(advice, row), row, own_ns[row]);
	}
	ops_free(called_ns);
	return called_ns != NULL;
}

/* Claims the time in the rows in which it is: of calls of C functions and packages that of all rows in them outside of operators. Returns false
 * if out of memory. */
static bool claim_python_time(struct advice_result *result, const struct python_time *time)
{
	const struct advice *advice = result->advice;
	double *part = ops_alloc_zeroed(advice->events->count + 1, sizeof(*part)); /* by row, of its time */

	for (uint32_t row = 0; part && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		bool is_called = parent != OPS_NONE && part[parent] > 0 && !is_own(advice, parent) && !is_own(advice, row);

		if (!advice_counts(advice, row) || advice_is_operator(advice, row))
			continue;
		if (time->short_ns[row] > 0 || is_called)
			part[row] = part[parent];
		else if (time->own_ns[row] > 0 && time->all_ns[row] > 0)
			part[row] = fmin(1, (double)time->own_ns[row] / (double)time->all_ns[row]);
		if (part[row] > 0)
			advice_claim_self(result, row, (int64_t)(part[row] * (double)at_least_zero(advice_self_left_ns(advice, row))));
	}
	ops_free(part);
	return part != NULL;
}

#define PERIODS_MIN 3

/* Returns the time of steps that take at least half as long as the longest, if each comes as many steps after the one before, such as the first
 * one of each epoch; else 0. */
static double find_periodic_ns(const int64_t *by_step, size_t steps)
{
	int64_t most_ns = 0, all_ns = 0;
	size_t count = 0, last = 0, period = 0;

	for (size_t i = 0; i < steps; i++)
		most_ns = by_step[i] > most_ns ? by_step[i] : most_ns;
	for (size_t i = 0; most_ns > 0 && i < steps; i++) {
		if (by_step[i] < most_ns / 2)
			continue;
		if (count > 1 && i - last != period)
			return 0;
		period = i - last;
		last = i;
		count++;
		all_ns = ops_sum(all_ns, by_step[i]);
	}
	return count >= PERIODS_MIN ? (double)all_ns : 0;
}

/* A call of the program in a step, not the function that has the loop, in which iterators of loaders end, too. */
static bool is_call_in_step(const struct advice *advice, uint32_t row)
{
	const struct view_step *step = &advice->views->steps.items[advice->step_of[row]];

	return is_own(advice, row) && advice->views->parts[row] != VIEW_STEP && advice->events->start_ns[row] >= step->start_ns &&
	       advice->events->end_ns[row] <= step->end_ns;
}

/* Computes the time of all steps if each takes the median, or that of calls in periodic steps. */
static bool find_typical(const struct advice *advice, const int64_t *own_ns, double *ret_ns)
{
	size_t steps = advice->views->steps.count;
	int64_t *by_step = ops_alloc_zeroed(steps + 1, sizeof(*by_step)), *calls = ops_alloc_zeroed(steps + 1, sizeof(*calls));
	bool done = by_step && calls;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t step = advice->step_of[row];

		if (own_ns[row] <= 0)
			continue;
		by_step[step] = ops_sum(by_step[step], own_ns[row]);
		calls[step] = ops_sum(calls[step], is_call_in_step(advice, row) ? own_ns[row] : 0);
	}
	if (done)
		*ret_ns = fmax(advice_typical_ns(advice, by_step), find_periodic_ns(calls, steps));
	ops_free(by_step);
	ops_free(calls);
	return done;
}

/* Returns the function of a library that computes in a row: the one that runs the step, such as a trainer, or one that calls operators
 * itself. OPS_NONE if the program has the loop, or calls a function that only computes in Python. */
static uint32_t function_of_library(const struct advice *advice, const struct ops_wrappers *wrappers, uint32_t row)
{
	uint32_t parent = advice->events->parent[row], called, caller;
	bool is_step = advice->views->parts[row] == VIEW_STEP;

	if (!is_step && is_own(advice, row))
		return OPS_NONE;
	called = is_step || !advice->operator_ns[row] ? OPS_NONE : called_of_package(advice, wrappers, row);
	if (called != OPS_NONE)
		return called;
	if (!is_step && (parent == OPS_NONE || advice->views->parts[parent] != VIEW_STEP))
		return OPS_NONE;
	caller = advice->caller[is_step ? row : parent];
	return caller == OPS_NONE || is_own(advice, caller) ? OPS_NONE : caller;
}

/* The part of the time that libraries spend which run the steps or call operators. */
struct library_part {
	int64_t ns;
	int64_t longest_ns;
	struct ops_function_text longest; /* its longest call; without a file: unknown */
};

static struct library_part find_library_part(const struct advice *advice, const struct ops_wrappers *wrappers, const int64_t *own_ns)
{
	struct library_part part = {.ns = 0};

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t at = own_ns[row] > 0 ? function_of_library(advice, wrappers, row) : OPS_NONE;
		struct ops_function_text function;

		if (at == OPS_NONE)
			continue;
		part.ns = ops_sum(part.ns, own_ns[row]);
		if (own_ns[row] <= part.longest_ns || !ops_event_function(advice->trace, at, &function) || !ops_file_package(function.file).size)
			continue;
		part.longest_ns = own_ns[row];
		part.longest = function;
	}
	return part;
}

/* Reports that most of the time belongs to a library. */
static bool report_library(const struct advice *advice, struct advice_result *result, const struct library_part *part, double all_ns)
{
	struct ops_string package = ops_file_package(part->longest.file), function = part->longest.name;
	char name[64] = "a library", detail[320], longest[128] = "";

	if (package.size && package.size < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)package.size, package.bytes);
		if (function.size && function.size < sizeof(longest) / 2)
			snprintf(longest, sizeof(longest), " The longest call is of %.*s.", (int)function.size, function.bytes);
	}
	snprintf(detail, sizeof(detail), "This is code of %s, not of the program, which calls it at the line named first. Give it more to do in "
	                                 "each call, such as larger batches, and turn off callbacks, logging and progress bars that are not "
	                                 "needed.", name);
	result->detail = detail;
	result->confidence = ADVICE_UNSURE;
	result->bound = ADVICE_AT_MOST; /* the program can only change how often it calls the library */
	return advice_report_gain(result, all_ns, "Code of %s computes in Python, outside of operators, for %s a step.%s", name,
	                          advice_spent(advice, (double)part->ns).text, longest);
}

static bool rule_python_time_report(const struct advice *advice, const struct ops_wrappers *wrappers, struct advice_result *result, const struct python_time *time)
{
	const int64_t *own_ns = time->own_ns;
	/* Waits for a processor are subtracted from rows by estimate, and from steps. */
	const int64_t all_ns = result->tally.ns < advice->steps_ns ? result->tally.ns : advice->steps_ns;
	struct library_part library = find_library_part(advice, wrappers, own_ns);
	int64_t shared_ns = 0; /* 0 if thread states are sampled: their waits are excluded above */
	struct advice_python_parts parts;
	const struct advice_python_part *part;
	double waited_ns, typical_ns;
	char waits[192] = "", fact[256], advised[256];

	/* The median or a period decides, since the machine may be busy in one of many steps. */
	if (!find_typical(advice, own_ns, &typical_ns))
		return false;
	/* Of uneven steps, the median may be more than the mean. */
	if (fmin(typical_ns, (double)advice->steps_ns) < SHARE_MIN * (double)ops_sum(advice->steps_ns, advice->excluded_ns[ADVICE_EXCLUDED_IMPORTS]))
		return true;
	if (!advice->sampled && !advice_find_shared_ns(advice, &shared_ns))
		return false;
	if (!claim_python_time(result, time))
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (own_ns[row] > 0 && is_own(advice, row))
			add_line_of_call(advice, result, row, own_ns[row]);
	}
	if (!add_lines_of_calls(advice, result, own_ns) || !add_lines_of_short(advice, result, own_ns))
		return false;
	library.ns = library.ns < all_ns ? library.ns : all_ns;
	if (library.ns > all_ns / 2)
		return report_library(advice, result, &library, (double)all_ns);
	/* Two threads that take turns each wait for half of the time. */
	waited_ns = (double)(shared_ns < all_ns ? shared_ns : all_ns) / 2;
	if (waited_ns > WAITED_MIN * (double)all_ns)
		snprintf(waits, sizeof(waits), " For about %s of that the thread waits for the global interpreter lock "
		                               "(GIL), since another thread also runs Python.", advice_time(advice_step_ms(advice, waited_ns)).text);
	if (!advice_find_python_parts(advice, false, &parts))
		return false;
	part = advice_describe_python(advice, &parts, "that", (double)all_ns, fact, advised, sizeof(fact));
	if (part && part->site != OPS_NONE)
		advice_add_at(result, part->site, part->row, part->ns / 2);
	result->detail = *advised ? advised : NULL;
	result->general = !*advised;
	return advice_report_gain(result, (double)all_ns, "Functions of the program compute in Python, outside of operators, for %s a step.%s%s",
	                          advice_spent(advice, (double)all_ns).text, fact, waits);
}

static bool rule_python_time_find(const struct advice *advice, struct advice_result *result)
{
	size_t count = advice->events->count + 1;
	struct python_time time = {ops_alloc_zeroed(count, sizeof(int64_t)), ops_alloc_zeroed(count, sizeof(int64_t)),
	                           ops_alloc_zeroed(count, sizeof(int64_t))};
	const struct ops_wrappers *wrappers = ops_wrappers_of(advice->trace);
	bool done = time.own_ns && time.all_ns && time.short_ns && wrappers;

	if (done) {
		rule_python_time_gather(advice, wrappers, &time);
		done = leave_out_frees(advice, time.own_ns);
	}
	done = done && rule_python_time_add_own(advice, result, time.own_ns) && rule_python_time_report(advice, wrappers, result, &time);
	ops_free(time.own_ns);
	ops_free(time.all_ns);
	ops_free(time.short_ns);
	return done;
}

const struct advice_rule advice_rule_python_time = {
	.id = "python-in-step",
	.title = "Python code computes outside of operators",
	.condition = "Functions of the program take more than 0.1 ms of self time in a call, and 5 % of the median step or, at equal distances in three steps or more, of all steps, "
		     "outside of operators; or calls of a function in C or of a package, of 50 µs or more each, take as much together. Shorter functions, and those of C and of packages other than torch, count for "
		     "their caller; a library that runs the steps, such as a trainer, or that calls operators itself, is named, and the gain is an upper bound. Imports, waits for locks, queues and threads, and code generated by Inductor, do not count. If "
		     "another thread runs Python at the same time, the evidence says how long one of the two waits for the "
		     "global interpreter lock (GIL). It also names the function of a library or in C, or the function that searches with `in`, that takes most of the "
		     "time.",
	.gain = "that time",
	.explanation = "Python takes some fifty nanoseconds for each operation on a number, a tensor operation less than one.",
	.advice = "Replace it by tensor operations or NumPy, compute it once before the loop, or move it to the workers of the "
		  "loader. To check: the self time of the function in a step.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_PYTHON,
	.general = true,
	.confidence = ADVICE_LIKELY,
	.find = rule_python_time_find,
};
