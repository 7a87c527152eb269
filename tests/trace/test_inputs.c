/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists as text. Expected texts are what torch 2.13 printed for these arguments (record_shapes, export_chrome_trace and
 * events()), except that a TensorList has its shapes and JSON has no white space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "lists.h"
#include "random.h"
#include "trace/inputs.h"

#define I64(...) ((const int64_t[]){__VA_ARGS__})

typedef void text_function(struct ops_buffer *out, struct ops_string inputs);

static void assert_text(text_function *text, const struct list *list, const char *expected)
{
	struct ops_buffer out = {0};

	assert_true(ops_inputs_valid(list->bytes, list->size));
	text(&out, (struct ops_string){list->bytes, list->size});
	ops_buffer_append(&out, "", 1);
	assert_false(out.failed);
	assert_string_equal(out.bytes, expected);
	ops_buffer_release(&out);
}

static void test_every_tag(void **state)
{
	struct list list;

	(void)state;
	list_open(&list, 13);
	put_tensor(&list, 6, 2, I64(2, 3, 3, 1));
	put_tensor(&list, 4, 0, I64(0));
	put_plain_tensor(&list, 7, 2, I64(2, 3));
	put_head(&list, OPS_INPUT_NONE, 0, 0);
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 2);
	put_tensor(&list, 6, 2, I64(2, 2, 2, 1));
	put_plain_tensor(&list, 6, 1, I64(4));
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 0);
	put_int(&list, -7);
	put_bool(&list, 1);
	put_double(&list, 0.5);
	put_complex(&list, 1, 2);
	put_head(&list, OPS_INPUT_SCALAR_LIST, 0, 4);
	put_int(&list, 1);
	put_double(&list, 2.5);
	put_bool(&list, 0);
	put_complex(&list, 0.1, -3.5);
	put_int_list(&list, 2, I64(1, -2));
	put_int_list(&list, 0, I64(0));
	assert_text(ops_inputs_shapes_text, &list,
	            "[[2, 3], [], [2, 3], [], [[2, 2], [4]], [], [], [], [], [], [], [], []]");
	assert_text(ops_inputs_json_dims, &list, "[[2,3],[],[2,3],[],[[2,2],[4]],[],[],[],[],[],[],[],[]]");
	assert_text(ops_inputs_json_strides, &list, "[[3,1],[],[],[],[[2,1],[]],[],[],[],[],[],[],[],[]]");
	assert_text(ops_inputs_json_types, &list,
	            "[\"float\",\"long int\",\"double\",\"\",\"TensorList\",\"TensorList\",\"Scalar\",\"Scalar\","
	            "\"Scalar\",\"Scalar\",\"ScalarList\",\"ScalarList\",\"ScalarList\"]");
	assert_text(ops_inputs_json_concrete, &list,
	            "[\"\",\"\",\"\",\"\",\"\",\"\",\"-7\",\"True\",\"0.5\",\"1.+2.j\","
	            "\"[1, 2.5, False, 0.10000000000000001-3.5j]\",\"[1, -2]\",\"[]\"]");
}

static void test_args(void **state)
{
	struct list list;

	(void)state;
	list_open(&list, 2);
	put_tensor(&list, 15, 1, I64(5, 1));
	put_int(&list, 6);
	assert_text(ops_inputs_json_args, &list,
	            "\"Concrete Inputs\":[\"\",\"6\"],\"Input type\":[\"c10::BFloat16\",\"Scalar\"],"
	            "\"Input Strides\":[[1],[]],\"Input Dims\":[[5],[]]");
	list_open(&list, 0);
	assert_text(ops_inputs_json_args, &list,
	            "\"Concrete Inputs\":[],\"Input type\":[],\"Input Strides\":[],\"Input Dims\":[]");
	assert_text(ops_inputs_shapes_text, &list, "[]");
}

/* Torch leaves lists of more than 30 tensors out of its files; here they are written. */
static void test_long_tensor_list(void **state)
{
	struct list list;
	char shapes[256] = "[[[1]", json[256] = "[[[1]";

	(void)state;
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 31);
	for (uint16_t i = 0; i < 31; i++)
		put_tensor(&list, 6, 1, I64(1, 1));
	for (uint16_t i = 1; i < 31; i++) {
		strcat(shapes, ", [1]");
		strcat(json, ",[1]");
	}
	assert_text(ops_inputs_shapes_text, &list, strcat(shapes, "]]"));
	assert_text(ops_inputs_json_dims, &list, strcat(json, "]]"));
	assert_text(ops_inputs_json_strides, &list, json);
	assert_text(ops_inputs_json_types, &list, "[\"TensorList\"]");
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 1);
	put_tensor(&list, 6, 0, I64(0));
	assert_text(ops_inputs_json_dims, &list, "[[[]]]");
}

static void assert_value(const struct list *list, const char *expected)
{
	char json[128];

	snprintf(json, sizeof(json), "[\"%s\"]", expected);
	assert_text(ops_inputs_json_concrete, list, json);
}

static void test_doubles(void **state)
{
	static const struct {
		double value;
		const char *text;
	} facts[] = {
		{1.0, "1."},
		{-0.0, "0."},
		{-2.0, "-2."},
		{0.1, "0.10000000000000001"},
		{0.0001, "0.0001"},
		{1e-5, "1.0000000000000001e-05"},
		{0.00012345, "0.00012344999999999999"},
		{1e10, "10000000000."},
		{1e17, "100000000000000000."},
		{1e14 + 0.5, "100000000000000.5"},
		{123456789012345678., "123456789012345680."},
		{4611686018427387904., "4611686018427387904."},
		{9223372036854775808., "9.2233720368547758e+18"},
		{-9223372036854775808., "-9223372036854775808."},
		{1e22, "1e+22"},
		{1e300, "1.0000000000000001e+300"},
		{5e-324, "4.9406564584124654e-324"},
		{1. / 3, "0.33333333333333331"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{NAN, "nan"},
	};
	struct list list;

	(void)state;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		list_open(&list, 1);
		put_double(&list, facts[i].value);
		assert_value(&list, facts[i].text);
	}
}

