/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/roofline: the work of operators compared with figures calculated by hand, and rows compared with roofs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <opstrobe/internal/roofline.h>

#include "analyze/roofline/roofline.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/flops.h"
#include "scene.h"

enum { HALF = 5, FLOAT = 6, BFLOAT16 = 15, BOOL = 11, INT64 = 4 };

/* A contiguous tensor. */
static void put_dense(struct list *list, uint8_t dtype, int n, const int64_t *sizes)
{
	int64_t both[16], stride = 1;

	for (int i = n - 1; i >= 0; i--) {
		both[i] = sizes[i];
		both[n + i] = stride;
		stride *= sizes[i];
	}
	put_tensor(list, dtype, (uint16_t)n, both);
}
#define DENSE(list, dtype, ...) \
	put_dense(list, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static uint32_t put_op(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, const struct list *list)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.inputs = ops_builder_inputs(b, list->bytes, list->size);
	ops_builder_event(b, &event);
	return event.name;
}

static bool demand_of(const char *name, const struct list *list, struct ops_demand *ret_demand)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	bool known;

	put_op(b, name, 0, 10, list);
	trace = scene_close(b);
	known = ops_demand_of(trace, 0, NULL, ret_demand);
	ops_trace_unref(trace);
	return known;
}

#define ASSERT_DEMAND(name, list, expected_flops, expected_bytes)               \
	do {                                                                    \
		struct ops_demand demand;                                       \
                                                                                \
		assert_true(demand_of(name, list, &demand));                    \
		assert_int_equal(demand.flops, expected_flops);                 \
		assert_int_equal(demand.bytes, expected_bytes);                 \
	} while (0)

static void products(void **state)
{
	struct list list;

	(void)state;
	list_open(&list, 2);
	DENSE(&list, FLOAT, 512, 512);
	DENSE(&list, FLOAT, 512, 512);
	ASSERT_DEMAND("aten::mm", &list, 2LL * 512 * 512 * 512, 3 << 20); /* 3 MiB */
	list_open(&list, 2);
	DENSE(&list, BFLOAT16, 8, 64, 32);
	DENSE(&list, BFLOAT16, 8, 32, 16);
	ASSERT_DEMAND("aten::bmm", &list, 2 * 8 * 64 * 32 * 16, 2 * 8 * (64 * 32 + 32 * 16 + 64 * 16));
	/* A bias of one row, which is expanded to all. */
	list_open(&list, 3);
	put_tensor(&list, FLOAT, 2, (const int64_t[]){128, 16, 0, 1});
	DENSE(&list, FLOAT, 128, 32);
	DENSE(&list, FLOAT, 32, 16);
	ASSERT_DEMAND("aten::addmm", &list, 2 * 128 * 32 * 16, 4 * (16 + 128 * 32 + 32 * 16 + 128 * 16));
	/* baddbmm(self, batch1, batch2, beta=0): self is not read. */
	list_open(&list, 5);
	DENSE(&list, FLOAT, 2, 3, 5);
	DENSE(&list, FLOAT, 2, 3, 4);
	DENSE(&list, FLOAT, 2, 4, 5);
	put_int(&list, 0);
	put_int(&list, 1);
	ASSERT_DEMAND("aten::baddbmm", &list, 2 * 2 * 3 * 4 * 5, 4 * (2 * 3 * 4 + 2 * 4 * 5 + 2 * 3 * 5));
}

