/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that are the same in every run, for tests on random input.
 */
#ifndef OPS_TEST_RANDOM_H
#define OPS_TEST_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

/* Returns a number in 0 … below - 1. */
static inline uint32_t random_below(struct random *random, uint32_t below)
{
	random->state = random->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random->state >> 33) % below);
}

#endif
