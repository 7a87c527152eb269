/* SPDX-License-Identifier: Apache-2.0
 *
 * base/intern: dense ids, stable strings, arbitrary bytes, failures; the hash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "failing.h"

static void ids_are_dense_and_stable(void **state)
{
	struct ops_intern table = {0};
	const char *kept[5000];
	char name[32];

	(void)state;
	assert_int_equal(ops_intern_find(&table, "x", 1), OPS_INTERN_NONE);
	for (uint32_t i = 0; i < 5000; i++) {
		int size = snprintf(name, sizeof(name), "aten::op_%u", i);

		assert_int_equal(ops_intern_add(&table, name, (size_t)size), i);
		assert_int_equal(ops_intern_add(&table, name, (size_t)size), i);
		kept[i] = table.entries[i].bytes;
	}
	assert_int_equal(table.count, 5000);
	for (uint32_t i = 0; i < 5000; i++) {
		int size = snprintf(name, sizeof(name), "aten::op_%u", i);

		assert_int_equal(ops_intern_find(&table, name, (size_t)size), i);
		assert_ptr_equal(table.entries[i].bytes, kept[i]);
		assert_string_equal(kept[i], name);
	}
	assert_int_equal(ops_intern_find(&table, "aten::op_5000", 13), OPS_INTERN_NONE);
	ops_intern_release(&table);
	assert_int_equal(table.count, 0);
}

static void any_bytes_are_a_string(void **state)
{
	struct ops_intern table = {0};

	(void)state;
	assert_int_equal(ops_intern_add(&table, "a\0b", 3), 0);
	assert_int_equal(ops_intern_add(&table, "a\0c", 3), 1);
	assert_int_equal(ops_intern_add(&table, "a", 1), 2);
	assert_int_equal(ops_intern_add(&table, "", 0), 3);
	assert_int_equal(ops_intern_add(&table, NULL, 0), 3);
	assert_int_equal(ops_intern_add(&table, "\xff\xfe", 2), 4);
	assert_int_equal(ops_intern_find(&table, "a\0b", 3), 0);
	assert_memory_equal(table.entries[1].bytes, "a\0c\0", 4);
	ops_intern_release(&table);
}

/* Strings of one hash, made so by force: found by comparison. */
static void collisions_are_distinguished(void **state)
{
	struct ops_intern table = {0};

	(void)state;
	ops_intern_add(&table, "first", 5);
	/* The entry now claims to be another string that hashes alike. */
	table.entries[0].bytes = "other";
	assert_int_equal(ops_intern_add(&table, "first", 5), 1);
	assert_int_equal(ops_intern_find(&table, "first", 5), 1);
	ops_intern_release(&table);
}

static void add_all(void *context)
{
	struct ops_intern table = {0};
	char name[32];
	uint32_t expected = 0;

	(void)context;
	for (uint32_t i = 0; i < 3000; i++) {
		int size = snprintf(name, sizeof(name), "%u-0123456789", i);
		uint32_t id = ops_intern_add(&table, name, (size_t)size);

		if (id == OPS_INTERN_NONE) {
			assert_int_equal(table.count, expected);
			assert_int_equal(ops_intern_find(&table, name, (size_t)size), OPS_INTERN_NONE);
			continue;
		}
		assert_int_equal(id, expected++);
		assert_string_equal(table.entries[id].bytes, name);
	}
	assert_true(expected >= 2999);
	ops_intern_release(&table);
}

static void survives_every_failure(void **state)
{
	(void)state;
	assert_true(fail_each(add_all, NULL) >= 6);
}

/* Every bit of the input turns about half of the bits of the hash, and lengths count. */
static void the_hash_spreads(void **state)
{
	unsigned char bytes[80] = {0};

	(void)state;
	for (size_t size = 1; size <= sizeof(bytes); size++) {
		uint64_t plain = ops_hash(bytes, size);

		assert_int_not_equal(plain, ops_hash(bytes, size - 1));
		for (size_t bit = 0; bit < size * 8; bit++) {
			int turned;

			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			turned = __builtin_popcountll(plain ^ ops_hash(bytes, size));
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			assert_in_range(turned, 8, 56);
		}
	}
}

/* Names that count up fill buckets about as evenly as chance would. */
static void the_low_bits_are_even(void **state)
{
	enum { BUCKETS = 4096, EACH = 16 };
	unsigned filled[BUCKETS] = {0};
	char name[32];

	(void)state;
	for (unsigned i = 0; i < BUCKETS * EACH; i++) {
		int size = snprintf(name, sizeof(name), "ProfilerStep#%u", i);

		filled[ops_hash(name, (size_t)size) % BUCKETS]++;
	}
	for (unsigned i = 0; i < BUCKETS; i++)
		assert_in_range(filled[i], 0, EACH * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_dense_and_stable),
		cmocka_unit_test(any_bytes_are_a_string),
		cmocka_unit_test(collisions_are_distinguished),
		cmocka_unit_test(survives_every_failure),
		cmocka_unit_test(the_hash_spreads),
		cmocka_unit_test(the_low_bits_are_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
