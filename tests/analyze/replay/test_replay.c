/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/replay through `whatif`: small programs whose replays were calculated by hand. Times are microseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../asking.h"

#define CPU(name, tid, ts, dur) ROW("cpu_op", name, tid, ts, dur, "")
#define CALL(name, ts, dur, correlation) ROW("cuda_runtime", name, 1, ts, dur, "\"correlation\":" #correlation)
#define COMM(name, ts, dur, correlation) \
	ROW("kernel", name, 20, ts, dur, "\"device\":0,\"stream\":20,\"correlation\":" #correlation)

#define COLUMNS \
	"{\"table\":{\"columns\":[\"change\",\"events\",\"step_us\",\"saved_us\",\"saved_low_us\",\"saved_high_us\"," \
	"\"saved_percent\",\"replay_error_percent\",\"note\"],\"rows\":["
/* The rows of every answer: one step as measured, and replayed exactly. */
#define EXACT(us) \
	COLUMNS "[\"measured\",null," #us ",null,null,null,null,null,\"median of 1 step\"]," \
	"[\"replayed\",null," #us ",null,null,null,null,0,\"differs from the measured steps by 0 %\"]"
#define SAVED(change, events, step, saved, percent) \
	",[\"" change "\"," #events "," #step "," #saved "," #saved "," #saved "," #percent ",null,null]"
#define NOTHING(change, events, step, note) ",[\"" change "\"," #events "," #step ",0,0,0,0,null,\"" note "\"]"
#define END "]}}"

static void whatif(const char *rows, const char *args, const char *answer)
{
	struct question question = {.id = "whatif", .args = args, .ranks = {{.trace = asking_trace(rows), .name = ""}}, .count = 1};

	asking_gives(question, answer);
	asking_done(&question);
}

/* --- one thread --------------------------------------------------------------------------------------------------------- */

/* 100: Python 10, mm 30 of which 10 in a child, Python 20, relu 40. */
#define SERIAL STEP(1, 0, 100) "," CPU("aten::linear", 1, 10, 30) "," CPU("aten::addmm", 1, 15, 10) "," CPU("aten::relu", 1, 60, 40)

static void test_scales_and_drops_on_one_thread(void **state)
{
	(void)state;
	whatif(SERIAL, "{\"scale\": [\"addmm=0.5\", \"linear=2\", \"^aten::=1\"], \"drop\": \"relu\"}",
	       EXACT(100) SAVED("'addmm' × 0.5", 1, 95, 5, 5) SAVED("'linear' × 2", 1, 130, -30, -30)
	       NOTHING("'^aten::' × 1", 3, 100, "no effect on the steps: other work hides it, or it is outside of them")
	       SAVED("without 'relu'", 1, 60, 40, 40)
	       /* linear 40 without its child, whose 10 become 2 * 0.5 * 10 */
	       SAVED("all of these", null, 80, 20, 20) END);
}

static void test_each_step_counts(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 100) "," STEP(2, 100, 200) "," STEP(3, 300, 100) "," CPU("slow", 1, 110, 150) "," CPU("slow", 1, 310, 50),
	       "{\"drop\": \"slow\"}",
	       COLUMNS "[\"measured\",null,100,null,null,null,null,null,\"median of 3 steps\"],"
	       "[\"replayed\",null,100,null,null,null,null,0,\"differs from the measured steps by 0 %\"],"
	       /* steps of 100, 50 and 50: 0, 150 and 50 less; 5 % and 95 % between them */
	       "[\"without 'slow'\",2,50,50,5,140,50,null,null]" END);
}

static void test_drops_a_line(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 100) ","
	       ROW("cpu_op", "aten::sum", 1, 10, 20, "\"Call stack\":\"train.py(8): step;train.py(5): <module>\"") ","
	       ROW("cpu_op", "aten::sum", 1, 40, 30, "\"Call stack\":\"train.py(9): step;train.py(5): <module>\""),
	       "{\"drop\": [\"train.py:8\", \"rain.py:9\", \"train.py:7\"]}",
	       EXACT(100) SAVED("without 'train.py:8'", 1, 80, 20, 20)
	       NOTHING("without 'rain.py:9'", 0, 100, "no such event in this trace")
	       NOTHING("without 'train.py:7'", 0, 100, "no such event in this trace") SAVED("all of these", null, 80, 20, 20) END);
}

/* Functions without modules, by their names but not by their files; modules by their paths. */
static void test_names_functions_and_modules(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 100) "," ROW("python_function", "load.py(5): decode", 1, 10, 20, "\"Python id\":1,\"Python parent id\":null"),
	       "{\"drop\": [\"decode\", \"load\"]}",
	       EXACT(100) SAVED("without 'decode'", 1, 80, 20, 20) NOTHING("without 'load'", 0, 100, "no such event in this trace")
	       SAVED("all of these", null, 80, 20, 20) END);
	whatif(STEP(1, 0, 100) "," ROW("user_annotation", "[pl][module]torch.nn.modules.linear.Linear: net.0", 1, 10, 20, ""),
	       "{\"drop\": \"^net.0$\"}", EXACT(100) SAVED("without '^net.0$'", 1, 80, 20, 20) END);
}

