/* SPDX-License-Identifier: Apache-2.0
 *
 * write/arrow: the columns of a trace, taken apart, and every allocation failing. pyarrow looks at them in tests/python.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/arrow.h>
#include <opstrobe/read.h>

#include "../read/reading.h"
#include "base/alloc.h"

static const char text[] =
	"[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":10,\"dur\":20,\"args\":{\"x\":1}},"
	"{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":12,\"dur\":3,\"args\":{\"correlation\":7}},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":15,\"dur\":1}]";

static void columns_outlive_trace_and_batch(void **state)
{
	struct ops_trace *trace = read_text(text);
	struct ArrowSchema schema;
	struct ArrowArray array, name;
	struct ops_error error;
	const uint32_t *indexes;

	(void)state;
	assert_int_equal(ops_arrow_schema(&schema, &error), OPS_OK);
	assert_int_equal(ops_arrow_array(trace, &array, &error), OPS_OK);
	ops_trace_unref(trace);
	assert_int_equal(schema.n_children, array.n_children);
	assert_string_equal(schema.children[0]->name, "name");
	name = *array.children[0]; /* moved out, as the interface allows */
	array.children[0]->release = NULL;
	array.release(&array);
	schema.release(&schema);
	assert_null(array.release);
	indexes = name.buffers[1];
	assert_int_equal(name.length, 3);
	assert_int_equal(name.dictionary->length, 2);
	assert_int_equal(indexes[0], indexes[2]);
	assert_int_not_equal(indexes[0], indexes[1]);
	assert_memory_equal(name.dictionary->buffers[2], "ak", 2);
	name.release(&name);
}

static void survives_failures(void **state)
{
	struct ops_trace *trace = read_text(text);
	uint64_t nth = 0;
	bool done = false;

	(void)state;
	while (!done) {
		struct ArrowSchema schema;
		struct ArrowArray array;
		struct ops_error error;

		ops_alloc_fail_at(++nth, false);
		done = ops_arrow_schema(&schema, &error) == OPS_OK;
		if (done)
			schema.release(&schema);
		if (!done)
			continue;
		done = ops_arrow_array(trace, &array, &error) == OPS_OK;
		if (done)
			array.release(&array);
	}
	ops_alloc_fail_at(0, false);
	assert_true(nth > 50);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_outlive_trace_and_batch),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
