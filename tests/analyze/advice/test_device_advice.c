/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice on accelerators: programs whose device waits for a single cause have the finding of that cause and its gain; a
 * busy device has none.
 */
#include "device_trace.h"

#define STEPS 4

static void assert_near(double value, double expected, double tolerance)
{
	if (!(value >= expected - tolerance && value <= expected + tolerance))
		fail_msg("%g is not %g to %g", value, expected, tolerance);
}

/* Kernels of 3 us, one every 30 us. */
static void finds_launch_bound(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, step * 1200, 1199);
		for (int i = 0; i < 40; i++)
			device_trace_work(&trace, "aten::add", "", "kernel", "add_kernel", "", step * 1200 + i * 30, 3);
	}
	text = device_trace_advise(&trace);
	/* 40 gaps of 27 us, less 1.5 each. */
	assert_near(finding_ms(text, "launch-bound"), 1.02, 0.05);
	assert_true(finding_ms(text, "synchronising-calls") < 0);
	assert_non_null(strstr(text, "The device is idle for 90"));
	assert_non_null(strstr(text, "aten::add"));
	ops_free(text);
}

/* Four kernels of 20 us in 10 ms, of a file without operators. */
static void open_idle_trace(struct device_trace *trace)
{
	device_trace_open(trace);
	for (int i = 0; i < 4; i++)
		device_trace_add(trace, "kernel", "k", 0, 7, 1000 + i * 2500, 20, "\"device\": 0, \"stream\": 7");
}

static void finds_mostly_idle_devices(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	open_idle_trace(&trace);
	device_trace_step(&trace, 0, 0, 10000);
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "device-idle") >= 0);
	assert_non_null(strstr(text, "The device is idle for 99.2 % of the steps"));
	assert_non_null(strstr(text, "\"severity\":\"medium\""));
	ops_free(text);
}

/* The same without steps. */
static void names_the_recording_as_base(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	open_idle_trace(&trace);
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "The device is idle for 98.9 % of the recording"));
	assert_null(strstr(text, "of the steps"));
	ops_free(text);
}

/* Ten kernels of 100 us are queued, then a call waits for them and 300 us of Python follow. */
static char *advise_waiting(const char *operator_name, const char *below, const char *wait)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 1400, done_us = 0;

		device_trace_step(&trace, step, at, 1399);
		for (int i = 0; i < 10; i++)
			done_us = device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + i * 11, 100);
		device_trace_host(&trace, "cpu_op", operator_name, at + 115, done_us + 3 - at - 115);
		device_trace_host(&trace, "cpu_op", below, at + 116, done_us + 2 - at - 116);
		device_trace_host(&trace, "cuda_runtime", wait, at + 117, done_us + 1 - at - 117);
	}
	return device_trace_advise(&trace);
}

/* .item() and print, nonzero and masks, .cpu(). */
static void finds_synchronising_calls(void **state)
{
	static const char *const calls[][3] = {{"aten::item", "aten::_local_scalar_dense", "cudaStreamSynchronize"},
	                                       {"aten::index", "aten::nonzero", "cudaThreadSynchronize"},
	                                       {"aten::_to_copy", "aten::copy_", "zeFenceHostSynchronize"},
	                                       {"aten::_to_copy", "aten::copy_", "cuMemcpyDtoH_v2_ptds"}};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		char *text = advise_waiting(calls[i][0], calls[i][1], calls[i][2]), stack[128];

		/* Steps of 1400 us, for 1000 of which the device works. */
		assert_near(finding_ms(text, "synchronising-calls"), 0.4, 0.02);
		assert_true(finding_ms(text, "launch-bound") < 0);
		snprintf(stack, sizeof(stack), "%s ← %s ← %s", calls[i][2], calls[i][1], calls[i][0]);
		assert_non_null(strstr(text, stack));
		ops_free(text);
	}
}

