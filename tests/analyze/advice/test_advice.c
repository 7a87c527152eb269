/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice: a trace with known causes at known lines results in the findings, and every allocation may fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/read.h>

#include "../../base/failing.h"
#include "asking.h"
#include "base/buffer.h"

static void add(struct ops_buffer *text, const char *category, const char *name, double us, double duration_us,
                const char *args)
{
	ops_buffer_printf(text,
	                  "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, "
	                  "\"args\": {%s}}", text->size > 20 ? ",\n" : "", category, name, us, duration_us, args);
}

/* Four steps of 1 ms: a concatenation that grows five times (500 us), a collection of garbage (200 us). */
static struct ops_trace *make_trace(void)
{
	struct ops_buffer text = {0};
	struct ops_trace *trace = NULL;
	struct ops_error error;

	ops_buffer_append_text(&text, "{\"traceEvents\": [");
	add(&text, "python_function", "train.py(3): train", 0, 4000, "\"Python id\": 1");
	for (int step = 0; step < 4; step++) {
		char name[64], args[256];
		double at = step * 1000;

		snprintf(name, sizeof(name), "ProfilerStep#%d", step);
		add(&text, "user_annotation", name, at, 999, "");
		for (int i = 0; i < 5; i++) {
			snprintf(args, sizeof(args), "\"Input Dims\": [[[%d, 100], [10, 100]], []], \"Input type\": [\"TensorList\", "
				 "\"Scalar\"]", 10 * (i + 1));
			add(&text, "cpu_op", "aten::cat", at + 10 + i * 100, 100, args);
		}
		add(&text, "python_function", "<built-in function collect>", at + 600, 200, "\"Python id\": 2, \"Python parent id\": 1");
	}
	ops_buffer_append_text(&text, "]}");
	assert_int_equal(ops_trace_read_memory(text.bytes, text.size, NULL, &trace, &error), OPS_OK);
	ops_buffer_release(&text);
	return trace;
}

static void finds(void **state)
{
	struct ops_trace *trace = make_trace();
	struct ops_rank worker = {.trace = trace, .name = "w"};
	const char *cat, *gc;
	char *text;
	uint32_t row;
	size_t size;

	(void)state;
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	cat = strstr(text, "quadratic-concatenation");
	gc = strstr(text, "gc-pauses");
	assert_non_null(cat);
	assert_non_null(gc);
	/* It gains more, so it comes first. 500 us, of which 60 of 200 rows are needed. */
	assert_true(cat < gc);
	assert_non_null(strstr(text, "train.py"));
	assert_int_equal(strlen(text), size);
	/* The place in time: the costliest event, by its row. */
	cat = strstr(cat, "\"trace\":0,\"row\":");
	assert_non_null(cat);
	row = (uint32_t)strtoul(cat + strlen("\"trace\":0,\"row\":"), NULL, 10);
	assert_true(row < ops_trace_events(trace)->count);
	assert_string_equal(ops_trace_string(trace, ops_trace_events(trace)->name[row]).bytes, "aten::cat");
	ops_free(text);
	for (int format = OPS_FORMAT_TEXT; format <= OPS_FORMAT_MARKDOWN; format++) {
		assert_int_equal(ops_advise(&worker, 1, (enum ops_format)format, &text, &size, NULL), OPS_OK);
		assert_non_null(strstr(text, "Garbage collection interrupts the program"));
		ops_free(text);
	}
	ops_trace_unref(trace);
}

/* The same of two workers is said once. Only the sentence about percentages differs. */
static void joins_workers(void **state)
{
	struct ops_trace *trace = make_trace();
	struct ops_rank workers[] = {{.trace = trace, .name = "a"}, {.trace = trace, .name = "b"}};
	char *one, *two;
	size_t size;

	(void)state;
	assert_int_equal(ops_advise(workers, 1, OPS_FORMAT_JSON, &one, &size, NULL), OPS_OK);
	assert_int_equal(ops_advise(workers, 2, OPS_FORMAT_JSON, &two, &size, NULL), OPS_OK);
	assert_memory_equal(one, two, (size_t)(strstr(one, ",\"text\":") - one));
	assert_string_equal(strstr(one, "\"checked\":"), strstr(two, "\"checked\":"));
	ops_free(one);
	ops_free(two);
	ops_trace_unref(trace);
}

static double member(const char *finding, const char *name)
{
	const char *at = strstr(finding, name);

	assert_non_null(at);
	return strtod(at + strlen(name) + strlen("\":"), NULL);
}

/* The interval contains the gain and is within a step. */
static void gives_intervals(void **state)
{
	struct ops_trace *trace = make_trace();
	struct ops_rank worker = {.trace = trace, .name = "w"};
	double gain, lower, upper;
	const char *finding;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	finding = strstr(text, "gc-pauses");
	gain = member(finding, "predicted_gain_percent");
	lower = member(finding, "predicted_gain_lower_percent");
	upper = member(finding, "predicted_gain_upper_percent");
	assert_float_equal(gain, 20, 0.1);
	/* A third and six times the ratio of saved to remaining time, 1 to 4. */
	assert_float_equal(lower, 100 * (1.0 / 12) / (1 + 1.0 / 12), 0.1);
	assert_float_equal(upper, 100 * 1.5 / 2.5, 0.1);
	ops_free(text);
	ops_trace_unref(trace);
}

static void ask(void *trace)
{
	advise_as(trace, OPS_FORMAT_JSON);
}

static void survives_failures(void **state)
{
	struct ops_trace *trace = make_trace();

	(void)state;
	assert_true(fail_each(ask, trace) > 30);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds), cmocka_unit_test(joins_workers), cmocka_unit_test(gives_intervals),
	                                   cmocka_unit_test(survives_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
