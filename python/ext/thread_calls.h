/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for, by what the kernel says of it in /proc/self/task/TID/syscall: the system call in which it is blocked, with its
 * arguments, or "running" of one that runs or is ready to.
 *
 * A thread that waits for the GIL waits at an address in the interpreter's runtime state; other locks are elsewhere.
 */
#ifndef OPS_EXT_THREAD_CALLS_H
#define OPS_EXT_THREAD_CALLS_H

#include <opstrobe/internal/thread_states.h>

/* Before the other is called. */
void ops_thread_calls_init(void);
/* OPS_THREAD_RUNNING of one that is not blocked. Any thread. */
enum ops_thread_state ops_thread_call_state(const char *text);

#endif
