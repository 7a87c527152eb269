/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/flow: what produces each value, what uses it, and how much of it is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/flow/data_flow.h"
#include "asking.h"
#include "scene.h"

#define MAX_ARGUMENTS 4

/* An operator on tensors of float32 with two dimensions, and whole numbers behind them. */
struct call {
	const char *name;
	int64_t start_ns, end_ns;
	struct {
		uint64_t address;
		int64_t bytes, rows, columns;
		bool written;
	} tensors[MAX_ARGUMENTS];
	int64_t numbers[MAX_ARGUMENTS];
	size_t count;
};

static void add_call(struct ops_builder *b, struct call call)
{
	struct ops_new_event event = scene_event(b, 0, call.name, call.start_ns, call.end_ns);
	struct ops_storage storages[MAX_ARGUMENTS];
	size_t tensors = 0;
	struct list list;

	while (tensors < MAX_ARGUMENTS && call.tensors[tensors].bytes)
		tensors++;
	list_open(&list, (uint32_t)(tensors + call.count));
	for (size_t i = 0; i < tensors; i++) {
		int64_t columns = call.tensors[i].columns;

		put_tensor(&list, 6, 2, (const int64_t[]){call.tensors[i].rows, columns, columns, 1});
		storages[i] = (struct ops_storage){.address = call.tensors[i].address, .bytes = (uint64_t)call.tensors[i].bytes,
		                                   .written = call.tensors[i].written};
	}
	for (size_t i = 0; i < call.count; i++)
		put_int(&list, call.numbers[i]);
	event.inputs = ops_builder_inputs(b, list.bytes, list.size);
	event.sequence_nr = 1;
	if (tensors)
		event.storages = ops_builder_string(b, (const char *)storages, tensors * sizeof(*storages));
	ops_builder_event(b, &event);
}

static void allocate(struct ops_builder *b, int64_t time_ns, uint64_t address, int64_t bytes)
{
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = time_ns, .address = address, .bytes = bytes, .device_index = -1});
}

/* Scores of 100 rows of 10 numbers, of which a view of one row is read; and a sum, which nobody reads. */
static struct ops_trace *scores(void)
{
	struct ops_builder *b = scene_open();

	add_call(b, (struct call){"aten::mm", 10, 90, {{0x100, 400, 100, 1, false}, {0x200, 40, 1, 10, false}}, {0}, 0});
	allocate(b, 20, 0x1000, 4000);
	allocate(b, 30, 0x9000, 800); /* scratch memory */
	allocate(b, 80, 0x9000, -800);
	add_call(b, (struct call){"aten::select", 100, 110, {{0x1000, 4000, 100, 10, false}}, {0, -1}, 2});
	add_call(b, (struct call){"aten::argmax", 120, 140, {{0x1000, 4000, 1, 10, false}}, {0}, 0});
	allocate(b, 130, 0x2000, 8);
	add_call(b, (struct call){"aten::sum", 150, 170, {{0x200, 40, 1, 10, false}}, {0}, 0});
	allocate(b, 160, 0x3000, 4);
	allocate(b, 180, 0x1000, -4000);
	allocate(b, 190, 0x3000, -4);
	return scene_close(b);
}

/* Returns the first value that the only call of that name makes. */
static uint32_t made_by(const struct data_flow *flow, const char *name)
{
	const struct data_node *node = &flow->nodes[scene_row(flow->memory.trace, name)];

	assert_true(node->made_count > 0);
	return flow->made.items[node->first_made];
}

static void counts_the_part_that_is_read(void **state)
{
	struct ops_trace *trace = scores();
	struct data_flow flow;
	struct data_uses uses;
	uint32_t mm = scene_row(trace, "aten::mm");

	(void)state;
	assert_true(data_flow_init(&flow, trace));
	uses = data_flow_uses_of(&flow, made_by(&flow, "aten::mm"));
	assert_int_equal(uses.readers, 1);
	assert_int_equal(uses.reader, scene_row(trace, "aten::argmax"));
	assert_int_equal(uses.read_bytes, 40);
	assert_true(flow.values[made_by(&flow, "aten::mm")].complete);
	assert_int_equal(data_flow_read_bytes(&flow, mm), 440);
	assert_int_equal(data_flow_made_bytes(&flow, mm), 4800);

	uses = data_flow_uses_of(&flow, made_by(&flow, "aten::sum"));
	assert_int_equal(uses.readers, 0);
	assert_int_equal(uses.reader, OPS_NONE);
	assert_false(flow.values[made_by(&flow, "aten::argmax")].complete); /* it is kept */
	data_flow_release(&flow);
	ops_trace_unref(trace);
}

