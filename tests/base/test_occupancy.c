/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy compared with figures calculated by hand from the tables of the programming guide, and checks of invariants.
 * tests/python/test_occupancy.py compares it with the values of tens of thousands of kernels in real traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/occupancy.h"

static const struct ops_multiprocessor a100 = {
	.compute_major = 8, .count = 108, .warp_size = 32, .threads_max = 2048, .registers = 65536, .shared_bytes = 167936,
	.shared_reserved_bytes = 1024,
};

static struct ops_kernel_shape shape(uint32_t blocks, uint32_t threads, uint32_t registers, uint32_t shared)
{
	return (struct ops_kernel_shape){.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .registers = registers,
	                                 .shared_bytes = shared};
}

static void warps_limit_a_light_kernel(void **state)
{
	struct ops_kernel_shape kernel = shape(108 * 16, 256, 32, 0);
	struct ops_occupancy occupancy = ops_occupancy_of(&a100, &kernel);

	(void)state;
	/* 2048 threads are 64 warps; a block has 8, and 32 * 32 = 1024 registers a warp would allow 64 warps too. */
	assert_int_equal(occupancy.active_blocks, 8);
	assert_int_equal(occupancy.limits, OPS_OCCUPANCY_WARPS | OPS_OCCUPANCY_REGISTERS);
	assert_true(occupancy.percent == 100.0);
	assert_true(occupancy.blocks_a_multiprocessor == 16.0);
	assert_true(occupancy.warps_a_multiprocessor == 128.0);
}

static void registers_limit(void **state)
{
	struct ops_kernel_shape kernel = shape(1000, 256, 168, 0);
	struct ops_occupancy occupancy = ops_occupancy_of(&a100, &kernel);

	(void)state;
	/* 168 * 32 = 5376 a warp: 12 warps of 65536 registers, in fours: 12; 8 a block: 1 block. */
	assert_int_equal(occupancy.by_registers, 1);
	assert_int_equal(occupancy.active_blocks, 1);
	assert_int_equal(occupancy.limits, OPS_OCCUPANCY_REGISTERS);
	assert_int_equal(occupancy.registers_a_block, 5376 * 8);
	assert_true(occupancy.percent == 12.5);
}

/* Registers are held for whole warps, in units of 256: a part of a warp counts as one, and the next block has its own. */
static void registers_are_those_of_the_warps(void **state)
{
	struct ops_kernel_shape kernel = shape(1000, 75, 250, 0);
	struct ops_occupancy occupancy = ops_occupancy_of(&a100, &kernel);

	(void)state;
	assert_int_equal(occupancy.registers_a_block, 3 * 8192); /* 250 * 32 = 8000 a warp */
	assert_int_equal(occupancy.by_registers, 2);             /* of 8 warps, in fours */
}

static void unused_resources_do_not_limit(void **state)
{
	struct ops_multiprocessor volta = a100;
	struct ops_kernel_shape kernel = shape(1000, 256, 0, 0);
	struct ops_occupancy occupancy;

	(void)state;
	volta.compute_major = 7;
	volta.shared_reserved_bytes = 0;
	occupancy = ops_occupancy_of(&volta, &kernel);
	assert_int_equal(occupancy.by_registers, OPS_OCCUPANCY_NO_LIMIT);
	assert_int_equal(occupancy.by_shared, OPS_OCCUPANCY_NO_LIMIT);
	assert_int_equal(occupancy.limits, OPS_OCCUPANCY_WARPS);
}

static void shared_memory_limits(void **state)
{
	struct ops_kernel_shape kernel = shape(1000, 128, 32, 73728);
	struct ops_occupancy occupancy = ops_occupancy_of(&a100, &kernel);

	(void)state;
	/* With the driver's 1024: 74752 of 167936 bytes. */
	assert_int_equal(occupancy.by_shared, 2);
	assert_int_equal(occupancy.shared_a_block, 74752);
	assert_int_equal(occupancy.limits, OPS_OCCUPANCY_SHARED);
}

static void blocks_limit_tiny_ones_by_architecture(void **state)
{
	static const struct {
		uint32_t major, minor, blocks;
	} known[] = {{7, 0, 32}, {7, 5, 16}, {8, 0, 32}, {8, 6, 16}, {8, 9, 24}, {9, 0, 32}, {10, 0, 32}, {10, 1, 24},
	             {10, 3, 32}, {11, 0, 24}, {12, 0, 24}, {12, 1, 24}};
	struct ops_kernel_shape kernel = shape(100000, 32, 16, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct ops_multiprocessor device = a100;

		device.compute_major = known[i].major;
		device.compute_minor = known[i].minor;
		assert_int_equal(ops_occupancy_of(&device, &kernel).active_blocks, known[i].blocks);
	}
}

static void a_small_launch_fills_what_it_has(void **state)
{
	struct ops_kernel_shape kernel = shape(54, 1024, 16, 0);

	(void)state;
	assert_true(ops_occupancy_of(&a100, &kernel).percent == 25.0); /* half a block of 32 warps, of 64 */
}

static void senseless_launches_have_no_occupancy(void **state)
{
	static const struct ops_multiprocessor unknown;
	struct ops_kernel_shape none = shape(0, 0, 0, 0);
	struct ops_kernel_shape huge = shape(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
	struct ops_kernel_shape plain = shape(1, 32, 16, 0);

	(void)state;
	assert_int_equal(ops_occupancy_of(&a100, &none).active_blocks, 0);
	assert_int_equal(ops_occupancy_of(&a100, &huge).active_blocks, 0);
	assert_int_equal(ops_occupancy_of(&unknown, &plain).active_blocks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warps_limit_a_light_kernel),
		cmocka_unit_test(registers_limit),
		cmocka_unit_test(registers_are_those_of_the_warps),
		cmocka_unit_test(unused_resources_do_not_limit),
		cmocka_unit_test(shared_memory_limits),
		cmocka_unit_test(blocks_limit_tiny_ones_by_architecture),
		cmocka_unit_test(a_small_launch_fills_what_it_has),
		cmocka_unit_test(senseless_launches_have_no_occupancy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