/* Of 42.5 GB. */
static char *advise_memory(double allocated_gb, double reserved_gb)
{
	struct device_trace trace;

	device_trace_open(&trace);
	device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", 10, 20);
	ops_buffer_printf(&trace.text,
	                  ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 1, "
	                  "\"ts\": 15, \"args\": {\"Device Type\": 1, \"Device Id\": 0, \"Addr\": 4096, \"Bytes\": 64, "
	                  "\"Total Allocated\": %.0f, \"Total Reserved\": %.0f}}", allocated_gb * 1e9, reserved_gb * 1e9);
	return device_trace_advise(&trace);
}

static void finds_memory_near_its_limit(void **state)
{
	char *text = advise_memory(39, 40);

	(void)state;
	assert_true(finding_ms(text, "memory-limit") >= 0);
	assert_null(strstr(text, "expandable_segments"));
	ops_free(text);
	/* In pieces. */
	text = advise_memory(15, 30);
	assert_true(finding_ms(text, "memory-limit") >= 0);
	assert_non_null(strstr(text, "expandable_segments"));
	ops_free(text);
	text = advise_memory(15, 18);
	assert_true(finding_ms(text, "memory-limit") < 0);
	ops_free(text);
}

/* A batch of 200 us is copied before the kernels of each step; from pageable memory the call waits, too. */
static void finds_copies(void **state)
{
	(void)state;
	for (int pinned = 0; pinned < 2; pinned++) {
		struct device_trace trace;
		char *text;

		device_trace_open(&trace);
		for (int step = 0; step < STEPS; step++) {
			double at = step * 1200;

			device_trace_step(&trace, step, at, 1199);
			device_trace_work(&trace, "aten::copy_", "", "gpu_memcpy",
			                  pinned ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)",
			                  "\"bytes\": 2000000", at, 200);
			for (int i = 0; i < 10; i++)
				device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 20 + i * 11, 99);
			device_trace_host(&trace, "cuda_runtime", "cudaStreamSynchronize", at + 135, 1063);
		}
		text = device_trace_advise(&trace);
		/* The kernels start 20 us after the copy would. */
		assert_near(finding_ms(text, pinned ? "copies-not-overlapped" : "pageable-copies"), 0.18, 0.01);
		assert_true(finding_ms(text, pinned ? "pageable-copies" : "copies-not-overlapped") < 0);
		assert_true(finding_ms(text, "device-idle") < 0);
		ops_free(text);
	}
}

/* A batch is decoded for 500 us while the device is idle. */
static void finds_host_work(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 1000;

		device_trace_step(&trace, step, at, 999);
		for (int i = 0; i < 10; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 500 + i * 11, 48);
	}
	text = device_trace_advise(&trace);
	assert_near(finding_ms(text, "device-idle"), 0.517, 0.01);
	assert_non_null(strstr(text, "during other work of the host"));
	ops_free(text);
}

/* The complete step is launched in its first half millisecond, and starts when the device is ready for it, 7.5 ms later. Only the
 * time before the first launch is caused by the host. */
static void blames_the_host_until_it_launches(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 18500;

		device_trace_step(&trace, step, at, 18400);
		trace.device_us = at + 8000;
		for (int i = 0; i < 20; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 100 + i * 20, 525);
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "device-idle") <= 0.1);
	assert_true(finding_ms(text, "launch-bound") <= 0.1);
	assert_true(finding_ms(text, "synchronising-calls") < 0);
	assert_non_null(strstr(text, "between kernels launched in time"));
	ops_free(text);
}

/* Each step launches ten kernels after a call that takes 6 ms. */
static char *advise_long_call(const char *call, bool launches)
{
	struct device_trace trace;
	char args[64];

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 8000;

		device_trace_step(&trace, step, at, 7900);
		device_trace_host(&trace, "cpu_op", "aten::to", at + 10, 6100);
		snprintf(args, sizeof(args), "\"correlation\": %d", launches ? 5000 + step : -1);
		device_trace_add(&trace, "cuda_runtime", call, 1, 1, at + 20, 6000, args);
		snprintf(args, sizeof(args), "\"correlation\": %d, \"device\": 0, \"stream\": 7", 5000 + step);
		if (launches)
			device_trace_add(&trace, "kernel", "first_kernel", 0, 7, at + 6025, 50, args);
		for (int i = 0; i < 10; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 6150 + i * 11, 150);
	}
	return device_trace_advise(&trace);
}

