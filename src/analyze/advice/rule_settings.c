/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of the process that make all of it slower, which the recorder notes ("settings" in the metadata "recording"): tools that
 * were left on after a search for a leak or a bug.
 */
#include "analyze/advice/advice.h"
#include "base/json_walk.h"
#include "base/text.h"

/* Parts of the time of Python code and of operators that a setting takes. Measured with code that creates lists and objects, with
 * calls of small functions, and with elementwise operators, sums and softmax on 131,072 floats (Python 3.11, torch 2.13):
 * tracemalloc takes 7 to 13 times as long, a trace function 2.3 to 8, a debug allocator 1.2 to 1.7, and kernels without vector
 * instructions 1 to 8. */
static const struct setting {
	const char *id;        /* in the metadata */
	const char *state;     /* a sentence */
	const char *call;      /* the call that sets it; NULL: it is set outside of the program */
	double of_python, of_operators;
	const char *fix;
} settings[] = {
	{"tracemalloc", "tracemalloc is on, and notes the stack of each allocation.", "<built-in function start>", 0.8, 0,
	 "Call tracemalloc.start() only while you search for a leak, and tracemalloc.stop() afterwards; remove -X tracemalloc and PYTHONTRACEMALLOC."},
	{"trace_function", "sys.settrace() has a function, which is called for each line or function: that of a debugger, or of coverage.", "<built-in function settrace>", 0.5, 0,
	 "Run without the debugger, or without measuring coverage, and call sys.settrace(None)."},
	{"debug_allocator", "Python uses its debug allocator, which fills and checks each block.", NULL, 0.2, 0,
	 "Leave out PYTHONMALLOC=debug, PYTHONDEVMODE and -X dev."},
	{"no_vector_instructions", "torch uses kernels without vector instructions, for example because of ATEN_CPU_CAPABILITY=default.", NULL, 0, 0.5,
	 "Unset ATEN_CPU_CAPABILITY."},
};

static bool is_outermost_operator(const struct advice *advice, uint32_t row)
{
	return advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) && !advice->device_ns[row];
}

/* Adds the cost of a setting to the rows of the steady steps. Finds the call that sets it, if that is in the trace. */
static uint32_t add_setting(struct advice_result *result, const struct setting *setting)
{
	const struct advice *advice = result->advice;
	uint32_t call = OPS_NONE;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t ns;

		if (setting->call && call == OPS_NONE && ops_string_is(advice_name(advice, row), setting->call))
			call = row;
		if (!advice_counts(advice, row) || (advice->zone[row] & ADVICE_WAITING))
			continue;
		if (setting->of_python > 0 && advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION) {
			ns = (int64_t)(setting->of_python * (double)advice_self_left_ns(advice, row));
			if (ns <= 0)
				continue;
			advice_claim_self(result, row, ns);
			advice_add(result, row, ns);
		} else if (setting->of_operators > 0 && is_outermost_operator(advice, row) && !advice_is_claimed(result, row)) {
			advice_add_share(result, row, setting->of_operators);
		}
	}
	return call;
}

/* Reports the setting at its call if that is in the trace, else where it costs most. */
static bool report_setting(struct advice_result *result, const struct setting *setting, uint32_t call)
{
	const char *what = setting->of_python > 0 ? "Python code" : "operators";
	struct advice_tally at_call = {0};
	bool done = advice_tally_init(&at_call, result->advice);

	result->detail = setting->fix;
	if (done && call != OPS_NONE)
		advice_tally_add(&at_call, call, result->tally.ns);
	done = done && advice_report_at(result, call != OPS_NONE ? &at_call : &result->tally, (double)result->tally.ns,
	                                "%s Without that, the %s of the steps may take up to %s less.", setting->state, what,
	                                advice_cost(result).text);
	advice_tally_release(&at_call);
	return done;
}

static bool rule_settings_find(const struct advice *advice, struct advice_result *result)
{
	struct ops_string recording, list;

	if (!ops_trace_find_metadata(advice->trace, "recording", &recording) || !ops_json_find_member(recording, "settings", &list))
		return true;
	/* More than one at a time is rare. The first of the table has the largest effect. */
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (ops_json_lists(list, settings[i].id))
			return report_setting(result, &settings[i], add_setting(result, &settings[i]));
	return true;
}

const struct advice_rule advice_rule_settings = {
	.id = "slow-settings",
	.title = "A setting of the process makes all code slower",
	.condition = "The recording notes that tracemalloc, a trace function, Python's debug allocator, or kernels without vector instructions were in use, and "
		     "code that they affect takes time in the steps.",
	.gain = "80 % of the time of Python functions for tracemalloc, 50 % for a trace function, 20 % for the debug allocator; 50 % of the time of operators "
		"without vector instructions",
	.explanation = "Tools for debugging do work in each call, each line or each allocation. They often stay on after the search.",
	.advice = "Use such tools in separate runs. To check: `opstrobe info` lists no settings.",
	.link = "https://docs.python.org/3/library/tracemalloc.html",
	.needs = ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_MOST,
	.find = rule_settings_find,
};
