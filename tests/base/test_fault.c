/* SPDX-License-Identifier: Apache-2.0
 *
 * base/fault: chains of causes, truncation, unusual bytes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/utf8.h"

static void says_what_and_why(void **state)
{
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(ops_fault(&error, OPS_INVALID, "no '%s'", "x"), OPS_INVALID);
	assert_int_equal(error.code, OPS_INVALID);
	assert_int_equal(error.os_errno, 0);
	assert_string_equal(error.text, "no 'x'");
	assert_int_equal(ops_fault_context(&error, error.code, "cannot read '%s'", "y"), OPS_INVALID);
	assert_string_equal(error.text, "cannot read 'y': no 'x'");
}

static void tells_errno(void **state)
{
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(ops_fault_errno(&error, ENOENT, "cannot open '%s'", "a"), OPS_IO);
	assert_int_equal(error.os_errno, ENOENT);
	assert_string_equal(error.text, "cannot open 'a': no such file or directory");
	ops_fault_context(&error, error.code, "cannot write trace");
	assert_int_equal(error.os_errno, ENOENT);
	assert_string_equal(error.text, "cannot write trace: cannot open 'a': no such file or directory");
	assert_int_equal(ops_fault_errno(&error, ENOMEM, "x"), OPS_NO_MEMORY);
	ops_fault_errno(&error, EXDEV, "x");
	assert_string_equal(error.text, "x: invalid cross-device link");
	ops_fault_errno(&error, ENOTSUP, "x");
	assert_string_equal(error.text, "x: operation not supported");
}

static void abbreviations_stay_upper_case(void **state)
{
	struct ops_error error = {0};

	(void)state;
	ops_fault_errno(&error, EDOTDOT, "x");
	assert_string_equal(error.text, "x: RFS specific error");
}

static void a_null_error_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(ops_fault(NULL, OPS_BUSY, "x"), OPS_BUSY);
	assert_int_equal(ops_fault_errno(NULL, EIO, "x"), OPS_IO);
	assert_int_equal(ops_fault_memory(NULL), OPS_NO_MEMORY);
	assert_int_equal(ops_fault_context(NULL, OPS_CORRUPT, "x"), OPS_CORRUPT);
}

static void long_chains_lose_the_innermost(void **state)
{
	struct ops_error error = {0};
	char path[600];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	ops_fault(&error, OPS_IO, "inner '%s'", path);
	ops_fault_context(&error, error.code, "middle '%s'", path);
	ops_fault_context(&error, error.code, "outer");
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	assert_memory_equal(error.text, "outer: middle 'ppp", 18);
}

static void the_text_is_utf8(void **state)
{
	struct ops_error error = {0};
	char path[2000];

	(void)state;
	ops_fault(&error, OPS_IO, "no '%s'", "caf\xc3\xa9 \xff \xed.\xa0");
	assert_string_equal(error.text, "no 'caf\xc3\xa9 ? ?.?'");
	/* A cut inside a character at every offset. */
	for (size_t lead = 0; lead < 4; lead++) {
		const char *end;

		for (size_t i = 0; i + 4 < sizeof(path); i += 4)
			memcpy(path + i, "\xf0\x9f\x98\x80", 4);
		path[sizeof(path) - 4] = '\0';
		ops_fault(&error, OPS_IO, "%.*s%s", (int)lead, "xyz", path);
		end = error.text + strlen(error.text);
		for (const char *at = error.text; at < end; at += ops_utf8_length(at, end))
			assert_int_not_equal(ops_utf8_length(at, end), 0);
	}
}

static void every_code_has_name_and_text(void **state)
{
	(void)state;
	assert_string_equal(ops_code_name(OPS_OK), "OK");
	assert_string_equal(ops_code_name(OPS_NO_MEMORY), "NO_MEMORY");
	assert_string_equal(ops_code_text(OPS_NO_MEMORY), "out of memory");
	assert_string_equal(ops_code_name(OPS_CORRUPT), "CORRUPT");
	assert_string_equal(ops_code_name((enum ops_code)99), "UNKNOWN");
	assert_string_equal(ops_code_text((enum ops_code)-1), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_and_why),
		cmocka_unit_test(tells_errno),
		cmocka_unit_test(abbreviations_stay_upper_case),
		cmocka_unit_test(a_null_error_is_allowed),
		cmocka_unit_test(long_chains_lose_the_innermost),
		cmocka_unit_test(the_text_is_utf8),
		cmocka_unit_test(every_code_has_name_and_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