/* --- a device ------------------------------------------------------------------------------------------------------------ */

/* Two kernels of 40 behind each other, for the second of which the host waits:
 *
 *     host    0 [launch 1] 10 [launch 2] 20 [synchronise       ] 100 [Python] 110
 *     stream        5 [kernel 40    ] 45 50 [kernel 40   ] 90
 */
#define DEVICE \
	STEP(1, 0, 110) "," CPU("aten::a", 1, 0, 10) "," CALL("cudaLaunchKernel", 2, 5, 1) "," CPU("aten::b", 1, 10, 10) "," \
	CALL("cudaLaunchKernel", 12, 5, 2) "," CALL("cudaDeviceSynchronize", 20, 80, 3) "," KERNEL("gemm_a", 5, 40, 1, "") "," \
	KERNEL("gemm_b", 50, 40, 2, "")

static void test_kernels_run_after_their_launch_and_each_other(void **state)
{
	(void)state;
	/* gemm_a from 5 to 25; gemm_b 5 behind it, which nothing explains and stays: 30 to 70; 10 to return, 10 of Python. */
	whatif(DEVICE, "{\"scale\": \"gemm_a=0.5\"}", EXACT(110) SAVED("'gemm_a' × 0.5", 1, 90, 20, 18.18) END);
	/* Its operator with its launch: the host is 5 earlier, the kernel starts 3 after its call, at 1 + 3 = 4, to 24. */
	whatif(DEVICE, "{\"scale\": \"aten::a=0.5\"}", EXACT(110) SAVED("'aten::a' × 0.5", 1, 89, 21, 19.09) END);
}

static void test_without_a_sync_the_step_ends_with_the_device(void **state)
{
	(void)state;
	/* The call takes the 10 that it takes after the kernel's end; the host is done at 40, the device at 90. */
	whatif(DEVICE, "{\"remove_syncs\": true}", EXACT(110) SAVED("without synchronisations", 1, 90, 20, 18.18) END);
	whatif(SERIAL, "{\"remove_syncs\": true}",
	       EXACT(100) NOTHING("without synchronisations", 0, 100, "no synchronisation in this trace") END);
}

static void test_without_launches_the_host_waits_at_once(void **state)
{
	(void)state;
	/* Both operators take no time; gemm_a starts 3 after 0, when its launch would be: 3 to 43, gemm_b 48 to 88. */
	whatif(DEVICE, "{\"no_launch_overhead\": true}", EXACT(110) SAVED("without launch overhead", 2, 108, 2, 1.82) END);
	whatif(SERIAL, "{\"no_launch_overhead\": true}",
	       EXACT(100) NOTHING("without launch overhead", 0, 100, "no work is launched on a device in this trace") END);
}

/* A collective on stream 20 between two kernels, which waits for the first, and the second for it. */
static void test_overlaps_a_collective(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 210) "," CALL("cudaLaunchKernel", 0, 5, 1) "," CALL("cudaLaunchKernel", 5, 5, 2) ","
	       CALL("cudaLaunchKernel", 10, 5, 3) "," CALL("cudaDeviceSynchronize", 20, 190, 4) "," KERNEL("gemm", 10, 40, 1, "") ","
	       COMM("ncclDevKernel_AllReduce_Sum", 52, 100, 2) "," KERNEL("gemm", 155, 50, 3, ""),
	       "{\"overlap\": [\"all_reduce\", \"broadcast\"]}",
	       /* gemm 10 to 50, the collective 52 to 152, and during it the second gemm 55 to 105: the device is done at 152. */
	       EXACT(210) SAVED("'all_reduce' overlapped", 1, 152, 58, 27.62)
	       NOTHING("'broadcast' overlapped", 0, 210, "no such communication in this trace") SAVED("all of these", null, 152, 58, 27.62) END);
}

/* --- threads -------------------------------------------------------------------------------------------------------------- */

/* The backward pass runs on another thread, from 20 to 80, while the step waits until then. */
static void test_waits_for_the_thread_of_the_backward_pass(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 100) "," CPU("aten::mse_loss", 1, 0, 15) "," CPU("aten::step", 1, 85, 15) ","
	       CPU("autograd::engine::evaluate_function: MseLossBackward0", 2, 20, 30) ","
	       CPU("autograd::engine::evaluate_function: MmBackward0", 2, 52, 28),
	       "{\"scale\": \"MmBackward0=0.5\", \"drop\": \"mse_loss\"}",
	       EXACT(100) SAVED("'MmBackward0' × 0.5", 1, 86, 14, 14) SAVED("without 'mse_loss'", 1, 85, 15, 15)
	       SAVED("all of these", null, 71, 29, 29) END);
}

