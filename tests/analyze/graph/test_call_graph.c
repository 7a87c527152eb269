/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/graph/call_graph: nesting, backward work and kernels, compared with known traces and with the definition.
 */
#include "graph_scene.h"

#include <stdlib.h>

#include "analyze/graph/call_graph.h"
#include "base/alloc.h"
#include "base/text.h"

static uint32_t find(const struct event_table *table, const char *name)
{
	for (uint32_t row = 0; row < table->count; row++)
		if (ops_string_is(event_name(table, &table->rows[row]), name))
			return row;
	fail_msg("no row '%s'", name);
	return 0;
}

static void assert_parent(const struct call_graph *graph, const char *name, const char *parent)
{
	uint32_t found = graph->nodes[find(graph->table, name)].parent;

	if (!parent)
		assert_int_equal(found, OPS_NONE);
	else
		assert_int_equal(found, find(graph->table, parent));
}

static void rows_nest(void **state)
{
	struct event_set set = scene_events(OP("a", 0, 100) OP("b", 0, 40) OP("c", 40, 60) OP("d", 40, 0) OP("e", 100, 10)
	                                    OP("f", 20, 5) OP("g", 110, 0));
	struct call_graph graph;

	(void)state;
	assert_true(call_graph_init(&graph, &set.tables[0]));
	assert_parent(&graph, "a", NULL);
	assert_parent(&graph, "b", "a");
	assert_parent(&graph, "c", "a");
	assert_parent(&graph, "d", "c"); /* an instant is in what begins, not in what ends */
	assert_parent(&graph, "e", NULL);
	assert_parent(&graph, "f", "b");
	assert_parent(&graph, "g", "e");
	assert_int_equal(graph.nodes[find(graph.table, "f")].depth, 2);
	assert_int_equal(graph.nodes[find(graph.table, "a")].height, 3);
	call_graph_release(&graph);
	scene_release(&set);
}

/* In the reference implementation, the end of "a" closes "b", and that of "b" closes what is open then. */
static void overlap_in_part(void **state)
{
	struct event_set set = scene_events(OP("a", 0, 50) OP("b", 20, 31) OP("c", 50, 30) OP("d", 55, 5) OP("e", 90, 5));
	struct call_graph graph;

	(void)state;
	assert_true(call_graph_init(&graph, &set.tables[0]));
	assert_parent(&graph, "b", "a");
	assert_parent(&graph, "c", NULL);
	assert_parent(&graph, "d", "c");
	assert_parent(&graph, "e", NULL);
	call_graph_release(&graph);
	scene_release(&set);
}

/* Returns the last row that starts before and still runs at half of the row's time. */
static uint32_t plain_parent(const struct event_table *table, const uint32_t *order, size_t i)
{
	const struct event_row *row = &table->rows[order[i]];

	for (size_t j = i; j-- > 0;) {
		const struct event_row *other = &table->rows[order[j]];
		int64_t end_ns = event_end(other);

		if (row->dur_ns == 0 ? end_ns >= row->ts_ns : end_ns > row->ts_ns && 2 * end_ns >= row->ts_ns + event_end(row))
			return order[j];
	}
	return OPS_NONE;
}

static void nests_as_defined(void **state)
{
	enum { ROWS = 300, ROUNDS = 60 };
	struct event_row rows[ROWS];
	uint32_t order[ROWS], parents[ROWS];
	struct event_table table = {.rows = rows, .count = ROWS};

	(void)state;
	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < ROWS; i++) {
			rows[i] = (struct event_row){.ts_ns = rand() % 500, .dur_ns = rand() % (1 + rand() % 200)};
			order[i] = i;
		}
		assert_true(call_nest(&table, order, ROWS, parents));
		for (size_t i = 0; i < ROWS; i++)
			assert_int_equal(parents[order[i]], plain_parent(&table, order, i));
	}
}

#define BACKWARD_ROWS                                                                              \
	ROW("user_annotation", "ProfilerStep#1", 9, 9, 0, 100, "")                                     \
	ROW("user_annotation", "## backward ##", 9, 9, 50, 40, "")                                     \
	ROW("cpu_op", "autograd::engine::evaluate_function: Mm", 9, 8, 60, 20, "")                     \
	ROW("cuda_runtime", "cudaLaunchKernel", 9, 8, 65, 5, "\"correlation\":3")                      \
	KERNEL("k", 7, 80, 15, 3)                                                                      \
	ROW("cpu_op", "late", 9, 8, 95, 5, "")

static void backward_is_below_its_step(void **state)
{
	struct event_set set = scene_events(BACKWARD_ROWS);
	struct call_graph graph;

	(void)state;
	assert_true(call_graph_init(&graph, &set.tables[0]));
	assert_parent(&graph, "autograd::engine::evaluate_function: Mm", "## backward ##");
	assert_parent(&graph, "late", NULL);
	assert_parent(&graph, "k", "cudaLaunchKernel");
	assert_int_equal(graph.nodes[find(graph.table, "k")].depth, 4);
	assert_int_equal(graph.nodes[find(graph.table, "k")].height, 0);
	assert_int_equal(graph.nodes[find(graph.table, "ProfilerStep#1")].kernels, 1);
	assert_int_equal(graph.nodes[find(graph.table, "ProfilerStep#1")].kernels_ns, 15000);
	assert_int_equal(graph.nodes[find(graph.table, "ProfilerStep#1")].height, 4);
	call_graph_release(&graph);
	scene_release(&set);
}

static void test_stream_0(void **state)
{
	(void)state;
	assert_answer("call_graph", OP("a", 0, 10) CALL("hipLaunchKernel", 2, 2, 5) KERNEL("k", 0, 6, 3, 5), NULL,
	              "\"kernels_linked\":1,\"top_level_kernel_dur_sum\":3,\"top_level_num_kernels\":1");
}

static void test_lock_queries(void **state)
{
	(void)state;
	assert_answer("call_graph", BACKWARD_ROWS, "{\"event\":1}",
	              "{\"index\":1,\"path_to_root\":[0],\"children\":[2],\"leaves\":[4],\"descendants\":[2,3,4]}");
	assert_answer("call_graph", BACKWARD_ROWS, "{\"nodes\":true}",
	              "[0,1,\"## backward ##\",0,1,3,1,15,80,95,15]");
	assert_answer("call_graph", BACKWARD_ROWS, "{\"event\":77}", "{\"value\":{}}");
}

static void survives_failures(void **state)
{
	(void)state;
	assert_survives_failures("call_graph", BACKWARD_ROWS, NULL);
	assert_survives_failures("call_graph", BACKWARD_ROWS, "{\"event\":1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_nest),
		cmocka_unit_test(overlap_in_part),
		cmocka_unit_test(nests_as_defined),
		cmocka_unit_test(backward_is_below_its_step),
		cmocka_unit_test(test_stream_0),
		cmocka_unit_test(test_lock_queries),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
