/* SPDX-License-Identifier: Apache-2.0
 *
 * write/arrow: the columns of a trace, decoded, and every allocation failing. tests/python reads them with pyarrow.
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

/* A step with an operator that launches a kernel, which runs after the step; and a later step without any. */
static const char launched[] =
	"[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":5,\"tid\":1,\"ts\":0,\"dur\":50},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":5,\"tid\":1,\"ts\":10,\"dur\":20,"
	"\"args\":{\"External id\":4,\"Input Dims\":[[2,3],[3,4]]}},"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":5,\"tid\":1,\"ts\":12,\"dur\":3,"
	"\"args\":{\"correlation\":7,\"External id\":4}},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"pid\":5,\"tid\":1,\"ts\":50,\"dur\":50},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":9,\"ts\":60,\"dur\":30,"
	"\"args\":{\"correlation\":7,\"External id\":4,\"device\":0,\"stream\":9}},"
	"{\"ph\":\"C\",\"name\":\"power\",\"pid\":5,\"ts\":30,\"args\":{\"watt\":2.5}},"
	"{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":5,\"tid\":1,\"ts\":11,\"args\":{"
	"\"Total Allocated\":64,\"Total Reserved\":128,\"Bytes\":64,\"Addr\":4096,\"Device Id\":-1,\"Device Type\":0}},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train.py(3): main\",\"pid\":5,\"tid\":1,\"ts\":8,\"dur\":30,"
	"\"args\":{\"Python id\":1}},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"nn.Module: Linear_0\",\"pid\":5,\"tid\":1,\"ts\":9,\"dur\":25,"
	"\"args\":{\"Python id\":2,\"Python parent id\":1,\"Python module id\":0}}]";

/* A column of a table, for a while. */
struct column {
	struct ArrowSchema schema;
	struct ArrowArray array;
};

static void get_column(struct column *column, const struct ops_trace *trace, const char *table, const char *name)
{
	struct ops_error error;

	assert_int_equal(ops_arrow_table(trace, table, &name, 1, &column->schema, &column->array, &error), OPS_OK);
	assert_int_equal(column->array.n_children, 1);
	assert_string_equal(column->schema.children[0]->name, name);
}

static void release_column(struct column *column)
{
	column->array.release(&column->array);
	column->schema.release(&column->schema);
}

static bool is_valid(const struct ArrowArray *array, int64_t row)
{
	const uint8_t *valid = array->buffers[0];

	return !valid || valid[row / 8] >> row % 8 & 1;
}

static void expect_integer(const struct ops_trace *trace, const char *table, const char *name, int64_t row, int64_t value)
{
	struct column column;

	get_column(&column, trace, table, name);
	assert_true(row < column.array.children[0]->length);
	assert_true(is_valid(column.array.children[0], row));
	assert_int_equal(((const int64_t *)column.array.children[0]->buffers[1])[row], value);
	release_column(&column);
}

static void expect_text(const struct ops_trace *trace, const char *table, const char *name, int64_t row, const char *text)
{
	const struct ArrowArray *cells;
	struct column column;
	const int64_t *offsets;
	const char *bytes;

	get_column(&column, trace, table, name);
	cells = column.array.children[0];
	assert_true(row < cells->length);
	if (cells->dictionary) {
		row = ((const uint32_t *)cells->buffers[1])[row];
		cells = cells->dictionary;
	}
	offsets = cells->buffers[1];
	bytes = cells->buffers[2];
	assert_int_equal(offsets[row + 1] - offsets[row], strlen(text));
	assert_memory_equal(bytes + offsets[row], text, strlen(text));
	release_column(&column);
}

static void tables_have_what_is_derived(void **state)
{
	struct ops_trace *trace = read_text(launched);
	struct column column;

	(void)state;
	expect_integer(trace, "kernels", "dur_ns", 0, 30000);
	expect_integer(trace, "kernels", "step", 0, 3);
	expect_integer(trace, "kernels", "delay_ns", 0, 48000);
	expect_integer(trace, "kernels", "stream", 0, 9);
	expect_text(trace, "kernels", "work", 0, "compute");
	expect_text(trace, "kernels", "operator", 0, "aten::mm");
	expect_text(trace, "kernels", "module", 0, "Linear_0");
	expect_text(trace, "kernels", "file", 0, "train.py");
	expect_integer(trace, "steps", "step", 1, 4);
	expect_integer(trace, "steps", "dur_ns", 0, 50000);
	expect_text(trace, "steps", "steps_from", 0, "marks");
	expect_integer(trace, "memory", "bytes", 0, 64);
	expect_integer(trace, "memory", "address", 0, 4096);
	expect_text(trace, "counters", "name", 0, "power");
	expect_text(trace, "modules", "module", 0, "Linear_0");
	expect_integer(trace, "modules", "host_ns", 0, 25000);
	get_column(&column, trace, "events", "input_shapes");
	assert_int_equal(column.array.children[0]->null_count, column.array.length - 1);
	release_column(&column);
	get_column(&column, trace, "counters", "value");
	assert_true(((const double *)column.array.children[0]->buffers[1])[0] == 2.5);
	release_column(&column);
	ops_trace_unref(trace);
}

static void refuses_unknown_names(void **state)
{
	const char *none = "none";
	struct ArrowSchema schema;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_arrow_table(NULL, "none", NULL, 0, &schema, NULL, &error), OPS_INVALID);
	assert_string_equal(error.text, "unknown table 'none'");
	assert_int_equal(ops_arrow_table(NULL, "events", &none, 1, &schema, NULL, &error), OPS_INVALID);
	assert_string_equal(error.text, "table 'events' has no column 'none'");
	assert_int_equal(ops_arrow_table(NULL, "events", NULL, 0, &schema, NULL, &error), OPS_OK);
	assert_true(schema.n_children > 15);
	schema.release(&schema);
}

static void tables_survive_failures(void **state)
{
	static const char *const tables[] = {"events", "kernels", "steps", "memory", "counters", "flows", "modules", "lines", "tracks",
	                                     "collectives", "compile_events", "findings", "processes", "ranks",
	                                     "metadata"};

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		uint64_t nth = 0;
		bool done = false;

		while (!done) {
			struct ops_trace *trace = read_text(launched); /* what is derived of it is kept with it */
			struct ArrowSchema schema;
			struct ArrowArray array;
			struct ops_error error;

			ops_alloc_fail_at(++nth, false);
			done = ops_arrow_table(trace, tables[i], NULL, 0, &schema, &array, &error) == OPS_OK;
			ops_alloc_fail_at(0, false);
			if (done) {
				array.release(&array);
				schema.release(&schema);
			}
			ops_trace_unref(trace);
		}
		assert_true(nth > 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_outlive_trace_and_batch),
		cmocka_unit_test(survives_failures),
		cmocka_unit_test(tables_have_what_is_derived), cmocka_unit_test(refuses_unknown_names),
		cmocka_unit_test(tables_survive_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
