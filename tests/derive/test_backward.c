/* SPDX-License-Identifier: Apache-2.0
 *
 * The module call and the line to which a backward node belongs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../analyze/scene.h"
#include "../analyze/views/view_scene.h"
#include "base/text.h"
#include "derive/backward.h"
#include "derive/places.h"

#define ENGINE "autograd::engine::evaluate_function: "
#define OPERATOR(name, tid, ts, dur) VIEW_ROW("cpu_op", name, 1, tid, ts, dur, "")
#define MODULE(name, ts, dur) VIEW_ROW("python_function", "nn.Module: " name, 1, 1, ts, dur, "\"Python module id\":0,\"Python id\":1")
#define LINK(id, tid, ts, to_ts)                                                                   \
	"{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts "},"       \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":2,\"ts\":" #to_ts "},"

static void assert_module(const struct ops_places *places, const char *name, const char *module)
{
	assert_true(ops_string_is(ops_place_module(places, scene_row(places->trace, name)), module));
}

/* By the forward operator; an accumulation as the node before; the backward of what ran in a backward node as that node. */
static void nodes_work_for_modules(void **state)
{
	struct ops_trace *trace = scene_read(
		MODULE("Net_0", 0, 100) MODULE("Linear_0", 10, 30) OPERATOR("aten::addmm", 1, 12, 20) OPERATOR("aten::relu", 1, 50, 20)
			OPERATOR("aten::loss", 1, 110, 20) OPERATOR(ENGINE "Loss", 2, 200, 10) OPERATOR(ENGINE "Relu", 2, 220, 10)
				OPERATOR(ENGINE "Addmm", 2, 240, 20) OPERATOR("aten::mm", 2, 242, 10)
					OPERATOR(ENGINE "torch::autograd::AccumulateGrad", 2, 270, 10) OPERATOR(ENGINE "Mm", 2, 300, 10)
						LINK(1, 1, 12, 240) LINK(2, 1, 50, 220) LINK(3, 1, 110, 200) LINK(4, 2, 242, 300), "");
	const uint32_t *modules = ops_backward_modules(trace);
	struct ops_places places;
	uint32_t net = scene_row(trace, "nn.Module: Net_0"), linear = scene_row(trace, "nn.Module: Linear_0");

	(void)state;
	assert_int_equal(modules[net], OPS_ROW_PLAIN);
	assert_int_equal(modules[scene_row(trace, "aten::mm")], OPS_ROW_PLAIN);
	assert_int_equal(modules[scene_row(trace, ENGINE "Loss")], OPS_NONE);
	assert_int_equal(modules[scene_row(trace, ENGINE "Relu")], net);
	assert_int_equal(modules[scene_row(trace, ENGINE "Addmm")], linear);
	assert_int_equal(modules[scene_row(trace, ENGINE "torch::autograd::AccumulateGrad")], linear);
	assert_int_equal(modules[scene_row(trace, ENGINE "Mm")], linear);
	/* Rows within a module or a node. */
	assert_true(ops_places_init(&places, trace));
	assert_module(&places, "aten::mm", "Linear_0");
	assert_module(&places, "aten::addmm", "Linear_0");
	assert_module(&places, "aten::relu", "Net_0");
	assert_module(&places, "nn.Module: Net_0", "Net_0");
	assert_module(&places, "aten::loss", "");
	assert_module(&places, ENGINE "Loss", "");
	assert_int_equal(ops_place_module(&places, OPS_NONE).size, 0);
	ops_trace_unref(trace);
}

#define FUNCTION(name, tid, ts, dur) VIEW_ROW("python_function", name, 1, tid, ts, dur, "\"Python id\":1")

/* A node on the engine's thread has the line of its forward operator, a node below a function that of the call. */
static void nodes_have_lines(void **state)
{
	struct ops_trace *trace = scene_read(
		FUNCTION("train.py(10): loss", 1, 0, 100) OPERATOR("aten::exp", 1, 10, 20) FUNCTION("train.py(20): step", 1, 110, 100)
			OPERATOR("ExpBackward0", 1, 120, 20) OPERATOR(ENGINE "Exp", 2, 300, 20) OPERATOR("aten::mul", 2, 302, 10)
				OPERATOR("aten::sum", 2, 400, 10) LINK(1, 1, 10, 300), "");
	struct ops_places places;
	uint32_t line;

	(void)state;
	assert_true(ops_places_init(&places, trace));
	assert_true(ops_string_is(ops_place_line(&places, scene_row(trace, "aten::mul"), &line), "train.py"));
	assert_int_equal(line, 10);
	assert_true(ops_string_is(ops_place_line(&places, scene_row(trace, "ExpBackward0"), &line), "train.py"));
	assert_int_equal(line, 20);
	assert_int_equal(ops_place_line(&places, scene_row(trace, "aten::sum"), &line).size, 0);
	assert_int_equal(line, 0);
	assert_int_equal(ops_place_line(&places, OPS_NONE, &line).size, 0);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_work_for_modules),
		cmocka_unit_test(nodes_have_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
