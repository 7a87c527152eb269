/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies of nodes of CUDA graphs, compared with the definition, including edges that no driver would report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "read/device_graphs.h"

#define NODES 12

/* Says of a node that it has rows. */
static void run(struct ops_activities *activities, uint64_t node)
{
	char text[32];
	size_t size = (size_t)snprintf(text, sizeof(text), "\"graph node id\":%llu", (unsigned long long)node);

	ops_activities_node(activities, ops_activities_text(activities, text, size), node);
}

static uint32_t number_of(const struct device_graphs *graphs, uint64_t id)
{
	return ops_intern_find(&graphs->ids, &id, sizeof(id));
}

static bool waits(const struct device_graphs *graphs, uint64_t node, uint64_t other)
{
	for (uint32_t w = graphs->nodes.items[number_of(graphs, node)].waits; w != OPS_NONE; w = graphs->waits.items[w].next)
		if (graphs->waits.items[w].node == number_of(graphs, other))
			return true;
	return false;
}

/* The definition: there is a path from one node to the other past nodes that do not run. */
static bool leads(const bool edge[NODES][NODES], const bool *runs, int from, int to)
{
	for (int next = from + 1; next <= to; next++)
		if (edge[from][next] && (next == to || (!runs[next] && leads(edge, runs, next, to))))
			return true;
	return false;
}

static uint32_t random_below(uint32_t limit)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % limit);
}

static void any_graph_agrees_with_the_definition(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct ops_activities *activities = ops_activities_new();
		struct device_graphs graphs = {0};
		bool edge[NODES][NODES] = {0}, runs[NODES];

		for (int node = 0; node < NODES; node++) {
			assert_true(device_graphs_add_node(&graphs, (uint64_t)node + 1, 0, 0));
			runs[node] = random_below(2);
			if (runs[node])
				run(activities, (uint64_t)node + 1);
		}
		run(activities, NODES + 1);
		for (int i = 0; i < 2 * NODES; i++) {
			int from = (int)random_below(NODES - 1), to = from + 1 + (int)random_below((uint32_t)(NODES - 1 - from));

			edge[from][to] = true;
			assert_true(device_graphs_add_edge(&graphs, (uint64_t)from + 1, (uint64_t)to + 1));
		}
		assert_true(device_graphs_finish(&graphs, activities));
		for (int from = 0; from < NODES; from++)
			for (int to = 0; to < NODES; to++)
				assert_int_equal(waits(&graphs, (uint64_t)to + 1, (uint64_t)from + 1),
				                 runs[from] && leads(edge, runs, from, to));
		device_graphs_release(&graphs);
		ops_activities_free(activities);
	}
}

/* Two nodes are instantiated twice, and once more with the edge the other way round. */
static void an_edge_is_one_of_the_latest_copies(void **state)
{
	struct ops_activities *activities = ops_activities_new();
	struct device_graphs graphs = {0};

	(void)state;
	for (uint64_t node = 1; node <= 2; node++)
		assert_true(device_graphs_add_node(&graphs, node, 0, (uint32_t)node + 100));
	for (uint64_t copy = 10; copy <= 30; copy += 10) {
		for (uint64_t node = 1; node <= 2; node++) {
			assert_true(device_graphs_add_node(&graphs, copy + node, node, 0));
			run(activities, copy + node);
		}
		assert_true(device_graphs_add_edge(&graphs, copy < 30 ? 1 : 2, copy < 30 ? 2 : 1));
	}
	assert_true(device_graphs_finish(&graphs, activities));
	for (uint64_t copy = 10; copy <= 30; copy += 10)
		for (uint64_t other = 10; other <= 30; other += 10) {
			assert_int_equal(waits(&graphs, copy + 2, other + 1), copy == other && copy < 30);
			assert_int_equal(waits(&graphs, copy + 1, other + 2), copy == other && copy == 30);
		}
	assert_int_equal(graphs.nodes.items[number_of(&graphs, 31)].operator_name, 101);
	assert_int_equal(graphs.nodes.items[number_of(&graphs, 32)].operator_name, 102);
	device_graphs_release(&graphs);
	ops_activities_free(activities);
}

/* 1 ──▶ 2 ──▶ 3 ──▶ 2 and 4 ──▶ 4 are circles; 3 ──▶ 5 comes from one. */
static void circles_lead_nowhere(void **state)
{
	struct ops_activities *activities = ops_activities_new();
	struct device_graphs graphs = {0};

	(void)state;
	for (uint64_t node = 1; node <= 5; node++)
		run(activities, node);
	assert_true(device_graphs_add_edge(&graphs, 1, 2));
	assert_true(device_graphs_add_edge(&graphs, 2, 3));
	assert_true(device_graphs_add_edge(&graphs, 3, 2));
	assert_true(device_graphs_add_edge(&graphs, 3, 5));
	assert_true(device_graphs_add_edge(&graphs, 4, 4));
	assert_true(device_graphs_finish(&graphs, activities));
	assert_true(waits(&graphs, 2, 1));
	assert_false(waits(&graphs, 2, 3));
	assert_false(waits(&graphs, 3, 2));
	assert_false(waits(&graphs, 5, 3));
	assert_false(waits(&graphs, 4, 4));
	device_graphs_release(&graphs);
	ops_activities_free(activities);
}

#define MANY 500000

/* A long chain of nodes without rows, and a thousand that all wait, by way of one of those, for a thousand others. */
static void large_graphs_take_no_more_than_their_size(void **state)
{
	struct ops_activities *activities = ops_activities_new();
	struct device_graphs graphs = {0};

	(void)state;
	run(activities, 1);
	run(activities, MANY);
	for (uint64_t node = 1; node < MANY; node++)
		assert_true(device_graphs_add_edge(&graphs, node, node + 1));
	for (uint64_t i = 1; i <= 1000; i++) {
		run(activities, MANY + 1 + i);
		run(activities, 2 * MANY + 1 + i);
		assert_true(device_graphs_add_edge(&graphs, MANY + 1 + i, MANY + 1));
		assert_true(device_graphs_add_edge(&graphs, MANY + 1, 2 * MANY + 1 + i));
	}
	assert_true(device_graphs_finish(&graphs, activities));
	assert_true(waits(&graphs, MANY, 1));
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(graphs.nodes.items[number_of(&graphs, 2 * MANY + 1 + i)].wait_count, GRAPH_WAITS_MAX);
	assert_true(graphs.waits.count <= GRAPH_WAITS_MAX * graphs.nodes.count);
	device_graphs_release(&graphs);
	ops_activities_free(activities);
}

static void without_memory_it_fails(void **state)
{
	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct ops_activities *activities = ops_activities_new();
		struct device_graphs graphs = {0};
		bool ok;

		run(activities, 11);
		run(activities, 12);
		ops_alloc_fail_at(nth, true);
		ok = device_graphs_add_node(&graphs, 11, 1, 0) && device_graphs_add_node(&graphs, 12, 2, 0) &&
		     device_graphs_add_edge(&graphs, 1, 2) && device_graphs_finish(&graphs, activities) &&
		     device_graphs_ran(&graphs, 0, 1, 0, OPS_NONE);
		ops_alloc_fail_at(0, false);
		device_graphs_release(&graphs);
		ops_activities_free(activities);
		if (ok)
			return;
		assert_true(nth < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_graph_agrees_with_the_definition),
		cmocka_unit_test(an_edge_is_one_of_the_latest_copies),
		cmocka_unit_test(circles_lead_nowhere),
		cmocka_unit_test(large_graphs_take_no_more_than_their_size),
		cmocka_unit_test(without_memory_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
