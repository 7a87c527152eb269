/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that only pass on to another call.
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
#include "derive/program.h"

#define FUNCTION(name, ts, dur) VIEW_ROW("python_function", name, 1, 1, ts, dur, "\"Python id\":2")
#define MODULE(name, ts, dur) VIEW_ROW("python_function", "nn.Module: " name, 1, 1, ts, dur, "\"Python module id\":0,\"Python id\":1")
#define OPERATOR(name, ts, dur) VIEW_ROW("cpu_op", name, 1, 1, ts, dur, "")

/* Pairs of a call and what it leads to, and all others lead nowhere. */
static void expect(const char *rows, const char *const pairs[][2], size_t count)
{
	struct ops_trace *trace = scene_read(rows, "");
	const struct ops_wrappers *wrappers = ops_wrappers_of(trace);

	assert_int_equal(wrappers->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(wrappers->into[scene_row(trace, pairs[i][0])], scene_row(trace, pairs[i][1]));
	if (!count)
		assert_null(wrappers->into);
	ops_trace_unref(trace);
}

#define EXPECT(rows, ...)                                                                                                \
	do {                                                                                                             \
		static const char *const pairs[][2] = {__VA_ARGS__};                                                     \
                                                                                                                         \
		expect(rows, pairs, sizeof(pairs) / sizeof(*pairs));                                                     \
	} while (0)

/* The calls around a module and inside it fold into modules and operators, with the small things that they also call. */
static void calls_of_modules_fold(void **state)
{
	(void)state;
	EXPECT(FUNCTION("train.py(3): forward", 0, 1000) FUNCTION("torch/nn/modules/module.py(1): _wrapped_call_impl", 10, 900)
	               FUNCTION("torch/nn/modules/module.py(2): _call_impl", 11, 898)
	                       FUNCTION("<built-in function _get_tracing_state>", 12, 1) MODULE("Linear_0", 14, 890)
	                               FUNCTION("torch/nn/modules/linear.py(3): forward", 15, 880)
	                                       FUNCTION("<built-in function linear>", 16, 878) OPERATOR("aten::linear", 17, 870),
	       {"torch/nn/modules/module.py(1): _wrapped_call_impl", "nn.Module: Linear_0"},
	       {"torch/nn/modules/module.py(2): _call_impl", "nn.Module: Linear_0"},
	       {"<built-in function _get_tracing_state>", "nn.Module: Linear_0"},
	       {"torch/nn/modules/linear.py(3): forward", "aten::linear"}, {"<built-in function linear>", "aten::linear"});
}

/* A decorator of a library leads to the function of the program; functions of the program never fold. */
static void functions_of_the_program_stay(void **state)
{
	(void)state;
	EXPECT(FUNCTION("main.py(1): <module>", 0, 1000) FUNCTION("main.py(2): main", 1, 998)
	               FUNCTION("/usr/lib/python3.11/contextlib.py(79): inner", 2, 990) FUNCTION("main.py(9): train", 3, 980)
	                       OPERATOR("aten::mm", 10, 900),
	       {"/usr/lib/python3.11/contextlib.py(79): inner", "main.py(9): train"});
}

/* What calls two things that work, or works itself for more than a twentieth and 20 us, is not a wrapper. */
static void functions_that_do_something_stay(void **state)
{
	(void)state;
	expect(FUNCTION("torch/a.py(1): two", 0, 1000) OPERATOR("aten::mm", 1, 500) OPERATOR("aten::add", 600, 390), NULL, 0);
	expect(FUNCTION("torch/a.py(1): slow", 0, 1000) OPERATOR("aten::mm", 1, 949), NULL, 0);
	expect(FUNCTION("torch/a.py(1): slow", 0, 100) OPERATOR("aten::mm", 1, 79), NULL, 0);
	expect(FUNCTION("torch/a.py(1): none", 0, 100) FUNCTION("torch/a.py(2): leaf", 1, 98), NULL, 0);
	EXPECT(FUNCTION("torch/a.py(1): quick", 0, 1000) OPERATOR("aten::mm", 1, 950), {"torch/a.py(1): quick", "aten::mm"});
	EXPECT(FUNCTION("torch/a.py(1): short", 0, 25) OPERATOR("aten::mm", 1, 5), {"torch/a.py(1): short", "aten::mm"});
}

/* In one of three calls the thread lost its processor. */
static void calls_of_a_function_fold_alike(void **state)
{
	struct ops_trace *trace = scene_read(FUNCTION("torch/a.py(1): often", 0, 25) OPERATOR("aten::mm", 1, 5) FUNCTION("torch/a.py(1): often", 100, 500)
	                                             OPERATOR("aten::add", 101, 5) FUNCTION("torch/a.py(1): often", 700, 25) OPERATOR("aten::mul", 701, 5), "");

	(void)state;
	assert_int_equal(ops_wrappers_of(trace)->count, 3);
	ops_trace_unref(trace);
}

/* What starts the program or a thread leads to what it starts, also to what only waits; only at the start of a stack. */
static void launchers_fold(void **state)
{
	(void)state;
	EXPECT(FUNCTION("<frozen runpy>(198): _run_module_as_main", 0, 1000) FUNCTION("<frozen runpy>(88): _run_code", 1, 998)
	               FUNCTION("main.py(1): <module>", 2, 900) OPERATOR("aten::mm", 10, 100) OPERATOR("aten::add", 300, 100),
	       {"<frozen runpy>(198): _run_module_as_main", "main.py(1): <module>"},
	       {"<frozen runpy>(88): _run_code", "main.py(1): <module>"});
	EXPECT(FUNCTION("threading.py(995): Thread._bootstrap", 0, 1000)
	               FUNCTION("threading.py(1038): Thread._bootstrap_inner", 1, 998) FUNCTION("<built-in method set>", 2, 1)
	                       FUNCTION("threading.py(975): Thread.run", 4, 990)
	                               FUNCTION("/usr/lib/python3.11/multiprocessing/queues.py(5): Queue._feed", 5, 980),
	       {"threading.py(995): Thread._bootstrap", "/usr/lib/python3.11/multiprocessing/queues.py(5): Queue._feed"},
	       {"threading.py(1038): Thread._bootstrap_inner", "/usr/lib/python3.11/multiprocessing/queues.py(5): Queue._feed"},
	       {"<built-in method set>", "/usr/lib/python3.11/multiprocessing/queues.py(5): Queue._feed"},
	       {"threading.py(975): Thread.run", "/usr/lib/python3.11/multiprocessing/queues.py(5): Queue._feed"});
	expect(FUNCTION("main.py(1): <module>", 0, 1000) FUNCTION("threading.py(975): Thread.run", 4, 990)
	               FUNCTION("train.py(5): work", 5, 800),
	       NULL, 0);
	expect(FUNCTION("train.py(5): run", 0, 800) FUNCTION("train.py(6): inner", 1, 700), NULL, 0);
}

/* Installed, in a checkout, and as Kineto shortens it. Programs and other packages may have the name in their paths. */
static void its_own_package_is_known_by_path(void **state)
{
	static const struct {
		const char *file;
		bool own;
	} cases[] = {
		{"/venv/lib/python3.11/site-packages/opstrobe/run.py", true},
		{"/usr/lib/python3/dist-packages/opstrobe/launcher/program.py", true},
		{"/home/u/src/python/opstrobe/recording/window.py", true},
		{"opstrobe/profiler.py", true},
		{"/home/u/opstrobe/train.py", false},
		{"/venv/lib/python3.11/site-packages/opstrobe_extras/run.py", false},
		{"train.py", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(ops_file_is_own(ops_string_of(cases[i].file)), cases[i].own);
		assert_true(!cases[i].own || ops_file_is_library(ops_string_of(cases[i].file)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_modules_fold),
		cmocka_unit_test(functions_of_the_program_stay),
		cmocka_unit_test(functions_that_do_something_stay),
		cmocka_unit_test(calls_of_a_function_fold_alike),
		cmocka_unit_test(launchers_fold),
		cmocka_unit_test(its_own_package_is_known_by_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
