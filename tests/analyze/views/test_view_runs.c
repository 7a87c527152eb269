/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/views: several workers together, and differences between two traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"
#include "view_scene.h"

#define GLOO(ts, dur, id) VIEW_ROW("cpu_op", "gloo:all_reduce", 1, 2, ts, dur, "\"External id\":" #id)

static const char first[] = VIEW_STEP(1, 0, 100) VIEW_OP("a", 0, 40, 1) GLOO(30, 40, 2);
static const char second[] = VIEW_STEP(1, 0, 100) VIEW_OP("a", 0, 60, 1) GLOO(60, 10, 2);
static const char alone[] = VIEW_STEP(1, 0, 100) VIEW_OP("a", 0, 60, 1);

static struct ops_rank worker(const char *rows, const char *name)
{
	return (struct ops_rank){.trace = scene_read(rows, ""), .name = name};
}

static void release(const struct ops_rank *workers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ops_trace_unref((struct ops_trace *)workers[i].trace);
}

/* The shorter of both took the transfer; the other waited. */
static void waiting_ranks(void **state)
{
	const struct ops_rank workers[] = {worker(first, "n_0"), worker(second, "n_1")};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_distributed_json(workers, 2, &text, &size, NULL), OPS_OK);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	assert_has(text, "\"shown\":true,\"gpu_info\":null");
	assert_has(text, "\"1\":{\"n_0\":{\"data_transfer\":10,\"synchronizing\":30},\"n_1\":{\"data_transfer\":10,"
	                 "\"synchronizing\":0}}");
	assert_has(text, "\"late\":{\"1\":{\"n_0\":null,\"n_1\":{\"name\":\"gloo:all_reduce\",\"row\":2,\"start\":60,\"end\":70,\"wait\":30}}}");
	assert_has(text, "\"1\":{\"n_0\":{\"computation_only\":30,\"overlap\":10,\"communication_only\":30,\"other\":30},"
	                 "\"n_1\":{\"computation_only\":60,\"overlap\":0,\"communication_only\":10,\"other\":30}}");
	ops_free(text);
	release(workers, 2);
}

#define AT(ts, dur) VIEW_ROW("cpu_op", "gloo:all_reduce", 1, 2, ts, dur, "")
#define WAIT(transfer, synchronizing) "{\"data_transfer\":" #transfer ",\"synchronizing\":" #synchronizing "}"

/* Of equal names each is a key: the nth step of a name is the nth of the other worker. */
static void equal_names(void **state)
{
	static const char one[] = VIEW_STEP(1, 0, 100) AT(10, 40) VIEW_STEP(1, 200, 100) AT(210, 20) VIEW_STEP(1, 400, 100)
		AT(410, 50) VIEW_STEP(1, 600, 100) AT(610, 60);
	static const char other[] = VIEW_STEP(1, 0, 100) AT(10, 10) VIEW_STEP(1, 200, 100) AT(210, 30) VIEW_STEP(1, 400, 100)
		AT(410, 5) VIEW_STEP(2, 600, 100) AT(610, 6);
	static const char device[] = VIEW_CALL(20, 5, 1, 1) VIEW_KERNEL("k", 40, 10, 1);
	static const char head[] = "\"deviceProperties\":[{\"id\":0,\"name\":\"H\"}],";
	struct ops_buffer rows = {0};
	struct ops_rank workers[] = {worker(one, "n_0"), worker(other, "n_0")};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_distributed_json(workers, 2, &text, &size, NULL), OPS_OK);
	assert_has(text, "\"workers\":[\"n_0\",\"n_0 (2)\"]");
	assert_has(text, "\"wait\":{\"all\":{\"n_0\":{\"data_transfer\":10,\"synchronizing\":32},\"n_0 (2)\":");
	assert_has(text, "\"1\":{\"n_0\":" WAIT(10, 30) ",\"n_0 (2)\":" WAIT(10, 0) "},");
	assert_has(text, "\"1 (2)\":{\"n_0\":" WAIT(20, 0) ",\"n_0 (2)\":" WAIT(20, 10) "},");
	assert_has(text, "\"1 (3)\":{\"n_0\":" WAIT(5, 45) ",\"n_0 (2)\":" WAIT(5, 0) "},");
	assert_has(text, "\"1 (4)\":{\"n_0\":" WAIT(6, 54) "}}");
	assert_has(text, "\"ops\":{\"n_0\":[{");
	assert_has(text, "}],\"n_0 (2)\":[{");
	ops_free(text);
	assert_int_equal(ops_run_json(NULL, workers, 2, OPS_RULES_OPSTROBE, &text, &size, NULL), OPS_OK);
	assert_has(text, "\"latency_per_step\":{\"1\":40,\"1 (2)\":20,\"1 (3)\":50,\"1 (4)\":60}");
	ops_free(text);
	release(workers, 2);
	ops_buffer_append_text(&rows, one);
	ops_buffer_append_text(&rows, device);
	ops_buffer_append(&rows, "", 1);
	workers[0] = (struct ops_rank){.trace = scene_read(rows.bytes, head), .name = "n"};
	workers[1] = (struct ops_rank){.trace = scene_read(rows.bytes, head), .name = "n_0"};
	assert_int_equal(ops_distributed_json(workers, 2, &text, &size, NULL), OPS_OK);
	assert_has(text, "\"gpu_info\":{\"n\":{\"Process 0\":{\"GPU0\":{\"Name\":\"H\",");
	assert_has(text, "\"Process 0 (2)\":{\"GPU0\":{\"Name\":\"H\",");
	ops_free(text);
	ops_buffer_release(&rows);
	release(workers, 2);
}

