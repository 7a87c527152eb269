/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled Python stacks of a recording: the metadata "python_samples" (written by read/recording_samples.c).
 *
 *     {"version": 1, "start_ns": …, "states": ["running", …],
 *      "functions": [[file, name], …],
 *      "stacks": [caller or -1, function, line, …],           a stack is its innermost frame and the stack of the callers
 *      "threads": [{"tid": …, "samples": [microseconds since the start, microseconds, stack, state, …]}, …]}
 *
 * If several processes have some, the metadata is a list of such objects. Stacks of a process that multiprocessing started begin there: of a forked
 * process, the frames before are those of its parent.
 *
 * A sample is the stack of a thread at one point of wall-clock time, whether the thread ran or waited. It represents
 * the time since the previous sample.
 */
#ifndef OPS_DERIVE_PYTHON_SAMPLES_H
#define OPS_DERIVE_PYTHON_SAMPLES_H

#include <stdbool.h>

#include <opstrobe/internal/thread_states.h>
#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/buffer.h"

struct ops_sampled_function {
	struct ops_string file, name;
};

struct ops_sampled_stack {
	uint32_t caller; /* index of the caller, which is smaller; OPS_NONE: none */
	uint32_t function;
	uint32_t line; /* 0: unknown */
};

struct ops_python_sample {
	int64_t tid;
	int64_t time_ns;
	int64_t weight_ns; /* duration that it represents */
	uint32_t stack;
	enum ops_thread_state state; /* OPS_THREAD_STATES: unknown */
};

struct ops_python_samples {
	OPS_ARRAY(struct ops_sampled_function) functions;
	OPS_ARRAY(struct ops_sampled_stack) stacks;
	OPS_ARRAY(struct ops_python_sample) samples; /* grouped by thread, in order of time */
	struct ops_buffer texts;                     /* storage of the functions' texts */
};

/* Reads the samples; empty if the trace has none or they are invalid. Returns false if out of memory. The caller must
 * release them in any case. */
bool ops_python_samples_read(struct ops_python_samples *samples, const struct ops_trace *trace);
void ops_python_samples_release(struct ops_python_samples *samples);

/* Appends the innermost frame of a stack as in names of events: "train.py(9): step". */
void ops_sampled_frame_append(struct ops_buffer *out, const struct ops_python_samples *samples, const struct ops_sampled_stack *stack);

/* Returns, by stack, the stack of its innermost frame that is of the program: the stack itself or a caller; OPS_NONE: none. An import is a part
 * of the frame that imports. Freed with ops_free. NULL if out of memory. */
uint32_t *ops_sampled_program_frames(const struct ops_python_samples *samples);

/* Returns, by sample, the innermost row on its thread at its time; OPS_NONE: none. Freed with ops_free. NULL if out of memory. */
uint32_t *ops_python_sample_rows(const struct ops_python_samples *samples, const struct ops_trace *trace);

/* What a stack does in a worker of a data loader of torch. */
enum ops_sampled_worker {
	OPS_SAMPLED_ELSEWHERE, /* the stack is of something else */
	OPS_SAMPLED_WORKS,
	OPS_SAMPLED_IDLES,     /* the worker waits for the indices of its next batch */
};

/* Returns, by stack, what it does, enum ops_sampled_worker. Freed with ops_free. NULL if out of memory. */
uint8_t *ops_sampled_workers(const struct ops_python_samples *samples);

/* Returns, by sample, 1 if a helper thread (helper_waits.h) or a worker without a batch waits. Freed with ops_free. NULL if out of memory. */
uint8_t *ops_python_sample_waits(const struct ops_python_samples *samples, const struct ops_trace *trace);

#endif
