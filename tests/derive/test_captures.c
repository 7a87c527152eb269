/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of graphs and their replays: what is linked, and what is ambiguous.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "base/text.h"
#include "derive/captures.h"
#include "derive/launches.h"

struct scene {
	char json[32768];
	size_t size;
	int correlation;
	struct ops_trace *trace;
};

static void add(struct scene *scene, const char *category, const char *name, int pid, int tid, int start_us, int length_us, const char *args)
{
	int size = snprintf(scene->json + scene->size, sizeof(scene->json) - scene->size,
	                    "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %d, \"dur\": %d, "
	                    "\"args\": {%s}}",
	                    scene->size ? ", " : "{\"traceEvents\": [", category, name, pid, tid, start_us, length_us, args);

	scene->size += (size_t)size;
	assert_true(scene->size + 3 < sizeof(scene->json));
}

static void finish(struct scene *scene)
{
	snprintf(scene->json + scene->size, sizeof(scene->json) - scene->size, "]}");
	assert_int_equal(ops_trace_read_memory(scene->json, strlen(scene->json), NULL, &scene->trace, NULL), OPS_OK);
	assert_non_null(ops_captures_of(scene->trace));
}

/* A capture of 100 µs in which each operator makes one call; `kernels` has names for the calls, as ROCm's have, or is NULL. */
static void capture(struct scene *scene, int start_us, const char *const *operators, const char *const *kernels)
{
	char args[256];
	int at = start_us + 5;

	add(scene, "cuda_runtime", "cudaStreamBeginCapture", 1, 1, start_us, 1, "\"correlation\": 9000");
	for (; *operators; operators++, at += 10) {
		bool copies = strcmp(*operators, "aten::copy_") == 0;
		const char *kernel = kernels ? *kernels++ : "";

		add(scene, "cpu_op", *operators, 1, 1, at, 8, "");
		snprintf(args, sizeof(args), "\"correlation\": %d%s%s%s", ++scene->correlation, kernels ? ", \"kernel\": \"" : "",
		         kernel, kernels ? "\"" : "");
		add(scene, "cuda_runtime", copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", 1, 1, at + 2, 4, args);
	}
	add(scene, "cuda_runtime", "cudaStreamEndCapture", 1, 1, start_us + 95, 1, "\"correlation\": 9001");
}

/* A launch of a graph, and its work on streams from 7 on; `graph` is 0 if numbers of graphs and nodes are not known. */
static void replay(struct scene *scene, int start_us, int graph, const char *const *work, int streams)
{
	char args[256];
	int correlation = ++scene->correlation, node = 0;

	snprintf(args, sizeof(args), "\"correlation\": %d", correlation);
	add(scene, "cuda_runtime", "cudaGraphLaunch", 1, 1, start_us, 5, args);
	for (; *work; work++, node++) {
		size_t size = (size_t)snprintf(args, sizeof(args), "\"correlation\": %d, \"device\": 0, \"stream\": %d", correlation, 7 + node % streams);

		if (graph)
			snprintf(args + size, sizeof(args) - size, ", \"graph id\": %d, \"graph node id\": %lld", graph, ((long long)graph << 32) + node);
		add(scene, strncmp(*work, "Memcpy", 6) == 0 ? "gpu_memcpy" : "kernel", *work, 0, 7 + node % streams, start_us + 10 + 10 * node, 8, args);
	}
}

/* The operator that the n-th event of this name is for; "" for none. */
static struct ops_string operator_of(const struct scene *scene, const char *name, size_t n)
{
	const struct ops_events *events = ops_trace_events(scene->trace);
	const uint32_t *origins = ops_origins(scene->trace);

	assert_non_null(origins);
	for (size_t row = 0; row < events->count; row++) {
		uint32_t operator;

		if (!ops_string_is(ops_trace_string(scene->trace, events->name[row]), name) || n-- > 0)
			continue;
		operator = ops_origin_operator(origins, row);
		return operator == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_string(scene->trace, events->name[operator]);
	}
	fail_msg("no event '%s'", name);
	return (struct ops_string){NULL, 0};
}

static void expect_operator(const struct scene *scene, const char *name, size_t n, const char *operator)
{
	struct ops_string found = operator_of(scene, name, n);

	if (!ops_string_is(found, operator))
		fail_msg("'%s' %zu is for '%.*s', not '%s'", name, n, (int)found.size, found.bytes, operator);
}

static const char *const layer[] = {"aten::mm", "aten::copy_", "aten::add", NULL};
static const char *const layer_work[] = {"gemm", "Memcpy DtoD", "vectorized", NULL};
static const char *const gelu[] = {"aten::gelu", "aten::copy_", "aten::mul", NULL};

/* Each replay has the operators of the capture, in the order of nodes, also on two streams; when it was launched stays as it is. */
static void replays_have_the_operators_of_their_capture(void **state)
{
	struct scene scene = {0};
	const struct ops_captures *captures;

	(void)state;
	capture(&scene, 0, layer, NULL);
	replay(&scene, 200, 3, layer_work, 2);
	replay(&scene, 300, 3, layer_work, 2);
	finish(&scene);
	for (size_t n = 0; n < 2; n++) {
		expect_operator(&scene, "gemm", n, "aten::mm");
		expect_operator(&scene, "Memcpy DtoD", n, "aten::copy_");
		expect_operator(&scene, "vectorized", n, "aten::add");
	}
	captures = ops_captures_of(scene.trace);
	assert_int_equal(captures->replayed, 6);
	assert_int_equal(captures->known, 6);
	for (size_t row = 0; row < ops_trace_events(scene.trace)->count; row++) {
		uint32_t launch = ops_launchers(scene.trace)[row];

		if (ops_trace_events(scene.trace)->kind[row] == OPS_EVENT_KERNEL)
			assert_true(ops_string_is(ops_trace_string(scene.trace, ops_trace_events(scene.trace)->name[launch]), "cudaGraphLaunch"));
	}
	ops_trace_unref(scene.trace);
}

static void expect_known(struct scene *scene, size_t replayed, size_t known)
{
	finish(scene);
	assert_int_equal(ops_captures_of(scene->trace)->replayed, replayed);
	assert_int_equal(ops_captures_of(scene->trace)->known, known);
	ops_trace_unref(scene->trace);
	*scene = (struct scene){0};
}

static void what_is_ambiguous_is_not_linked(void **state)
{
	static const char *const longer[] = {"gemm", "Memcpy DtoD", "vectorized", "vectorized", NULL};
	static const char *const other_order[] = {"Memcpy DtoD", "gemm", "vectorized", NULL};
	struct scene scene = {0};

	(void)state;
	/* No capture in the trace; another number of pieces; another order. */
	replay(&scene, 200, 3, layer_work, 1);
	expect_known(&scene, 3, 0);
	capture(&scene, 0, layer, NULL);
	replay(&scene, 200, 3, longer, 1);
	replay(&scene, 300, 4, other_order, 1);
	expect_known(&scene, 7, 0);
	/* Launched before the capture. */
	replay(&scene, 0, 3, layer_work, 1);
	capture(&scene, 200, layer, NULL);
	expect_known(&scene, 3, 0);
	/* Two captures of one shape, of other operators. */
	capture(&scene, 0, layer, NULL);
	capture(&scene, 100, gelu, NULL);
	replay(&scene, 300, 3, layer_work, 1);
	expect_known(&scene, 3, 0);
	/* More graphs of the shape than captures: one was captured before the recording. */
	capture(&scene, 0, layer, NULL);
	replay(&scene, 200, 3, layer_work, 1);
	replay(&scene, 300, 4, layer_work, 1);
	expect_known(&scene, 6, 0);
	/* Neither numbers of graphs nor names of kernels. */
	capture(&scene, 0, layer, NULL);
	replay(&scene, 200, 0, layer_work, 1);
	expect_known(&scene, 3, 0);
	/* A capture that did not end. */
	add(&scene, "cuda_runtime", "cudaStreamBeginCapture", 1, 1, 0, 1, "\"correlation\": 9000");
	add(&scene, "cpu_op", "aten::mm", 1, 1, 5, 8, "");
	add(&scene, "cuda_runtime", "cudaLaunchKernel", 1, 1, 6, 2, "\"correlation\": 8000");
	replay(&scene, 200, 3, (const char *const[]){"gemm", NULL}, 1);
	expect_known(&scene, 1, 0);
}

/* A server captures a graph for each batch size: they are of the same operators. */
static void captures_of_several_sizes_agree(void **state)
{
	struct scene scene = {0};

	(void)state;
	capture(&scene, 0, layer, NULL);
	capture(&scene, 100, layer, NULL);
	replay(&scene, 300, 3, layer_work, 1);
	replay(&scene, 400, 4, layer_work, 1);
	expect_known(&scene, 6, 6);
}

/* ROCm's calls have the names of kernels, which decide between captures. */
static void names_of_kernels_decide(void **state)
{
	static const char *const gelu_work[] = {"gelu_kernel", "Memcpy DtoD", "mul_kernel", NULL};
	static const char *const unknown[] = {"gelu_kernel", "Memcpy DtoD", "vectorized", NULL};
	static const char *const copy_named[] = {"gemm", "Memcpy DtoD", "vectorized", NULL};
	struct scene scene = {0};

	(void)state;
	capture(&scene, 0, layer, copy_named);
	capture(&scene, 100, gelu, gelu_work);
	replay(&scene, 300, 0, gelu_work, 1);
	replay(&scene, 400, 0, layer_work, 1);
	replay(&scene, 500, 0, unknown, 1);
	finish(&scene);
	expect_operator(&scene, "gelu_kernel", 0, "aten::gelu");
	expect_operator(&scene, "gemm", 0, "aten::mm");
	expect_operator(&scene, "vectorized", 0, "aten::add");
	expect_operator(&scene, "gelu_kernel", 1, "");
	assert_int_equal(ops_captures_of(scene.trace)->known, 6);
	ops_trace_unref(scene.trace);
}

/* What runs while another stream captures is in no capture. */
static void concurrent_work_is_not_captured(void **state)
{
	struct scene scene = {0};

	(void)state;
	add(&scene, "cuda_runtime", "cudaLaunchKernel", 1, 2, 20, 4, "\"correlation\": 7777");
	add(&scene, "kernel", "uncaptured", 0, 9, 40, 8, "\"correlation\": 7777, \"device\": 0, \"stream\": 9");
	capture(&scene, 0, layer, NULL);
	replay(&scene, 200, 3, layer_work, 1);
	finish(&scene);
	expect_operator(&scene, "uncaptured", 0, "");
	expect_operator(&scene, "gemm", 0, "aten::mm");
	assert_int_equal(ops_intervals_length(&ops_captures_of(scene.trace)->times), 96000);
	ops_trace_unref(scene.trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replays_have_the_operators_of_their_capture),
		cmocka_unit_test(what_is_ambiguous_is_not_linked),
		cmocka_unit_test(captures_of_several_sizes_agree),
		cmocka_unit_test(names_of_kernels_decide),
		cmocka_unit_test(concurrent_work_is_not_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