static double member_of(const char *text, const char *rule, const char *name)
{
	const char *at = strstr(text, rule);

	at = at ? strstr(at, name) : NULL;
	assert_non_null(at);
	return strtod(at + strlen(name) + strlen("\":"), NULL);
}

/* The first launch of a kernel loads its code. The gain is an upper bound, and so the end of its interval. */
static void names_calls_that_load_code(void **state)
{
	char *text = advise_long_call("hipLaunchKernel", true);

	(void)state;
	assert_near(finding_ms(text, "code-loading"), 6.2, 0.3);
	assert_non_null(strstr(text, "hipLaunchKernel, 6.00 ms"));
	assert_non_null(strstr(text, "1 call in each step loads code for the device"));
	assert_near(member_of(text, "code-loading", "predicted_gain_upper_percent"), member_of(text, "code-loading", "predicted_gain_percent"), 0);
	assert_true(member_of(text, "code-loading", "predicted_gain_lower_percent") < 50);
	assert_true(finding_ms(text, "device-idle") <= 0.1);
	ops_free(text);
	text = advise_long_call("cuModuleLoadData", false);
	assert_near(finding_ms(text, "code-loading"), 6.2, 0.3);
	assert_non_null(strstr(text, "cuModuleLoadData"));
	ops_free(text);
}

static void names_calls_that_block(void **state)
{
	static const char *const calls[] = {"hipMemcpyWithStream", "cudaMemcpy"};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		char *text = advise_long_call(calls[i], false), stack[64];

		snprintf(stack, sizeof(stack), "Most time is in %s ← aten::to", calls[i]);
		assert_true(finding_ms(text, "synchronising-calls") > 5.5);
		assert_non_null(strstr(text, stack));
		assert_true(finding_ms(text, "device-idle") <= 0.1);
		ops_free(text);
	}
}

/* A server whose scheduler waits for requests does not compute. */
static void names_waits_for_requests(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 10000;

		device_trace_step(&trace, step, at, 9999);
		device_trace_host(&trace, "python_function", "queue.py(154): get", at + 10, 8000);
		for (int i = 0; i < 10; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 8100 + i * 11, 150);
	}
	text = device_trace_advise(&trace);
	assert_near(finding_ms(text, "lock-in-step"), 8, 0.5);
	assert_true(finding_ms(text, "python-in-step") < 0);
	assert_true(finding_ms(text, "device-idle") <= 0.5);
	assert_non_null(strstr(text, "Waiting for a queue"));
	ops_free(text);
}

/* More than a step of work is always queued. */
static void leaves_busy_devices_alone(void **state)
{
	static const char *const rules[] = {"launch-bound", "device-idle", "synchronising-calls", "pageable-copies",
	                                    "copies-not-overlapped"};
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, step * 1000, 999);
		for (int i = 0; i < 20; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", step * 1000 + i * 15, 50);
	}
	text = device_trace_advise(&trace);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		assert_true(finding_ms(text, rules[i]) < 0);
	ops_free(text);
}

static void add_memory(struct device_trace *trace, double us, double gigabytes, double allocated, double reserved)
{
	ops_buffer_printf(&trace->text,
	                  ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 1, "
	                  "\"ts\": %.3f, \"args\": {\"Device Type\": 1, \"Device Id\": 0, \"Addr\": 4096, \"Bytes\": %.0f, "
	                  "\"Total Allocated\": %.0f, \"Total Reserved\": %.0f}}",
	                  us, gigabytes * 1e9, allocated * 1e9, reserved * 1e9);
}

/* Of 42.5 GB: memory in use at the start, a block that remains, and ten times a tensor that is allocated and freed. */
static double limit_ms(double first, double block, double tensor, double reserved)
{
	struct device_trace trace;
	char *text;
	double ms;

	device_trace_open(&trace);
	device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", 1, 900);
	add_memory(&trace, 2, block, first + block, reserved);
	for (int i = 0; i < 10; i++) {
		add_memory(&trace, 3 + 2 * i, tensor, first + block + tensor, reserved);
		add_memory(&trace, 4 + 2 * i, -tensor, first + block, reserved);
	}
	text = device_trace_advise(&trace);
	ms = finding_ms(text, "memory-limit");
	ops_free(text);
	return ms;
}

