/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a thread was during a step that took too long: samples of its stack, with counts of equal ones.
 */
#ifndef OPS_WATCH_SAMPLES_H
#define OPS_WATCH_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/watch.h>

#define WATCH_SAMPLES_MAX 24u

struct watch_samples {
	uint32_t total;
	uint32_t kinds;
	uint32_t collecting; /* number of samples during a garbage collection */
	uint32_t counts[WATCH_SAMPLES_MAX];
	struct ops_stack stacks[WATCH_SAMPLES_MAX];
};

void watch_samples_clear(struct watch_samples *samples);
void watch_samples_add(struct watch_samples *samples, const struct ops_stack *stack, bool collects);

#endif
