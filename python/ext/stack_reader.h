/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of Python threads, read from outside the interpreter: without the GIL, without allocation, even while another thread
 * never releases the GIL, and in signal handlers. Threads that run meanwhile may show a stack that never existed; nothing worse
 * can happen, since memory is read through the kernel, which rejects invalid addresses.
 */
#ifndef OPS_EXT_STACK_READER_H
#define OPS_EXT_STACK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/watch.h>

#include "frames.h"

/* Called with the GIL, once before the other functions; and again in a forked child. */
void ops_stacks_init(void);

/* Reads all threads of the interpreter, the newest first; returns their number. */
size_t ops_stacks_read(struct ops_stack *ret_stacks, size_t capacity);

/* Reads the stack of the calling thread. */
void ops_stack_read_own(struct ops_stack *ret_stack);

/* Reads a frame, which is a copy or of the calling thread. Returns false for a frame of C code. */
bool ops_stack_frame_read(ops_frame *frame, struct ops_stack_frame *ret_frame);

/* Reads the stack of the thread with that id. Returns false if there is none. */
bool ops_stack_read_of(int64_t tid, struct ops_stack *ret_stack);

/* The position of a frame, without its texts, for callers that cache the texts of positions. */
struct ops_stack_position {
	uintptr_t code;
	uintptr_t identity[3]; /* parts of the code object, which distinguish it from another one at the same address */
	int first_line;
	int offset; /* of the instruction */
};

struct ops_stack_positions {
	int64_t tid; /* 0: unknown */
	uint32_t count;
	bool is_cut; /* there are more frames */
	struct ops_stack_position items[OPS_SAMPLE_FRAMES_MAX]; /* innermost first */
};

/* An iterator over the threads of the interpreter. */
struct ops_stack_threads {
	void *next;
	int count;
};
void ops_stack_threads_start(struct ops_stack_threads *threads);
bool ops_stack_threads_next(struct ops_stack_threads *threads, struct ops_stack_positions *ret_stack);
/* Returns false if the code object no longer exists. */
bool ops_stack_position_resolve(const struct ops_stack_position *position, struct ops_stack_frame *ret_frame);

#endif
