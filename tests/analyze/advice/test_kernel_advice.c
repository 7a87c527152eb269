/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice on kernels: the data types of a busy device, and how well it is used.
 */
#include "device_trace.h"

#include "../../base/failing.h"
#include "asking.h"

#define STEPS 4
#define FULL "\"blocks per SM\": 4.0, \"grid\": [432, 1, 1], \"block\": [256, 1, 1]"
#define TENTH "\"blocks per SM\": 0.1, \"grid\": [11, 1, 1], \"block\": [256, 1, 1]"

/* Steps of 1 ms that are filled with `count` kernels of these names, one after the other. */
static void fill(struct device_trace *trace, const char *const *kernels, int count, const char *args)
{
	device_trace_open(trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(trace, step, step * 1000, 999);
		for (int i = 0; i < count; i++)
			device_trace_work(trace, "aten::op", "", "kernel", kernels[i], args, step * 1000 + i * 11,
			                  1000.0 / count);
	}
}

static char *advise(const char *const *kernels, int count, const char *args)
{
	struct device_trace trace;

	fill(&trace, kernels, count, args);
	return device_trace_advise(&trace);
}

static void finds_products_in_float32(void **state)
{
	char *text = advise((const char *const[]){"ampere_sgemm_128x64_nn", "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_nn"}, 2,
	                    FULL);

	(void)state;
	/* Three quarters of 500 us; those on tensor cores are well. */
	assert_true(finding_ms(text, "float32-matmul") > 0.36 && finding_ms(text, "float32-matmul") < 0.376);
	assert_non_null(strstr(text, "TF32"));
	assert_true(finding_ms(text, "low-occupancy") < 0);
	assert_true(finding_ms(text, "unfused-pointwise") < 0);
	ops_free(text);
}

static void finds_elementwise_kernels(void **state)
{
	static const char add[] = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>";
	char *text = advise((const char *const[]){"gemm_tensorop", add, add, add}, 4, FULL);

	(void)state;
	/* Two of three. */
	assert_true(finding_ms(text, "unfused-pointwise") > 0.49 && finding_ms(text, "unfused-pointwise") < 0.502);
	ops_free(text);
}

static double chain_ms(const char *const *args, const char *const *grids)
{
	struct device_trace trace;
	char *text;
	double ms;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, step * 1000, 999);
		for (int i = 0; i < 4; i++)
			device_trace_work(&trace, "aten::op", args[i], "kernel",
			                  i ? "void at::native::vectorized_elementwise_kernel<4, f>" : "gemm_tensorop", grids[i],
			                  step * 1000 + i * 11, 250);
	}
	text = device_trace_advise(&trace);
	ms = finding_ms(text, "unfused-pointwise");
	ops_free(text);
	return ms;
}

#define SHAPES(shapes) "\"Input Dims\": [" shapes "], \"Input type\": [\"float\", \"float\"]"
#define GRID(x) "\"grid\": [" #x ", 1, 1], \"block\": [256, 1, 1]"

/* Vectorized kernels take a smaller grid for the same elements. */
static void chains_by_elements(void **state)
{
	static const char *const grids[] = {GRID(9), GRID(432), GRID(108), GRID(216)};
	static const char *const same[] = {"", SHAPES("[512, 512], [512, 512]"), SHAPES("[512, 512], []"),
	                                   SHAPES("[512, 1], [1, 512]")};
	static const char *const different[] = {"", SHAPES("[512, 512], [512, 512]"), SHAPES("[256, 512], []"),
	                                        SHAPES("[512, 1], [1, 128]")};
	static const char *const unknown[] = {"", "", "", ""};
	static const char *const alike[] = {GRID(9), GRID(432), GRID(432), GRID(432)};

	(void)state;
	/* Two of three kernels of 250 us. */
	assert_true(chain_ms(same, grids) > 0.49 && chain_ms(same, grids) < 0.502);
	assert_true(chain_ms(different, alike) < 0);
	assert_true(chain_ms(unknown, alike) > 0.49);
	assert_true(chain_ms(unknown, grids) < 0);
}

static void finds_low_occupancy(void **state)
{
	char *text = advise((const char *const[]){"gemm_tensorop", "gemm_tensorop", "gemm_tensorop"}, 3, TENTH);

	(void)state;
	assert_true(finding_ms(text, "low-occupancy") > 0.89 && finding_ms(text, "low-occupancy") < 0.902);
	ops_free(text);
}

static void leaves_fused_kernels_alone(void **state)
{
	static const char *const rules[] = {"float32-matmul", "low-occupancy", "unfused-pointwise"};
	char *text = advise((const char *const[]){"gemm_tensorop", "triton_poi_fused_add_relu_0", "gemm_tensorop",
	                                          "vectorized_elementwise_kernel<add>"}, 4, FULL);

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		assert_true(finding_ms(text, rules[i]) < 0);
	ops_free(text);
}

/* Text for terminals of 80 columns; Markdown whose table and code can be pasted. */
static void fits_terminals_and_pull_requests(void **state)
{
	static const char add[] = "vectorized_elementwise_kernel<add>";
	struct ops_rank worker = {.name = "w"};
	struct device_trace trace;
	struct ops_trace *read;
	char *text;
	size_t size;

	(void)state;
	fill(&trace, (const char *const[]){"ampere_sgemm_128x64_nn", add, add}, 3, FULL);
	worker.trace = read = device_trace_read(&trace);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_TEXT, &text, &size, NULL), OPS_OK);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 80);
	assert_non_null(strstr(text, "\n       torch.set_float32_matmul_precision(\"high\")\n"));
	assert_non_null(strstr(text, "record with `opstrobe run --advise`"));
	ops_free(text);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_MARKDOWN, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "\n| Matrix products use float32 without tensor cores | medium | about 2"));
	assert_non_null(strstr(text, "\n```python\ntorch.set_float32_matmul_precision(\"high\")\n"));
	assert_non_null(strstr(text, "elementwise\\_kernel"));
	ops_free(text);
	ops_trace_unref(read);
}

static void ask(void *trace)
{
	advise_as(trace, OPS_FORMAT_TEXT);
}

static void survives_failures(void **state)
{
	static const char add[] = "vectorized_elementwise_kernel<add>";
	struct device_trace trace;
	struct ops_trace *read;

	(void)state;
	fill(&trace, (const char *const[]){"ampere_sgemm_128x64_nn", add, add, "idle"}, 3, TENTH);
	/* Something to wait for. */
	device_trace_step(&trace, STEPS, STEPS * 1000, 2000);
	device_trace_work(&trace, "aten::copy_", "", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "\"bytes\": 2000000",
	                  STEPS * 1000 + 900, 200);
	read = device_trace_read(&trace);
	assert_true(fail_each(ask, read) > 40);
	ops_trace_unref(read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_products_in_float32), cmocka_unit_test(finds_elementwise_kernels),
		cmocka_unit_test(chains_by_elements),
		cmocka_unit_test(finds_low_occupancy), cmocka_unit_test(leaves_fused_kernels_alone),
		cmocka_unit_test(fits_terminals_and_pull_requests), cmocka_unit_test(survives_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