static void workers_without_communication(void **state)
{
	const struct ops_rank workers[] = {worker(first, "n_0"), worker(alone, "n_1")};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_distributed_json(workers, 2, &text, &size, NULL), OPS_OK);
	assert_string_equal(text, "null");
	ops_free(text);
	assert_int_equal(ops_run_json(NULL, workers, 2, OPS_RULES_OPSTROBE, &text, &size, NULL), OPS_OK);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	assert_has(text, "{\"traces\":[{\"worker\":\"n_0\",\"span\":null,");
	assert_has(text, "\"distributed\":null}");
	ops_free(text);
	release(workers, 2);
}

#define LOADER(ts, dur) VIEW_ROW("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 1, 1, ts, dur, "")

static const char base[] = VIEW_STEP(1, 0, 100) LOADER(0, 20) VIEW_OP("a", 30, 10, 1) VIEW_OP("b", 50, 10, 2)
	VIEW_STEP(2, 100, 110) LOADER(100, 20) VIEW_OP("a", 130, 10, 3);
static const char slower[] = VIEW_STEP(1, 0, 200) LOADER(0, 20) VIEW_OP("a", 30, 110, 1)
	VIEW_STEP(2, 200, 210) LOADER(200, 20) VIEW_OP("c", 230, 10, 3);

static void test_pairs(void **state)
{
	struct ops_rank traces[] = {worker(base, ""), worker(slower, "")};
	struct ops_diff_options options = {.gate_ratio = 0.5};
	struct ops_diff_verdict verdict;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	assert_has(text, "\"nodes\":5,");
	assert_has(text, "\"path\":\"0-1\",\"left\":{\"name\":\"(several)\",\"host_duration\":20,\"device_duration\":0,"
	                 "\"total_duration\":20,\"distinct_ops\":2},\"right\":{\"name\":\"a\",\"host_duration\":110,");
	assert_has(text, "{\"name\":\"b\",\"left\":{\"calls\":1,\"host_total\":10,\"host_self\":10,\"device_total\":0,"
	                 "\"device_self\":0,\"per_step\":{\"calls\":0.5,\"host_total\":5,\"host_self\":5,\"device_total\":0,"
	                 "\"device_self\":0}},\"right\":null}");
	assert_true(verdict.regression && !verdict.undecided);
	assert_float_equal((float)verdict.change_ratio, 410.0f / 210 - 1, 1e-6f);
	ops_free(text);
	options.gate_ratio = 1;
	options.format = OPS_FORMAT_MARKDOWN;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_false(verdict.regression);
	assert_has(text, "| a | 10.0 µs | 55.0 µs | +450 % |");
	assert_has(text, "| c | 0 | 5.00 µs | new |");
	ops_free(text);
	options.format = OPS_FORMAT_CSV;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_has(text, "view,name,base_us,new_us,change_percent,base_total_us,new_total_us\nmedian step,total,105,205,95.24,210,410\n");
	assert_has(text, "operator host self,a,10,55,450,20,110\n");
	assert_has(text, "operator host self,c,0,5,,0,10\n");
	ops_free(text);
	release(traces, 2);
}

