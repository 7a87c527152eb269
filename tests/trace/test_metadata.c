/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace's metadata, references and small accessors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "trace/builder.h"

static struct ops_trace *empty_trace(void)
{
	struct ops_trace *trace;

	assert_int_equal(ops_builder_finish(ops_builder_new(), &trace, NULL), OPS_OK);
	return trace;
}

static enum ops_code set(struct ops_trace *trace, const char *key, const char *json)
{
	return ops_trace_set_metadata(trace, key, strlen(key), json, strlen(json), NULL);
}

static void assert_entry(const struct ops_trace *trace, size_t i, const char *expected_key, const char *expected_json)
{
	struct ops_string key;
	struct ops_string json;

	ops_trace_metadata(trace, i, &key, &json);
	assert_string_equal(key.bytes, expected_key);
	assert_int_equal(key.size, strlen(expected_key));
	assert_string_equal(json.bytes, expected_json);
	assert_int_equal(json.size, strlen(expected_json));
	assert_true(ops_trace_find_metadata(trace, expected_key, &json));
	assert_string_equal(json.bytes, expected_json);
	assert_int_equal(json.size, strlen(expected_json));
}

static void test_set_and_replace(void **state)
{
	struct ops_trace *trace = empty_trace();

	(void)state;
	assert_int_equal(ops_trace_metadata_count(trace), 0);
	assert_int_equal(set(trace, "b", "1"), OPS_OK);
	assert_int_equal(set(trace, "a", "{\"x\": [true]}"), OPS_OK);
	assert_int_equal(set(trace, "", "\"\""), OPS_OK);
	assert_int_equal(set(trace, "b", "\"longer\""), OPS_OK);
	assert_int_equal(ops_trace_metadata_count(trace), 3);
	assert_entry(trace, 0, "b", "\"longer\"");
	assert_entry(trace, 1, "a", "{\"x\": [true]}");
	assert_entry(trace, 2, "", "\"\"");
	assert_false(ops_trace_find_metadata(trace, "ab", &(struct ops_string){0}));
	ops_trace_unref(trace);
}

static void test_refuses_what_is_not_json(void **state)
{
	struct ops_trace *trace = empty_trace();
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(set(trace, "a", "1"), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "a", 1, "{1}", 3, &error), OPS_INVALID);
	assert_non_null(strstr(error.text, "metadata 'a'"));
	assert_entry(trace, 0, "a", "1");
	ops_trace_unref(trace);
}

static void test_out_of_memory(void **state)
{
	struct ops_trace *trace = empty_trace();
	bool made = false;

	(void)state;
	for (uint64_t nth = 1; !made; nth++) {
		ops_alloc_fail_at(nth, false);
		made = set(trace, "key", "[1]") == OPS_OK;
		assert_true(made || ops_trace_metadata_count(trace) == 0);
	}
	for (uint64_t nth = 1;; nth++) {
		ops_alloc_fail_at(nth, false);
		if (set(trace, "key", "[2]") == OPS_OK)
			break;
		assert_entry(trace, 0, "key", "[1]");
	}
	ops_alloc_fail_at(0, false);
	assert_entry(trace, 0, "key", "[2]");
	ops_trace_unref(trace);
}

static void test_references(void **state)
{
	struct ops_trace *trace = empty_trace();

	(void)state;
	assert_ptr_equal(ops_trace_ref(trace), trace);
	ops_trace_unref(trace);
	assert_int_equal(ops_trace_events(trace)->count, 0); /* still there */
	ops_trace_unref(trace);
	ops_trace_unref(NULL);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_string_equal(ops_event_kind_category(OPS_EVENT_CPU_OP), "cpu_op");
	assert_string_equal(ops_event_kind_category(OPS_EVENT_USER_ANNOTATION), "user_annotation");
	assert_string_equal(ops_event_kind_category(OPS_EVENT_PYTHON_FUNCTION), "python_function");
	assert_string_equal(ops_event_kind_category(OPS_EVENT_CPU_INSTANT), "cpu_instant_event");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_and_replace),
		cmocka_unit_test(test_refuses_what_is_not_json),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
