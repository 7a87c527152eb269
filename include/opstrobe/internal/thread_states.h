/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/thread_states.h: states in which a thread can be. The numbers are used in the metadata "thread_states" of
 * recordings.
 */
#ifndef OPSTROBE_THREAD_STATES_H
#define OPSTROBE_THREAD_STATES_H

#include <stdbool.h>

enum ops_thread_state {
	OPS_THREAD_RUNNING,
	OPS_THREAD_READY,    /* runnable, but other threads have the processors */
	OPS_THREAD_GIL,      /* waits for the global interpreter lock */
	OPS_THREAD_LOCK,     /* waits for a lock, a queue or another thread */
	OPS_THREAD_IO,       /* waits for a file, a pipe or the network */
	OPS_THREAD_PROCESS,  /* waits for a process to end */
	OPS_THREAD_SLEEPING, /* waits for a time */
	OPS_THREAD_WAITING,  /* was blocked between two samples */
	OPS_THREAD_STATES
};

/* Whether a thread in this state waits for something else than a processor or the interpreter; false if the state is unknown. */
static inline bool ops_thread_state_waits(enum ops_thread_state state)
{
	return state >= OPS_THREAD_LOCK && state < OPS_THREAD_STATES;
}

/* Their names in JSON, in the order of the enumeration. */
#define OPS_THREAD_STATE_NAMES "running", "ready", "gil", "lock", "io", "process", "sleeping", "waiting"

#endif