static void lists_what_is_never_read(void **state)
{
	struct question question = {.id = "data_flow", .args = "{}", .count = 1};

	(void)state;
	question.ranks[0] = (struct ops_rank){.name = "a", .trace = scores()};
	asking_gives(question,
	             "{\"table\":{\"columns\":[\"operator\",\"calls\",\"time\",\"input_bytes\",\"result_bytes\",\"unread_bytes\",\"results\","
	             "\"unread_results\",\"kept_results\",\"line\",\"file\"],\"rows\":["
	             "[\"aten::mm\",1,0.08,440,4000,3960,1,0,0,null,null],"
	             "[\"aten::sum\",1,0.02,40,4,4,1,1,0,null,null],"
	             "[\"aten::argmax\",1,0.02,40,8,0,1,0,1,null,null],"
	             "[\"aten::select\",1,0.01,0,0,0,0,0,0,null,null]]}}");
	asking_done(&question);
}

/* Zeros that only an addition in place reads, and the sum, which an operator with `out=` overwrites. */
static void follows_versions(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	struct data_flow flow;
	struct data_uses uses;
	uint32_t sum;

	(void)state;
	allocate(b, 5, 0x1000, 400);
	add_call(b, (struct call){"aten::zero_", 10, 20, {{0x1000, 400, 10, 10, true}}, {0}, 0});
	add_call(b, (struct call){"aten::add_", 30, 40, {{0x1000, 400, 10, 10, true}, {0x2000, 400, 10, 10, false}}, {0}, 0});
	add_call(b, (struct call){"aten::mm", 50, 60,
	                          {{0x3000, 400, 10, 10, false}, {0x2000, 400, 10, 10, false}, {0x1000, 400, 10, 10, true}}, {0}, 0});
	trace = scene_close(b);
	assert_true(data_flow_init(&flow, trace));
	uses = data_flow_uses_of(&flow, made_by(&flow, "aten::zero_"));
	assert_int_equal(uses.updates, 1);
	assert_int_equal(uses.readers, 0);
	sum = made_by(&flow, "aten::add_");
	uses = data_flow_uses_of(&flow, sum);
	assert_int_equal(uses.updates, 0);
	assert_int_equal(uses.readers, 0);
	assert_int_equal(flow.uses.items[flow.values[sum].first].kind, DATA_OVERWRITES);
	assert_int_equal(flow.memory.values.items[made_by(&flow, "aten::mm")].number, 3);
	data_flow_release(&flow);
	ops_trace_unref(trace);
}

static int64_t narrowed(const char *name, int64_t dimension, int64_t first, int64_t last, int64_t each)
{
	struct list list;

	list_open(&list, 5);
	put_tensor(&list, 6, 2, (const int64_t[]){100, 10, 10, 1});
	put_int(&list, dimension);
	put_int(&list, first);
	put_int(&list, last);
	put_int(&list, each);
	return data_flow_narrowed_elements((struct ops_string){name, strlen(name)}, (struct ops_string){list.bytes, list.size});
}

static void knows_the_size_of_views(void **state)
{
	(void)state;
	assert_int_equal(narrowed("aten::select", 0, 3, 0, 0), 10);
	assert_int_equal(narrowed("aten::select", -1, 3, 0, 0), 100);
	assert_int_equal(narrowed("aten::slice", 0, 90, INT64_MAX, 1), 100);
	assert_int_equal(narrowed("aten::slice", 0, -30, -10, 2), 100);
	assert_int_equal(narrowed("aten::slice", 1, 0, 3, 2), 200);
	assert_int_equal(narrowed("aten::narrow", 0, 20, 5, 0), 50);
	assert_int_equal(narrowed("aten::slice", 2, 0, 3, 2), -1);
	assert_int_equal(narrowed("aten::diagonal", 0, 0, 1, 0), 10);
	assert_int_equal(narrowed("aten::diagonal", 4, -2, -1, 0), 6);
	assert_int_equal(narrowed("aten::diagonal", -95, 0, 1, 0), 5);
	assert_int_equal(narrowed("aten::diagonal", 0, 0, 2, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_the_part_that_is_read),
		cmocka_unit_test(lists_what_is_never_read),
		cmocka_unit_test(follows_versions),
		cmocka_unit_test(knows_the_size_of_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
