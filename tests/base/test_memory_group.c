/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of control groups, from folders with the files of a group.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory_group.h"

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The root of the group, and a folder below it. */
static int group_make(void **state)
{
	static char root[64];

	snprintf(root, sizeof(root), "/tmp/opstrobe-memory-group-%ld", (long)getpid());
	*state = root;
	return mkdir(root, 0700);
}

static int group_remove(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", (const char *)*state);
	return system(command);
}

static void version_2(void **state)
{
	const char *root = *state;
	char inner[128];

	snprintf(inner, sizeof(inner), "%s/inner", root);
	assert_int_equal(mkdir(inner, 0700), 0);
	write_file(inner, "memory.max", "max\n");
	write_file(inner, "memory.current", "300\n");
	assert_true(ops_memory_group_limit(inner) == UINT64_MAX);
	assert_true(ops_memory_group_free(inner) == UINT64_MAX);
	write_file(root, "memory.max", "1000\n");
	write_file(root, "memory.current", "600\n");
	assert_true(ops_memory_group_limit(inner) == 1000); /* of the group around it */
	assert_true(ops_memory_group_free(inner) == 400);
	write_file(root, "memory.stat", "anon 500\ninactive_file 100\nactive_file 7\n");
	assert_true(ops_memory_group_free(inner) == 500);
	write_file(inner, "memory.max", "350\n");
	assert_true(ops_memory_group_free(inner) == 50);
	write_file(inner, "memory.current", "400\n");
	assert_true(ops_memory_group_free(inner) == 0);
}

static void version_1(void **state)
{
	const char *root = *state;

	write_file(root, "memory.limit_in_bytes", "9223372036854771712\n");
	write_file(root, "memory.usage_in_bytes", "600\n");
	assert_true(ops_memory_group_limit(root) == UINT64_MAX);
	assert_true(ops_memory_group_free(root) == UINT64_MAX);
	write_file(root, "memory.limit_in_bytes", "1000\n");
	write_file(root, "memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
	assert_true(ops_memory_group_limit(root) == 1000);
	assert_true(ops_memory_group_free(root) == 450);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, group_make, group_remove),
		cmocka_unit_test_setup_teardown(version_1, group_make, group_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
