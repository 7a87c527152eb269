/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice: the order of the table of rules does not matter, and time claimed by several rules counts once.
 */
#include "device_trace.h"

#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define STEPS 8

/* Saving of 400 us with a collection of 100 us in it; logging of 300 us that waits for a lock for 200 us; and a tensor that is
 * printed for 200 us, 50 us of it to read its values. */
static struct ops_trace *make_trace(void)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 2000 * step;

		device_trace_step(&trace, step, us, 1990);
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 1, 500);
		device_trace_host(&trace, "python_function", "train.py(3): step", us + 510, 1400);
		device_trace_host(&trace, "python_function", "/x/site-packages/torch/serialization.py(9): save", us + 520, 400);
		device_trace_host(&trace, "python_function", "<built-in function collect>", us + 600, 100);
		device_trace_host(&trace, "python_function", "/usr/lib/python3.11/logging/__init__.py(9): Logger._log", us + 1000, 300);
		device_trace_host(&trace, "python_function", "<built-in method acquire of _thread.lock object at 0x7>", us + 1050, 200);
		device_trace_host(&trace, "python_function", "<built-in function print>", us + 1400, 200);
		device_trace_host(&trace, "python_function", "<built-in method item of Tensor>", us + 1420, 50);
	}
	return device_trace_read(&trace);
}

/* Returns the findings with the rules in the order of the table, rotated or reversed. */
static char *advise(const struct ops_trace *trace, size_t turn, bool backwards)
{
	const struct advice_rule **rules = ops_alloc_zeroed(advice_rule_count, sizeof(*rules));
	struct advice_report report = {0};
	struct ops_buffer out = {0};
	struct advice advice;

	assert_non_null(rules);
	for (size_t i = 0; i < advice_rule_count; i++) {
		size_t at = (i + turn) % advice_rule_count;

		rules[i] = advice_rules[backwards ? advice_rule_count - 1 - at : at];
	}
	assert_true(advice_init(&advice, trace, &report, false));
	assert_true(advice_run_rules(&advice, rules, advice_rule_count));
	advice_release(&advice);
	advice_report_sort(&report);
	memset(report.checked, 0, sizeof(report.checked)); /* by place in the table */
	advice_write_json(&report, &out);
	advice_report_release(&report);
	ops_free(rules);
	ops_buffer_append(&out, "", 1);
	assert_false(out.failed);
	return out.bytes;
}

static void does_not_depend_on_the_order_of_the_table(void **state)
{
	struct ops_trace *trace = make_trace();
	char *usual = advise(trace, 0, false);

	(void)state;
	for (size_t turn = 0; turn < advice_rule_count; turn += 5)
		for (int backwards = 0; backwards < 2; backwards++) {
			char *other = advise(trace, turn, backwards);

			assert_string_equal(other, usual);
			ops_free(other);
		}
	ops_free(usual);
	ops_trace_unref(trace);
}

static void counts_claimed_time_once(void **state)
{
	struct ops_trace *trace = make_trace();
	char *json = advise(trace, 0, false);

	(void)state;
	/* The saving has the collection in it, and the logging the lock. */
	assert_float_equal(finding_ms(json, "checkpoint-in-step"), 0.4, 0.001);
	assert_true(finding_ms(json, "gc-pauses") < 0);
	assert_float_equal(finding_ms(json, "synchronising-calls"), 0.05, 0.001);
	assert_float_equal(finding_ms(json, "logging-in-step"), 0.3 + 0.15, 0.001);
	assert_true(finding_ms(json, "lock-in-step") < 0);
	ops_free(json);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_depend_on_the_order_of_the_table),
		cmocka_unit_test(counts_claimed_time_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