static void test_complex(void **state)
{
	static const struct {
		double real, imaginary;
		const char *text;
	} facts[] = {
		{1, 2, "1.+2.j"},
		{0.1, -1e10, "0.10000000000000001-10000000000.j"},
		{INFINITY, -0.0, "inf+0.j"},
		{-0.0, -0.0, "0.+0.j"},
		{NAN, 1, "nan+1.j"},
		{1, NAN, "1.-nanj"},
		{1, -INFINITY, "1.-infj"},
		{-1.5, -0.25, "-1.5-0.25j"},
		{1e20, 1e-9, "1e+20+1.0000000000000001e-09j"},
	};
	struct list list;

	(void)state;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		list_open(&list, 1);
		put_complex(&list, facts[i].real, facts[i].imaginary);
		assert_value(&list, facts[i].text);
	}
}

static void test_dtype_names(void **state)
{
	(void)state;
	assert_string_equal(ops_dtype_name(0), "unsigned char");
	assert_string_equal(ops_dtype_name(6), "float");
	assert_string_equal(ops_dtype_name(8), "c10::complex<c10::Half>");
	assert_string_equal(ops_dtype_name(11), "bool");
	assert_string_equal(ops_dtype_name(22), "c10::bits16");
	assert_string_equal(ops_dtype_name(29), "long unsigned int");
	assert_string_equal(ops_dtype_name(30), "c10::dummy_uint1_7_t<1>");
	assert_string_equal(ops_dtype_name(43), "c10::dummy_int1_7_t<7>");
	assert_string_equal(ops_dtype_name(44), "c10::Float8_e8m0fnu");
	assert_string_equal(ops_dtype_name(45), "c10::Float4_e2m1fn_x2");
	assert_string_equal(ops_dtype_name(46), "");
	assert_string_equal(ops_dtype_name(255), "");
	assert_string_equal(ops_dtype_python_name(OPS_DTYPE_HALF), "float16");
	assert_string_equal(ops_dtype_python_name(OPS_DTYPE_BFLOAT16), "bfloat16");
	assert_string_equal(ops_dtype_python_name(OPS_DTYPE_FLOAT8_LAST), "float8_e4m3fnuz");
	assert_string_equal(ops_dtype_python_name(255), "");
	for (unsigned dtype = 0; dtype < 256; dtype++) /* both lists have the same types */
		assert_int_equal(*ops_dtype_name((uint8_t)dtype) != '\0', *ops_dtype_python_name((uint8_t)dtype) != '\0');
}

/* --- hostile bytes -------------------------------------------------------------------------------------------------- */

/* Walks everything in a list; the bytes lie in an allocation of just their size, so that the sanitizer sees a step too far. */
static bool walk(const char *bytes, size_t size)
{
	static text_function *const texts[] = {ops_inputs_shapes_text, ops_inputs_json_args};
	char *copy = malloc(size ? size : 1);
	struct ops_buffer out = {0};
	bool valid;

	memcpy(copy, bytes, size);
	valid = ops_inputs_valid(copy, size);
	for (size_t i = 0; i < 2; i++)
		texts[i](&out, (struct ops_string){copy, size});
	ops_buffer_release(&out);
	free(copy);
	return valid;
}

static void make_rich(struct list *list)
{
	list_open(list, 4);
	put_tensor(list, 6, 2, I64(2, 3, 3, 1));
	put_head(list, OPS_INPUT_TENSOR_LIST, 0, 2);
	put_tensor(list, 6, 1, I64(4, 1));
	put_plain_tensor(list, 6, 1, I64(4));
	put_head(list, OPS_INPUT_SCALAR_LIST, 0, 2);
	put_double(list, 2.5);
	put_complex(list, 1, 2);
	put_int_list(list, 2, I64(1, -2));
}

static void test_cut_short(void **state)
{
	struct list list;

	(void)state;
	make_rich(&list);
	assert_true(walk(list.bytes, list.size));
	for (size_t size = 0; size < list.size; size++)
		assert_false(walk(list.bytes, size));
	list.bytes[list.size] = 0;
	assert_false(walk(list.bytes, list.size + 1));
}

static void test_random_damage(void **state)
{
	struct random random = {1};
	struct list rich;
	struct list list;

	(void)state;
	make_rich(&rich);
	for (size_t i = 0; i < 20000; i++) {
		list = rich;
		for (uint32_t n = 1 + random_below(&random, 3); n-- > 0;)
			list.bytes[random_below(&random, (uint32_t)list.size)] = (char)random_below(&random, 256);
		walk(list.bytes, list.size);
	}
}

static void test_wrong_members(void **state)
{
	struct list list;

	(void)state;
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 1);
	put_int(&list, 1);
	assert_false(walk(list.bytes, list.size));
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_SCALAR_LIST, 0, 1);
	put_tensor(&list, 6, 0, I64(0));
	assert_false(walk(list.bytes, list.size));
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_SCALAR_LIST, 0, 1);
	put_head(&list, OPS_INPUT_SCALAR_LIST, 0, 0);
	assert_false(walk(list.bytes, list.size));
	list_open(&list, 1);
	put_head(&list, OPS_INPUT_INT_LIST + 1, 0, 0);
	assert_false(walk(list.bytes, list.size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_tag),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_long_tensor_list),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_complex),
		cmocka_unit_test(test_dtype_names),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_wrong_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
