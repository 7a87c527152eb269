/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes every allocation of a piece of work fail, one after another.
 */
#ifndef OPS_TESTS_FAILING_H
#define OPS_TESTS_FAILING_H

#include <stdint.h>

#include "base/alloc.h"

/* Runs the work with its first, its second, … allocation failing, until it makes fewer than that. The work checks itself
 * what became of the failure. Gives how many allocations failed. */
static inline uint64_t fail_each(void (*work)(void *context), void *context)
{
	for (uint64_t nth = 1;; nth++) {
		uint64_t attempted;

		ops_alloc_fail_at(nth, false);
		work(context);
		attempted = ops_alloc_count();
		ops_alloc_fail_at(0, false);
		if (attempted < nth)
			return nth - 1;
	}
}

#endif