/* Steps of 100 us, each with an operator of 20 us whose kernel takes 30. */
static struct ops_rank steps_of_one_kernel(int count)
{
	struct ops_buffer rows = {0};
	struct ops_rank made;

	for (int i = 0; i < count; i++)
		ops_buffer_printf(&rows,
		                  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,"
		                  "\"dur\":100},"
		                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":20,"
		                  "\"args\":{\"External id\":%d}},"
		                  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%d,"
		                  "\"dur\":5,\"args\":{\"External id\":%d,\"correlation\":%d}},"
		                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":30,"
		                  "\"args\":{\"device\":0,\"correlation\":%d}},",
		                  i, i * 100, i * 100 + 10, i + 1, i * 100 + 15, i + 1, i + 1, i * 100 + 40, i + 1);
	ops_buffer_append(&rows, "", 1);
	made = worker(rows.bytes, "");
	ops_buffer_release(&rows);
	return made;
}

/* The same step two and six times: nothing has changed. */
static void diffs_are_per_step(void **state)
{
	struct ops_rank traces[] = {steps_of_one_kernel(2), steps_of_one_kernel(6)};
	struct ops_diff_options options = {.format = OPS_FORMAT_CSV};
	struct ops_diff_verdict verdict;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_false(verdict.regression || verdict.undecided);
	assert_has(text, "operator host self,mm,15,15,0,30,90\n");
	assert_has(text, "operator device self,mm,30,30,0,60,180\n");
	assert_has(text, "kernel,gemm,30,30,0,60,180\n");
	ops_free(text);
	options.format = OPS_FORMAT_TEXT;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_has(text, "Times below are per step.\n");
	assert_has(text, "all steps: 200 µs -> 600 µs\n");
	ops_free(text);
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, NULL, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, "\"kernels\":[{\"name\":\"gemm\",\"left\":{\"calls\":2,\"total\":60,\"per_step\":{\"calls\":1,\"total\":30}},"
	                 "\"right\":{\"calls\":6,\"total\":180,\"per_step\":{\"calls\":1,\"total\":30}}}]");
	ops_free(text);
	release(traces, 2);
}

static void one_step_gives_no_verdict(void **state)
{
	static const char longer[] = VIEW_STEP(1, 0, 300) VIEW_OP("mm", 10, 250, 1);
	struct ops_rank traces[] = {steps_of_one_kernel(1), worker(longer, "")};
	struct ops_diff_options options = {.format = OPS_FORMAT_TEXT};
	struct ops_diff_verdict verdict;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, &verdict, NULL), OPS_OK);
	assert_true(verdict.undecided && !verdict.regression);
	assert_has(text, "no verdict: one step does not show the noise from step to step\n");
	assert_has_not(text, "no regression");
	ops_free(text);
	release(traces, 2);
}

/* Names that would be an image, a mention, and further cells. */
static void markdown_of_diffs_is_inert(void **state)
{
	static const char rows[] = VIEW_STEP(1, 0, 100) VIEW_OP("<img src=x> @all ![i](http://h/p)|", 10, 20, 1);
	static const char longer[] = VIEW_STEP(1, 0, 100) VIEW_OP("<img src=x> @all ![i](http://h/p)|", 10, 40, 1);
	struct ops_rank traces[] = {worker(rows, ""), worker(longer, "")};
	struct ops_diff_options options = {.format = OPS_FORMAT_MARKDOWN};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, "| `<img src=x> @all ![i](http://h/p)\\|` | 20.0 µs | 40.0 µs | +100 % |");
	ops_free(text);
	release(traces, 2);
}

/* A side without any nodes, next to one with modules or loaders. */
static void diffs_with_nothing(void **state)
{
	static const char nothing[] = VIEW_STEP(1, 0, 100);
	struct ops_rank traces[] = {worker(base, ""), worker(nothing, "")};
	char *text;
	size_t size;

	(void)state;
	for (int side = 0; side < 2; side++) {
		assert_int_equal(ops_diff(traces[side].trace, traces[!side].trace, NULL, &text, &size, NULL, NULL), OPS_OK);
		assert_has(text, side ? "\"left\":{\"name\":\"(none)\"" : "\"right\":{\"name\":\"(none)\"");
		ops_free(text);
	}
	release(traces, 2);
}

