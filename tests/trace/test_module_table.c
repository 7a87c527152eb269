/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules in a trace: checks of invalid ones, packing and merging.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <opstrobe/internal/pack.h>
#include <opstrobe/merge.h>

#include "../base/failing.h"
#include "../read/compare.h"
#include "modules.h"
#include "trace/table.h"

static struct ops_trace *modules_trace(void)
{
	struct ops_trace *trace = NULL;

	assert_int_equal(ops_builder_finish(modules_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	return trace;
}

static void assert_refused(struct ops_trace *trace, const char *text)
{
	struct ops_error error;

	assert_int_equal(ops_trace_check(trace, &error), OPS_CORRUPT);
	if (!strstr(error.text, text))
		fail_msg("'%s' instead of '%s'", error.text, text);
}

static void bad_ones_are_found(void **state)
{
	struct ops_trace *trace = modules_trace();
	struct ops_module *modules = trace->modules.items;
	uint32_t *rows = trace->columns.module;

	(void)state;
	rows[0] = 6;
	assert_refused(trace, "event 0: module is not one");
	rows[0] = NET;
	modules[LINEAR].path = UINT32_MAX;
	assert_refused(trace, "module 2: a text");
	modules[LINEAR].path = 0;
	modules[LINEAR].parent = LINEAR;
	assert_refused(trace, "module 2: parent is not above");
	modules[LINEAR].parent = LAYERS;
	trace->aliases.items[1].module = 6;
	assert_refused(trace, "further path 1");
	trace->aliases.items[1].module = NET;
	assert_refused(trace, "further path 1 of a module: out of order");
	trace->aliases.items[1].module = LINEAR;
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	ops_trace_unref(trace);
}

static void assert_paths(const char *const (*texts)[2], const uint32_t *parents, size_t count, const char *const *expected)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace = NULL;

	assert_non_null(builder);
	for (size_t i = 0; i < count; i++)
		modules_add(builder, texts[i][0], 0, "Class", texts[i][1], parents[i], 0, 0);
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	for (size_t i = 0; i < count; i++) {
		struct ops_string path = ops_trace_string(trace, trace->modules.items[i].unique_path);

		assert_int_equal(path.size, strlen(expected[i]));
		assert_memory_equal(path.bytes, expected[i], path.size);
	}
	ops_trace_unref(trace);
}

/* Paths begin with the name of the root where modules of several roots have the same path. */
static void paths_of_several_models(void **state)
{
	static const char *const classes[][2] = {
		{"nn.Module: Enc_0", "Enc"}, {"nn.Module: Linear_0", "net"}, {"nn.Module: Dec_0", "Dec"},
		{"nn.Module: Linear_1", "net"}, {"nn.Module: Head_0", "Head"}, {"nn.Module: Linear_2", "out"},
		{"nn.Module: ReLU_0", "ReLU"}, {"nn.Module: ReLU_1", "ReLU"}};
	static const uint32_t class_parents[] = {OPS_NONE, 0, OPS_NONE, 2, OPS_NONE, 4, OPS_NONE, OPS_NONE};
	static const char *const of_classes[] = {"Enc", "Enc.net", "Dec", "Dec.net", "Head", "out", "ReLU", "ReLU"};
	static const char *const numbers[][2] = {{"nn.Module: Sequential_0", "Sequential"}, {"nn.Module: Linear_0", "0"},
	                                         {"nn.Module: Sequential_1", "Sequential"}, {"nn.Module: Linear_1", "0"}};
	static const uint32_t number_parents[] = {OPS_NONE, 0, OPS_NONE, 2};
	static const char *const of_numbers[] = {"Sequential_0", "Sequential_0.0", "Sequential_1", "Sequential_1.0"};
	static const char *const ranks[][2] = {{"nn.Module: Net_0", "Net"}, {"nn.Module: Linear_0", "fc"},
	                                       {"nn.Module: Net_0", "Net"}, {"nn.Module: Linear_0", "fc"}};
	static const char *const of_ranks[] = {"Net", "fc", "Net", "fc"};

	(void)state;
	assert_paths(classes, class_parents, 8, of_classes);
	assert_paths(numbers, number_parents, 4, of_numbers);
	assert_paths(ranks, number_parents, 4, of_ranks);
}

static void packed_and_unpacked(void **state)
{
	struct ops_trace *trace = modules_trace(), *again = NULL;
	size_t size;
	char *bytes;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	assert_int_equal(ops_trace_unpack(bytes, size, &again, NULL), OPS_OK);
	assert_same_trace(trace, again);
	ops_trace_unref(again);
	for (size_t cut = 0; cut < size; cut += 7)
		assert_int_equal(ops_trace_unpack(bytes, cut, &again, NULL), OPS_CORRUPT);
	ops_free(bytes);
	ops_trace_unref(trace);
}

/* The modules of a trace that is joined with itself are the same modules; those of another one are not. */
static void joined(void **state)
{
	struct ops_trace *trace = modules_trace(), *other = modules_trace(), *both = NULL;
	struct ops_trace_part parts[2] = {{.trace = trace, .whole = true}, {.trace = trace, .whole = true}};
	const struct ops_events *events;
	size_t count;

	(void)state;
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &both, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(both, NULL), OPS_OK);
	assert_same_modules(trace, both);
	ops_trace_unref(both);
	other->modules.items[NET].address++;
	parts[1].trace = other;
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &both, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(both, NULL), OPS_OK);
	ops_trace_modules(both, &count);
	assert_int_equal(count, 6 + 5); /* the loss is not part of Net */
	ops_trace_module_aliases(both, &count);
	assert_int_equal(count, 3 + 3);
	events = ops_trace_events(both);
	count = 0;
	for (size_t row = 0; row < events->count; row++)
		count += events->module[row] != OPS_NONE && events->module[row] > LOSS;
	assert_int_equal(count, 4);
	ops_trace_unref(both);
	ops_trace_unref(other);
	ops_trace_unref(trace);
}

static void make_pack_and_join(void *context)
{
	struct ops_trace *trace = NULL, *again = NULL;
	struct ops_builder *builder = modules_builder();
	char *bytes = NULL;
	size_t size;

	(void)context;
	if (!builder || ops_builder_finish(builder, &trace, NULL))
		return;
	if (ops_trace_pack(trace, &bytes, &size, NULL) == OPS_OK &&
	    ops_trace_unpack(bytes, size, &again, NULL) == OPS_OK) {
		struct ops_trace_part parts[2] = {{.trace = trace, .whole = true}, {.trace = again, .whole = true}};
		struct ops_trace *both = NULL;

		if (ops_trace_merge(parts, 2, NULL, &both, NULL) == OPS_OK)
			assert_int_equal(ops_trace_events(both)->count, 30);
		ops_trace_unref(both);
	}
	ops_free(bytes);
	ops_trace_unref(again);
	ops_trace_unref(trace);
}

static void without_memory(void **state)
{
	(void)state;
	assert_true(fail_each(make_pack_and_join, NULL) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_ones_are_found),
		cmocka_unit_test(paths_of_several_models),
		cmocka_unit_test(packed_and_unpacked),
		cmocka_unit_test(joined),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