static void convolutions_and_attention(void **state)
{
	struct list list;

	(void)state;
	/* 3x3 kernels over 8x8 without padding: 6x6 positions of 4 channels. */
	list_open(&list, 7);
	DENSE(&list, FLOAT, 1, 3, 8, 8);
	DENSE(&list, FLOAT, 4, 3, 3, 3);
	put_head(&list, OPS_INPUT_NONE, 0, 0);
	put_int_list(&list, 2, (const int64_t[]){1, 1});
	put_int_list(&list, 2, (const int64_t[]){0, 0});
	put_int_list(&list, 2, (const int64_t[]){1, 1});
	put_int(&list, 1);
	ASSERT_DEMAND("aten::conv2d", &list, 2 * 36 * 108, 4 * (192 + 108 + 36 * 4));
	list_open(&list, 3);
	for (int i = 0; i < 3; i++)
		DENSE(&list, HALF, 2, 4, 128, 64);
	ASSERT_DEMAND("aten::_scaled_dot_product_flash_attention", &list, 4LL * 2 * 4 * 128 * 128 * 64, 4LL * 2 * 2 * 4 * 128 * 64);
}

static void pointwise_and_reductions(void **state)
{
	struct list list;

	(void)state;
	/* A row and a column broadcast to a matrix. */
	list_open(&list, 2);
	DENSE(&list, FLOAT, 100, 1);
	DENSE(&list, FLOAT, 1, 200);
	ASSERT_DEMAND("aten::mul", &list, 20000, 4 * (100 + 200 + 20000));
	/* In place the first tensor is read and written, and a scalar is free. */
	list_open(&list, 2);
	DENSE(&list, FLOAT, 1000);
	put_int(&list, 2);
	ASSERT_DEMAND("aten::mul_", &list, 1000, 8 * 1000);
	ASSERT_DEMAND("aten::zero_", &list, 0, 4 * 1000);
	ASSERT_DEMAND("aten::gt", &list, 0, 4 * 1000 + 1000);
	/* The sum of each row. */
	list_open(&list, 2);
	DENSE(&list, FLOAT, 10, 300);
	put_int_list(&list, 1, (const int64_t[]){-1});
	ASSERT_DEMAND("aten::sum", &list, 3000, 4 * (3000 + 10));
	ASSERT_DEMAND("aten::_softmax", &list, 5 * 3000, 8 * 3000);
	/* Rows of a table: the indices, and what is written. */
	list_open(&list, 2);
	DENSE(&list, FLOAT, 50000, 64);
	DENSE(&list, INT64, 8, 16);
	ASSERT_DEMAND("aten::embedding", &list, 0, 8 * 128 + 4 * 128 * 64);
	/* What is read is no more than what it lies in: windows that overlap. */
	list_open(&list, 1);
	put_tensor(&list, FLOAT, 2, (const int64_t[]){99, 10, 1, 1});
	ASSERT_DEMAND("aten::relu", &list, 990, 4 * (99 + 9) + 4 * 990);
}

