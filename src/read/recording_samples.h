/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled stacks of a recording (OPS_SLOT_SAMPLE). They become the metadata "python_samples" of the trace; derive/python_samples.h
 * describes it.
 */
#ifndef OPS_READ_RECORDING_SAMPLES_H
#define OPS_READ_RECORDING_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "record/recording.h"

/* A stack: its innermost frame, and the stack of its caller. */
struct recording_stack {
	uint32_t caller; /* OPS_NONE: none */
	uint32_t function;
	uint32_t line;
};

struct recording_sample {
	int64_t tid;
	int64_t time_ns;
	uint32_t weight_us;
	uint32_t stack;
	uint32_t state;
};

/* A zero-initialised struct is empty. */
struct recording_samples {
	struct ops_intern functions; /* file, NUL, name */
	struct ops_intern stacks;    /* struct recording_stack; callers have smaller numbers */
	OPS_ARRAY(struct recording_sample) samples;
	struct ops_buffer text; /* scratch */
};

/* Returns whether a slot is a valid sample. */
bool recording_samples_is_valid(const struct ops_slot *slot, const struct ops_block *block, const struct ops_share *share);
/* Adds a valid sample. Returns false if out of memory; then it can be added again. */
bool recording_samples_add(struct recording_samples *samples, const struct ops_slot *slot, const struct ops_block *block,
                           const struct ops_share *share, int64_t time_ns);
/* Sets the metadata of the trace if there are samples. */
enum ops_code recording_samples_describe(struct recording_samples *samples, struct ops_trace *trace, struct ops_error *error);
void recording_samples_release(struct recording_samples *samples);

#endif
