/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice by the part of results that later operators need, and what the finding on avoidable time says. Each cause has a
 * counterpart that has no finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/advice.h>

#include "flow_writer.h"

#define HIDDEN 0x40000u
#define ACTIVE 0x50000u

/* Layers on 1000 rows of 256, of which 100 are selected at the end, or all are read. */
static void layers(struct writer *w, const char *first, bool selects, bool adds)
{
	allocate(w, HIDDEN, 1024000);
	USE(w, first, 300000, -1, {INPUT, 1000, 256, 0, false}, {WEIGHT, 256, 256, 0, false});
	allocate(w, ACTIVE, 1024000);
	USE(w, "aten::gelu", 200000, -1, {HIDDEN, 1000, 256, 0, false});
	allocate(w, LARGE, 1024000);
	USE(w, "aten::linear", 100000, -1, {ACTIVE, 1000, 256, 0, false}, {WEIGHT, 256, 256, 0, false});
	if (adds)
		USE(w, "aten::add_", 20000, -1, {LARGE, 1000, 256, 0, true}, {HIDDEN, 1000, 256, 0, false});
	allocate(w, HIDDEN, -1024000);
	allocate(w, ACTIVE, -1024000);
	if (selects)
		USE(w, "aten::select", 1000, 9, {LARGE, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, selects ? 100 : 1000, 256, 1024000, false});
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -8);
}

static void select_late(struct writer *w, bool cause)
{
	layers(w, "aten::linear", cause, false);
}

static void finds_layers_before_a_selection(void **state)
{
	(void)state;
	assert_float_equal(gain_of("late-selection", select_late, true), (0.3 + 0.2 + 0.1) * 0.9, 0.001);
	assert_true(gain_of("late-selection", select_late, false) < 0);
}

static void scan_first(struct writer *w, bool cause)
{
	layers(w, cause ? "aten::linear" : "aten::cumsum", true, false);
}

/* A running sum needs all rows before the selected one. */
static void counts_operators_in_proportion_to_their_results(void **state)
{
	(void)state;
	assert_float_equal(gain_of("late-selection", scan_first, true), (0.3 + 0.2 + 0.1) * 0.9, 0.001);
	assert_float_equal(gain_of("late-selection", scan_first, false), (0.2 + 0.1) * 0.9, 0.001);
}

static void add_input(struct writer *w, bool cause)
{
	layers(w, "aten::linear", true, !cause);
}

/* In a network with residual connections, other layers need all rows. */
static void leaves_out_residual_connections(void **state)
{
	(void)state;
	assert_true(gain_of("late-selection", add_input, true) > 0);
	assert_true(gain_of("late-selection", add_input, false) < 0);
}

/* A sum that nothing reads, or the sum of tensors in different orders. */
static void sums(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::add", 400000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	if (!cause)
		USE(w, "aten::select", 1000, 9, {LARGE, 1000, 1000, 0, false});
	allocate(w, SMALL, 8);
	if (!cause)
		USE(w, "aten::argmax", 20000, -1, {LARGE, 300, 1000, 4000000, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -8);
}

static void says_what_is_unusual(void **state)
{
	char *unread = advice_of(sums, true), *part = advice_of(sums, false);

	(void)state;
	assert_non_null(strstr(unread, "aten::add of float32 [1000, 1000]. It makes a result of 3.81 MiB, and no operator reads it."));
	assert_non_null(strstr(unread, "Leave out what nothing reads."));
	assert_non_null(strstr(part, "It makes a result of 3.81 MiB, and later operators read 30.0 % of it."));
	assert_non_null(strstr(part, "Compute only the part that is read"));
	ops_free(unread);
	ops_free(part);
}

/* A sum of tensors in different orders: of one that was there before, or of one that only this sum reads. */
static void add_by_columns(struct writer *w, bool cause)
{
	if (!cause) {
		allocate(w, HIDDEN, 4000000);
		USE(w, "aten::exp", 100000, -1, {INPUT, 1000, 1000, 0, TENSOR_BY_COLUMNS});
	}
	allocate(w, ACTIVE, 4000000);
	USE(w, "aten::neg", 100000, -1, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, LARGE, 4000000);
	USE(w, "aten::add", 400000, -1, {ACTIVE, 1000, 1000, 0, false}, {cause ? INPUT : HIDDEN, 1000, 1000, 0, TENSOR_BY_COLUMNS});
	allocate(w, ACTIVE, -4000000);
	if (!cause)
		allocate(w, HIDDEN, -4000000);
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -8);
}

/* Twelve million bytes take 0.12 ms at the roof. */
static void compares_layouts_that_can_be_changed_once(void **state)
{
	(void)state;
	assert_float_equal(gain_of("avoidable-time", add_by_columns, true), 0.4 - 0.12, 0.001);
	assert_true(gain_of("avoidable-time", add_by_columns, false) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_layers_before_a_selection),
		cmocka_unit_test(counts_operators_in_proportion_to_their_results),
		cmocka_unit_test(leaves_out_residual_connections),
		cmocka_unit_test(says_what_is_unusual),
		cmocka_unit_test(compares_layouts_that_can_be_changed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