static void what_is_not_known(void **state)
{
	struct ops_demand demand;
	struct list list;

	(void)state;
	list_open(&list, 1);
	DENSE(&list, FLOAT, 10, 10);
	assert_false(demand_of("aten::view", &list, &demand));
	assert_false(demand_of("aten::linear", &list, &demand));
	assert_false(demand_of("aten::mm", &list, &demand));
	list_open(&list, 1);
	DENSE(&list, FLOAT, 0, 10);
	assert_false(demand_of("aten::relu", &list, &demand)); /* nothing to do */
	list_open(&list, 1);
	DENSE(&list, UINT8_MAX, 10, 10);
	assert_false(demand_of("aten::relu", &list, &demand)); /* a type without a size */
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void put_product(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct list list;

	list_open(&list, 2);
	DENSE(&list, FLOAT, 512, 512);
	DENSE(&list, FLOAT, 512, 512);
	put_op(b, name, start_ns, end_ns, &list);
}

static void put_add(struct ops_builder *b, int64_t start_ns, int64_t end_ns, int64_t elements)
{
	struct list list;

	list_open(&list, 2);
	DENSE(&list, FLOAT, elements);
	DENSE(&list, FLOAT, elements);
	put_op(b, "aten::add", start_ns, end_ns, &list);
}

static void rows_against_a_roof(void **state)
{
	struct ops_builder *b = scene_open();
	struct roofline roofline;
	const struct roofline_row *row;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	/* 2^28 FLOPs in 10 ms; 12 MB in 4 ms; 12 bytes in 1 us. */
	put_product(b, "aten::mm", 0, 10000000);
	put_product(b, "aten::mm", 1000, 9000000); /* inside: counts no more */
	put_add(b, 20000000, 24000000, 1000000);
	put_add(b, 30000000, 30001000, 1);
	trace = scene_close(b);
	assert_int_equal(roofline_init(&roofline, trace, OPS_ROOFLINE_OPERATOR, NULL, &error), OPS_OK);
	assert_int_equal(roofline.rows.count, 2);
	assert_int_equal(roofline.total_ns, 14001000);
	assert_int_equal(roofline.known_ns, 14001000);
	assert_null(roofline_bound(&roofline.rows.items[0]));
	roofline_release(&roofline);

	/* 10^11 FLOP/s, 10^10 bytes/s. */
	assert_int_equal(roofline_init(&roofline, trace, OPS_ROOFLINE_SHAPE, "100G,10G", &error), OPS_OK);
	assert_int_equal(roofline.rows.count, 3);
	row = &roofline.rows.items[0];
	assert_string_equal(row->name.bytes, "aten::mm");
	assert_string_equal(row->type, "float32");
	assert_string_equal(row->processor, "CPU");
	assert_int_equal(row->count, 1);
	assert_true(row->bound_ns > 2684354.5 && row->bound_ns < 2684354.6);
	assert_string_equal(roofline_bound(row), "compute");
	row = &roofline.rows.items[1];
	assert_true(row->bound_ns > 1199999.9 && row->bound_ns < 1200000.1);
	assert_string_equal(roofline_bound(row), "memory");
	roofline_release(&roofline);

	assert_int_equal(roofline_init(&roofline, trace, OPS_ROOFLINE_OPERATOR, "{\"bandwidth\": 1e10, \"call_us\": 5000}", &error),
	                 OPS_OK);
	assert_string_equal(roofline_bound(&roofline.rows.items[0]), "overhead");
	roofline_release(&roofline);
	ops_trace_unref(trace);
}

static void put_function(struct ops_builder *b, const char *name, uint32_t module, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.kind = OPS_EVENT_PYTHON_FUNCTION;
	event.python_module = module;
	ops_builder_event(b, &event);
}

static void rows_of_places(const struct ops_trace *trace, enum ops_roofline_by by, const char *first, const char *second)
{
	struct roofline roofline;
	struct ops_error error;

	assert_int_equal(roofline_init(&roofline, trace, by, "100G,10G", &error), OPS_OK);
	assert_int_equal(roofline.rows.count, 2);
	assert_string_equal(roofline.rows.items[0].name.bytes, first);
	assert_int_equal(roofline.rows.items[0].count, 1);
	assert_string_equal(roofline.rows.items[0].type, "float32");
	assert_string_equal(roofline.rows.items[1].name.bytes, second);
	assert_int_equal(roofline.rows.items[1].count, 2);
	assert_string_equal(roofline.rows.items[1].type, ""); /* float32 and float16 */
	roofline_release(&roofline);
}

/* The line with less time has more that is avoidable. */
static void lines_and_modules_by_avoidable_time(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	struct list list;

	(void)state;
	put_function(b, "nn.Module: Linear_0", 1, 0, 12000000);
	put_function(b, "net.py(7): forward", OPS_NONE, 1, 12000000);
	put_product(b, "aten::mm", 10, 9000000); /* at least 2.7 ms each */
	list_open(&list, 2);
	DENSE(&list, HALF, 512, 512);
	DENSE(&list, HALF, 512, 512);
	put_op(b, "aten::mm", 9000010, 11000000, &list);
	put_function(b, "nn.Module: ReLU_0", 2, 20000000, 30000000);
	put_function(b, "act.py(3): forward", OPS_NONE, 20000001, 30000000);
	put_add(b, 21000000, 30000000, 1000);
	trace = scene_close(b);
	rows_of_places(trace, OPS_ROOFLINE_LINE, "act.py:3", "net.py:7");
	rows_of_places(trace, OPS_ROOFLINE_MODULE, "ReLU_0", "Linear_0");
	ops_trace_unref(trace);
}

static void put_kernel(struct ops_builder *b, const char *name, int64_t correlation, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event call = scene_event(b, 0, "cudaLaunchKernel", correlation, correlation + 1);
	struct ops_new_event kernel = scene_event(b, 1, name, start_ns, end_ns);

	call.kind = OPS_EVENT_RUNTIME;
	kernel.kind = OPS_EVENT_KERNEL;
	call.correlation = kernel.correlation = correlation;
	ops_builder_event(b, &call);
	ops_builder_event(b, &kernel);
}

static void set_metadata(struct ops_trace *trace, const char *key, const char *json)
{
	struct ops_error error;

	assert_int_equal(ops_trace_set_metadata(trace, key, strlen(key), json, strlen(json), &error), OPS_OK);
}

static void kernels_belong_to_their_operator(void **state)
{
	struct ops_builder *b = scene_open();
	struct roofline roofline;
	const struct roofline_row *row;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	put_product(b, "aten::mm", 1000, 9000);
	put_kernel(b, "ampere_sgemm_128x64", 2000, 20000, 50000);
	put_kernel(b, "splitKreduce", 3000, 50000, 60000);
	put_product(b, "aten::mm", 10000, 19000); /* launches what the trace does not have */
	put_kernel(b, "other", 11000, 70000, 80000);
	put_add(b, 30000, 31000, 1 << 20);
	put_kernel(b, "elementwise", 30500, 90000, 91000);
	trace = scene_close(b);
	set_metadata(trace, "deviceProperties", "[{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-80GB\"}]");
	assert_int_equal(roofline_init(&roofline, trace, OPS_ROOFLINE_OPERATOR, NULL, &error), OPS_OK);
	assert_int_equal(roofline.device.source, ROOF_PUBLISHED);
	assert_int_equal(roofline.rows.count, 2);
	row = &roofline.rows.items[0];
	assert_string_equal(row->processor, "GPU");
	assert_int_equal(row->count, 2);
	assert_int_equal(row->time_ns, 50000);
	/* 2 * 2^28 FLOPs at 19.5 TFLOP/s. */
	assert_true(row->bound_ns > 27531 && row->bound_ns < 27532);
	/* 12 MiB in 1 us is faster than 2.039 TB/s of memory: they came from the cache, at 9.7 TB/s. */
	row = &roofline.rows.items[1];
	assert_true(row->bound_ns > 1297 && row->bound_ns < 1298);
	assert_int_equal(roofline.total_ns, 51000);
	roofline_release(&roofline);

	assert_int_equal(roofline_init(&roofline, trace, OPS_ROOFLINE_KERNEL, NULL, &error), OPS_OK);
	row = &roofline.rows.items[0];
	assert_string_equal(row->name.bytes, "ampere_sgemm_128x64");
	assert_true(row->flops > 0.749 * (1 << 28) && row->flops < 0.751 * (1 << 28));
	roofline_release(&roofline);
	ops_trace_unref(trace);
}

/* --- roofs -------------------------------------------------------------------------------------------------------- */

static void texts_of_roofs(void **state)
{
	static const char *const bad[] = {"", "7", "7,", ",7", "a,b", "7,-1", "0,1", "{}", "{\"flops\": {}}", "{\"flops\"", "7,7,7", "[1]"};
	struct ops_error error;
	struct roof roof;

	(void)state;
	assert_int_equal(roof_parse(ops_string_of("67T,3.35T"), &roof, &error), OPS_OK);
	assert_true(roof.flops[ROOF_BFLOAT16] == 67e12 && roof.levels[0].per_second == 3.35e12);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(roof_parse(ops_string_of(bad[i]), &roof, &error), OPS_INVALID);
	assert_int_equal(roof_parse(ops_string_of(" {\"name\": \"a \\\"b\\\"\", \"flops\": {\"float32\": 1e9, \"new\": 1},"
	                                          "\"bandwidth\": [[1000, 8e9], [2000, 9e9], [500, 1], [9000, 2e9]]}"),
	                            &roof, &error), OPS_OK);
	assert_string_equal(roof.name, "a \"b\"");
	assert_int_equal(roof.level_count, 3);
	/* Less in use is never slower. */
	assert_true(roof_memory_ns(&roof, 900, 1) == 100 && roof_memory_ns(&roof, 1800, 1) == 200);
	assert_true(roof_memory_ns(&roof, 20000, 1) == 10000);
	assert_true(roof_compute_ns(&roof, ROOF_FLOAT32, 5) == 5 && roof_compute_ns(&roof, ROOF_FLOAT16, 5) == 0);
}

static void devices_by_name(void **state)
{
	static const struct {
		const char *name;
		double tera_flops;
	} devices[] = {{"NVIDIA H100 80GB HBM3", 989.4}, {"NVIDIA H100 PCIe", 756}, {"NVIDIA H200", 989.4}, {"NVIDIA B200", 2250},
	               {"Tesla T4", 0}, {"NVIDIA L40S", 362}, {"NVIDIA L4", 121}, {"AMD Instinct MI300X", 1307.4},
	               {"NVIDIA GeForce RTX 4090", 165.2}, {"NVIDIA A40", 149.7}, {"NVIDIA RTX A4000", -1}, {"", -1}};

	(void)state;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		struct ops_builder *b = scene_open();
		struct ops_trace *trace;
		struct roof roof;
		char json[200];

		trace = scene_close(b);
		snprintf(json, sizeof(json), "[{\"name\": \"%s\"}, {\"name\": \"NVIDIA L4\"}]", devices[i].name);
		set_metadata(trace, "deviceProperties", json);
		roof_of_device(trace, &roof);
		assert_int_equal(roof.source == ROOF_PUBLISHED, devices[i].tera_flops >= 0);
		if (roof.source == ROOF_PUBLISHED)
			assert_true(roof.flops[ROOF_BFLOAT16] > (devices[i].tera_flops - 0.1) * 1e12 &&
			            roof.flops[ROOF_BFLOAT16] < (devices[i].tera_flops + 0.1) * 1e12);
		ops_trace_unref(trace);
	}
}