/* One step of ten that takes ten times as long moves neither the median nor its noise. */
static void outliers_move_no_verdict(void **state)
{
	struct ops_buffer rows[2] = {{0}};
	struct ops_rank traces[2];
	struct ops_diff_verdict verdict;
	char *text;
	size_t size;

	(void)state;
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 10; i++)
			ops_buffer_printf(&rows[side], "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,"
			                               "\"tid\":1,\"ts\":%d,\"dur\":%d},", i, i * 2000,
			                  side == 0 && i == 4 ? 1000 : 100 + i % 3 + 10 * side);
		ops_buffer_append(&rows[side], "", 1);
		traces[side] = worker(rows[side].bytes, "");
	}
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, NULL, &text, &size, &verdict, NULL), OPS_OK);
	assert_true(verdict.regression);
	assert_float_equal((float)verdict.change_ratio, 10.0f / 101, 1e-6f);
	assert_true(verdict.noise_ratio < 0.02);
	ops_free(text);
	release(traces, 2);
	ops_buffer_release(&rows[0]);
	ops_buffer_release(&rows[1]);
}

#define MODULE(name, ts, dur, id, parent)                                                          \
	VIEW_ROW("python_function", "nn.Module: " name, 1, 1, ts, dur,                                 \
	         "\"Python id\":" #id ",\"Python parent id\":" #parent ",\"Python module id\":0")
#define ENGINE(name, ts, dur) VIEW_ROW("cpu_op", "autograd::engine::evaluate_function: " name, 1, 2, ts, dur, "")
#define FLOW(id, from, to)                                                                         \
	"{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":1,\"ts\":" #from "},"     \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":2,\"ts\":" #to "},"

/* Net has a and a Linear with b; then the loss, without a module, and the backward pass on another thread. */
static const char trained[] = VIEW_STEP(1, 0, 200) MODULE("Net", 10, 60, 1, 0) MODULE("Linear", 30, 30, 2, 1)
	VIEW_OP("a", 11, 10, 1) VIEW_OP("b", 40, 10, 2) VIEW_OP("loss", 80, 10, 3)
	ENGINE("Loss", 100, 5) ENGINE("B", 110, 5) ENGINE("torch::autograd::AccumulateGrad", 120, 5) ENGINE("A", 140, 10)
	VIEW_ROW("cpu_op", "mul", 1, 2, 142, 4, "") FLOW(1, 11, 140) FLOW(2, 40, 110) FLOW(3, 80, 100);

/* The autograd thread takes part, by module. */
static void backward_of_modules(void **state)
{
	struct ops_rank traces[] = {worker(trained, ""), worker(trained, "")};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, NULL, &text, &size, NULL, NULL), OPS_OK);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	/* All of it; Net with a and Linear; the loss; Net.backward with Linear.backward and A. */
	assert_has(text, "\"nodes\":8,");
	assert_has(text, "\"path\":\"0-2\",\"left\":{\"name\":\"nn.Module: Net.backward\",\"host_duration\":40,");
	assert_has(text, "{\"name\":\"mul\",\"left\":{\"calls\":1,\"host_total\":4,");
	ops_free(text);
	release(traces, 2);
}

