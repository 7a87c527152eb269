/* SPDX-License-Identifier: Apache-2.0
 *
 * write/execution_trace: any node becomes valid JSON; malformed values are truncated; lack of memory is reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <opstrobe/internal/execution_trace.h>

#include "base/alloc.h"
#include "base/json.h"
#include "folder.h"

struct values {
	_Alignas(8) char bytes[1024];
	size_t size;
};

static void put(struct values *values, const void *bytes, size_t size)
{
	memcpy(values->bytes + values->size, bytes, size);
	values->size = (values->size + size + 7) & ~(size_t)7;
}

static void put_head(struct values *values, uint8_t tag, uint32_t n, uint8_t dtype)
{
	put(values, &(struct ops_node_head){.tag = tag, .dtype = dtype, .n = n}, sizeof(struct ops_node_head));
}

/* One of each kind, lists within lists too. */
static struct values all_values(void)
{
	struct values values = {.size = 0};
	const double number = 0.5;
	const int64_t integer = -7, sizes[] = {2, 3}, strides[] = {3, 1};
	const struct ops_node_tensor tensor = {5, 6, 1, 6, 4, "cpu"};

	put_head(&values, OPS_NODE_NONE, 0, 0);
	put_head(&values, OPS_NODE_INT, 0, 0);
	put(&values, &integer, sizeof(integer));
	put_head(&values, OPS_NODE_DOUBLE, 0, 0);
	put(&values, &number, sizeof(number));
	put_head(&values, OPS_NODE_BOOL, 1, 0);
	put_head(&values, OPS_NODE_STRING, 4, 0);
	put(&values, "\"\n\xff!", 4);
	put_head(&values, OPS_NODE_DEVICE, 3, 0);
	put(&values, "cpu", 3);
	put_head(&values, OPS_NODE_OTHER, 9, 0);
	put(&values, "Generator", 9);
	put_head(&values, OPS_NODE_LIST, 2, 0);
	put_head(&values, OPS_NODE_TUPLE, 1, 0);
	put_head(&values, OPS_NODE_BOOL, 0, 0);
	put_head(&values, OPS_NODE_TENSOR, 2, 6);
	put(&values, &tensor, sizeof(tensor));
	put(&values, sizes, sizeof(sizes));
	put(&values, strides, sizeof(strides));
	return values;
}

/* The file that the trace is written to, as text in `text`. */
static void write_and_read(struct ops_execution_trace *trace, char *text, size_t capacity)
{
	FILE *file;
	size_t size;

	assert_int_equal(ops_execution_trace_write(trace, "trace.json", NULL), OPS_OK);
	file = fopen("trace.json", "r");
	size = fread(text, 1, capacity - 1, file);
	fclose(file);
	text[size] = '\0';
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
}

static struct ops_node node_with(const struct values *values)
{
	return (struct ops_node){
		.id = 2,
		.parent = 1,
		.sequence_nr = -1,
		.name = {"a\"b", 3},
		.inputs = {values->bytes, values->size},
	};
}

static void every_kind_of_value(void **state)
{
	static char text[1 << 16];
	struct ops_execution_trace *trace = ops_execution_trace_new();
	struct values values = all_values();
	struct ops_node node = node_with(&values);

	(void)state;
	ops_execution_trace_add(trace, &node);
	write_and_read(trace, text, sizeof(text));
	assert_non_null(strstr(text, "\"name\": \"a\\\"b\""));
	assert_non_null(strstr(text, "[\"<None>\",-7,0.5,true,\"\\\"\\n\\\\xff!\",\"cpu\",\"<Generator>\",[[false],[5,6,1,6,4,\"cpu\"]]]"));
	assert_non_null(strstr(text, "\"shapes\": [[],[],[],[],[],[],[],[[[]],[2,3]]]"));
	assert_non_null(strstr(text, "\"GenericList[Tuple[Bool],Tensor(float)]\""));
	ops_execution_trace_free(trace);
}

/* The first `size` bytes of the values, for every size: what is whole stays. */
static void values_cut_anywhere(void **state)
{
	static char text[1 << 16];
	struct values values = all_values();

	(void)state;
	for (size_t size = 0; size <= values.size; size++) {
		struct ops_execution_trace *trace = ops_execution_trace_new();
		struct ops_node node = node_with(&values);

		node.inputs.size = size;
		ops_execution_trace_add(trace, &node);
		write_and_read(trace, text, sizeof(text));
		ops_execution_trace_free(trace);
	}
}

static void lists_without_end(void **state)
{
	static char text[1 << 16];
	struct ops_execution_trace *trace = ops_execution_trace_new();
	struct values values = {.size = 0};
	struct ops_node node;

	(void)state;
	for (int i = 0; i < 100; i++)
		put_head(&values, OPS_NODE_LIST, UINT32_MAX, 0);
	node = node_with(&values);
	ops_execution_trace_add(trace, &node);
	values.bytes[0] = OPS_NODE_TAG_COUNT;
	node = node_with(&values);
	ops_execution_trace_add(trace, &node);
	write_and_read(trace, text, sizeof(text));
	ops_execution_trace_free(trace);
}

static void memory_runs_out(void **state)
{
	struct values values = all_values();
	struct ops_node node = node_with(&values);
	uint64_t nodes = 0, lost = 0;
	bool done = false;

	(void)state;
	for (uint64_t n = 1; !done; n++) {
		struct ops_execution_trace *trace;
		enum ops_code code = OPS_NO_MEMORY;

		ops_alloc_fail_at(n, false);
		trace = ops_execution_trace_new();
		if (trace) {
			ops_execution_trace_add(trace, &node);
			ops_execution_trace_counts(trace, &nodes, &lost);
			assert_int_equal(nodes + lost, 1);
			code = ops_execution_trace_write(trace, "trace.json", NULL);
			assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
			assert_int_equal(count_files(), code == OPS_OK);
			unlink("trace.json");
		}
		done = trace && !lost && code == OPS_OK;
		ops_alloc_fail_at(0, false);
		ops_execution_trace_free(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kind_of_value, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(values_cut_anywhere, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(lists_without_end, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(memory_runs_out, enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