static void forms(void **state)
{
	static const enum ops_format formats[] = {OPS_FORMAT_TEXT, OPS_FORMAT_JSON, OPS_FORMAT_CSV, OPS_FORMAT_MARKDOWN};
	static const char *const parts[] = {"Roof of the CPU: as given", "\"percent_of_roof\":26.84", "aten::mm,float32,CPU,1,10000",
	                                    "| 26.8 %"};
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	struct ops_error error;
	char *text;
	size_t size;

	(void)state;
	put_product(b, "aten::mm", 0, 10000000);
	trace = scene_close(b);
	for (size_t i = 0; i < 4; i++) {
		struct ops_roofline_options options = {.format = formats[i], .roof = "100G,10G"};

		assert_int_equal(ops_roofline(trace, &options, &text, &size, &error), OPS_OK);
		if (!strstr(text, parts[i]))
			fail_msg("no '%s' in %s", parts[i], text);
		ops_free(text);
	}
	assert_int_equal(ops_roofline(trace, &(struct ops_roofline_options){.roof = "fast"}, &text, &size, &error), OPS_INVALID);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(convolutions_and_attention),
		cmocka_unit_test(pointwise_and_reductions),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(rows_against_a_roof),
		cmocka_unit_test(lines_and_modules_by_avoidable_time),
		cmocka_unit_test(kernels_belong_to_their_operator),
		cmocka_unit_test(texts_of_roofs),
		cmocka_unit_test(devices_by_name),
		cmocka_unit_test(forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
