/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of Python threads, read from outside the interpreter: without the GIL, without an allocation, also while another thread
 * holds the GIL forever, and in the handler of a signal. Threads that run meanwhile may show a stack that never was; nothing
 * worse happens, since memory is read through the kernel, which refuses what is not there.
 */
#ifndef OPS_EXT_STACK_READER_H
#define OPS_EXT_STACK_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/internal/watch.h>

/* Under the GIL, once before the others are called; again in a child of fork. */
void ops_stacks_init(void);

/* All threads of the interpreter, the newest first; returns how many. */
size_t ops_stacks_read(struct ops_stack *ret_stacks, size_t capacity);

/* The calling thread's. */
void ops_stack_read_own(struct ops_stack *ret_stack);

/* The thread of that number. False if there is none. */
bool ops_stack_read_of(int64_t tid, struct ops_stack *ret_stack);

#endif