static void leaves_filled_caches_alone(void **state)
{
	(void)state;
	/* Of a server: weights, and a cache that was allocated before the recording or at its start. */
	assert_true(limit_ms(38, 0.001, 1, 39.5) < 0);
	assert_true(limit_ms(14, 24, 1, 39.5) < 0);
	/* Activations of half the memory, and a cache that leaves less than they need. */
	assert_true(limit_ms(18, 0.001, 21, 39.5) >= 0);
	assert_true(limit_ms(14, 24, 3, 41.5) >= 0);
	/* Blocks into which nothing fits. */
	assert_true(limit_ms(20, 0.001, 1, 39.5) >= 0);
}

/* Iterations of vLLM: six decodes of 1 ms, two prefills of 8 ms, and a decode of 8 ms, which is the only one that is not steady
 * among its kind. The other eight take 6 + 16 ms. */
static void judges_iterations_by_kind(void **state)
{
	static const char prefill[] = "execute_context_1(888)_generation_0(0)", decode[] = "execute_context_0(0)_generation_4(4)";
	static const struct {
		const char *name;
		double ms;
	} iterations[] = {{prefill, 8}, {decode, 1}, {decode, 1}, {decode, 1}, {prefill, 8}, {decode, 1}, {decode, 8}, {decode, 1}, {decode, 1}};
	struct device_trace trace;
	double at_us = 0;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (size_t i = 0; i < sizeof(iterations) / sizeof(iterations[0]); i++) {
		double us = 1000 * iterations[i].ms;

		device_trace_host(&trace, "user_annotation", iterations[i].name, at_us, us);
		device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at_us + 10, us - 100);
		at_us += us + 10;
	}
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "\"steady_steps\":8"));
	assert_near(strtod(strpbrk(strstr(text, "\"base\":{\"ms\""), "0123456789"), NULL), 22.0 / 8, 0.001);
	ops_free(text);
}

/* Ten calls of 100 us a step between two kernels, during which the device is idle. Returns the gain in milliseconds. */
static double allocating_ms(const char *call)
{
	struct device_trace trace;
	char *text;
	double ms;

	device_trace_open(&trace);
	add_memory(&trace, 1, 4096, 4096, 1 << 21);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 1200;

		device_trace_step(&trace, step, at, 1199);
		device_trace_work(&trace, "aten::add", "", "kernel", "add_kernel", "", at, 3);
		for (int i = 0; i < 10; i++)
			device_trace_host(&trace, "cuda_runtime", call, at + 50 + i * 100, 100);
		device_trace_work(&trace, "aten::add", "", "kernel", "add_kernel", "", at + 1100, 50);
	}
	text = device_trace_advise(&trace);
	ms = finding_ms(text, "allocation-churn");
	ops_free(text);
	return ms;
}

static void finds_allocations_of_each_runtime(void **state)
{
	static const char *const calls[] = {"cudaMalloc", "cudaFree", "cuMemCreate", "cuMemUnmap",
	                                    "hipMalloc", "hipFree", "hipMemCreate", "hipMemUnmap"};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_near(allocating_ms(calls[i]), 1, 0.001);
	assert_true(allocating_ms("hipGetDevice") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_launch_bound), cmocka_unit_test(judges_iterations_by_kind), cmocka_unit_test(finds_allocations_of_each_runtime),
		cmocka_unit_test(leaves_filled_caches_alone), cmocka_unit_test(finds_mostly_idle_devices), cmocka_unit_test(names_the_recording_as_base),
		cmocka_unit_test(finds_synchronising_calls),
		cmocka_unit_test(finds_copies), cmocka_unit_test(finds_memory_near_its_limit), cmocka_unit_test(finds_host_work),
		cmocka_unit_test(leaves_busy_devices_alone), cmocka_unit_test(blames_the_host_until_it_launches),
		cmocka_unit_test(names_calls_that_load_code), cmocka_unit_test(names_calls_that_block),
		cmocka_unit_test(names_waits_for_requests)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