/* Without modules, too, the backward pass is compared; and the time of loading, whichever class loads. */
static void test_all_threads(void **state)
{
	static const char rows[] = VIEW_STEP(1, 0, 100) LOADER(0, 20) VIEW_OP("a", 30, 10, 1) ENGINE("A", 50, 10)
		VIEW_ROW("cpu_op", "mul", 1, 2, 52, 4, "") VIEW_ROW("cpu_op", "late", 1, 2, 120, 4, "");
	static const char other[] = VIEW_STEP(1, 0, 100)
		VIEW_ROW("user_annotation", "enumerate(DataLoader)#_Other.__next__", 1, 1, 0, 5, "") VIEW_OP("a", 30, 10, 1)
		ENGINE("A", 50, 30) VIEW_ROW("cpu_op", "mul", 1, 2, 52, 24, "");
	struct ops_rank traces[] = {worker(rows, ""), worker(other, "")};
	struct ops_diff_options options = {.format = OPS_FORMAT_MARKDOWN};
	const char *all;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, NULL, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, "\"dataloader\":{\"left\":20,\"right\":5}");
	all = strstr(text, ",\"operators\":[");
	assert_non_null(all);
	assert_has(all, "{\"name\":\"mul\",\"left\":{\"calls\":1,\"host_total\":4,\"host_self\":4,\"device_total\":0,"
	                "\"device_self\":0,\"per_step\":{\"calls\":1,\"host_total\":4,");
	assert_has_not(all, "\"late\""); /* after the step */
	text[all - text] = 0;
	assert_has_not(text, "\"mul\""); /* the plugin's table is the main thread's */
	ops_free(text);
	assert_int_equal(ops_diff(traces[0].trace, traces[1].trace, &options, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, "| mul | 4.00 µs | 24.0 µs | +500 % |");
	assert_has(text, "| data loading | 20.0 µs | 5.00 µs | -75.0 % |");
	ops_free(text);
	release(traces, 2);
}

static void work(void *context)
{
	const struct ops_rank *workers = context;
	struct ops_diff_options options = {.format = OPS_FORMAT_TEXT};
	enum ops_code code;
	char *text = NULL;
	size_t size;

	code = ops_run_json(NULL, workers, 2, OPS_RULES_OPSTROBE, &text, &size, NULL);
	assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
	ops_free(text);
	text = NULL;
	code = ops_diff(workers[0].trace, workers[1].trace, NULL, &text, &size, NULL, NULL);
	assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
	ops_free(text);
	text = NULL;
	code = ops_diff(workers[0].trace, workers[1].trace, &options, &text, &size, NULL, NULL);
	assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
	ops_free(text);
}

static void survives_failures(void **state)
{
	struct ops_rank workers[] = {worker(first, "n_0"), worker(second, "n_1")};
	struct ops_rank modules[] = {worker(trained, "n_0"), worker(trained, "n_1")};

	(void)state;
	assert_true(fail_each(work, workers) > 100);
	assert_true(fail_each(work, modules) > 100);
	release(workers, 2);
	release(modules, 2);
}

static enum ops_code take(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	static const char *const rows[] = {first, second};

	(void)error;
	*ret_trace = i == *(const size_t *)context ? NULL : scene_read(rows[i], "");
	return OPS_OK;
}

/* One trace at a time gives the same as all at once; a file that is not a trace counts as missing. */
static void traces_from_a_source(void **state)
{
	const struct ops_rank workers[] = {worker(first, "n_0"), worker(second, "n_1")};
	const struct ops_rank empty[] = {{.name = "n_0"}, {.name = "n_1"}};
	size_t none = 2, size;
	const struct ops_trace_source source = {take, &none};
	char *held, *taken;

	(void)state;
	assert_int_equal(ops_run_json(NULL, workers, 2, OPS_RULES_OPSTROBE, &held, &size, NULL), OPS_OK);
	assert_int_equal(ops_run_json(&source, empty, 2, OPS_RULES_OPSTROBE, &taken, &size, NULL), OPS_OK);
	assert_string_equal(held, taken);
	ops_free(held);
	ops_free(taken);
	none = 0;
	assert_int_equal(ops_run_json(&source, empty, 2, OPS_RULES_OPSTROBE, &taken, &size, NULL), OPS_OK);
	assert_has(taken, "{\"traces\":[{\"worker\":\"n_1\"");
	assert_has_not(taken, "n_0");
	ops_free(taken);
	release(workers, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_ranks),
		cmocka_unit_test(equal_names),
		cmocka_unit_test(workers_without_communication),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(diffs_are_per_step),
		cmocka_unit_test(one_step_gives_no_verdict),
		cmocka_unit_test(diffs_with_nothing),
		cmocka_unit_test(markdown_of_diffs_is_inert),
		cmocka_unit_test(outliers_move_no_verdict),
		cmocka_unit_test(backward_of_modules),
		cmocka_unit_test(test_all_threads),
		cmocka_unit_test(traces_from_a_source),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