/* Gloo's thread: issued at 10, from 12 to 62; the step computes until 40, then waits. */
static void test_waits_for_a_collective_on_the_host(void **state)
{
	(void)state;
	whatif(STEP(1, 0, 80) "," CPU("c10d::allreduce_", 1, 10, 5) "," CPU("aten::mm", 1, 15, 25) ","
	       ROW("user_annotation", "gloo:all_reduce", 2, 12, 50, ""),
	       "{\"scale\": \"communication=0.5\", \"drop\": \"aten::mm\", \"overlap\": \"allreduce\"}",
	       /* overlapped: 10 + 5 + 25 and the 18 of Python that follow the wait, but the collective ends at 62 */
	       EXACT(80) SAVED("'allreduce' overlapped", 1, 62, 18, 22.5) SAVED("'communication' × 0.5", 1, 58, 22, 27.5)
	       NOTHING("without 'aten::mm'", 1, 80, "no effect on the steps: other work hides it, or it is outside of them")
	       /* 33 of the host; the collective 12 to 37 */
	       SAVED("all of these", null, 37, 43, 53.75) END);
}

/* --- loaders -------------------------------------------------------------------------------------------------------------- */

#define SINGLE(ts, dur) ROW("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, ts, dur, "")
#define LOADED(number, ts) STEP(number, ts, 10000) "," SINGLE(ts, 8000)

/* 8 ms of loading and 2 ms of work: two workers make a batch each 4 ms, five hide behind the work. 0.5 ms to hand it over. */
static void test_other_workers(void **state)
{
	const char *rows = LOADED(1, 0) "," LOADED(2, 10000) "," LOADED(3, 20000) "," LOADED(4, 30000) "," LOADED(5, 40000);

	(void)state;
	whatif(rows, "{\"workers\": 2}",
	       COLUMNS "[\"measured\",null,10000,null,null,null,null,null,\"median of 5 steps\"],"
	       "[\"replayed\",null,10000,null,null,null,null,0,\"differs from the measured steps by 0 %\"],"
	       /* ready at 4000, 8000, …, taken 500 later; steps of 6500 (the first has nothing before it) and 4000 */
	       "[\"2 loader workers\",5,4000,6000,4000,6000,60,null,null]" END);
	whatif(rows, "{\"workers\": 5}",
	       COLUMNS "[\"measured\",null,10000,null,null,null,null,null,\"median of 5 steps\"],"
	       "[\"replayed\",null,10000,null,null,null,null,0,\"differs from the measured steps by 0 %\"],"
	       "[\"5 loader workers\",5,2500,7500,6220,7500,75,null,null]" END);
	whatif(SERIAL, "{\"workers\": 2}", EXACT(100) NOTHING("2 loader workers", 0, 100, "no data loader in this trace") END);
}

/* --- what is refused ------------------------------------------------------------------------------------------------------ */

static void test_refuses(void **state)
{
	static const struct {
		const char *args, *message;
	} cases[] = {
		{"{\"scale\": \"gemm\"}", "must be PATTERN=FACTOR"},
		{"{\"scale\": \"gemm=fast\"}", "must be PATTERN=FACTOR"},
		{"{\"scale\": \"gemm=-1\"}", "must be PATTERN=FACTOR"},
		{"{\"scale\": \"=1\"}", "must be PATTERN=FACTOR"},
		{"{\"scale\": 3}", "must be a list of texts"},
		{"{\"drop\": \"(\"}", "regular expression"},
		{"{\"drop\": \"\"}", "is empty"},
		{"{\"workers\": 0}", "must be from 1 to 1024"},
		{"{\"workers\": \"all\"}", "must be a whole number"},
		{"{\"remove_syncs\": 1}", "must be true or false"},
		{"{\"drop\": [\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}", "at most 16 changes"},
	};
	struct question question = {.id = "whatif", .ranks = {{.trace = asking_trace(SERIAL), .name = ""}}, .count = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		question.args = cases[i].args;
		asking_fails(question, OPS_INVALID, cases[i].message);
	}
	asking_done(&question);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scales_and_drops_on_one_thread),
		cmocka_unit_test(test_each_step_counts),
		cmocka_unit_test(test_drops_a_line),
		cmocka_unit_test(test_names_functions_and_modules),
		cmocka_unit_test(test_kernels_run_after_their_launch_and_each_other),
		cmocka_unit_test(test_without_a_sync_the_step_ends_with_the_device),
		cmocka_unit_test(test_without_launches_the_host_waits_at_once),
		cmocka_unit_test(test_overlaps_a_collective),
		cmocka_unit_test(test_waits_for_the_thread_of_the_backward_pass),
		cmocka_unit_test(test_waits_for_a_collective_on_the_host),
		cmocka_unit_test(test_other_workers),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
