/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/thread_states.h: what a thread can be found doing. The numbers are those of the metadata "thread_states"
 * of a recording.
 */
#ifndef OPSTROBE_THREAD_STATES_H
#define OPSTROBE_THREAD_STATES_H

enum ops_thread_state {
	OPS_THREAD_RUNNING,
	OPS_THREAD_READY,    /* to run, but others have the processors */
	OPS_THREAD_GIL,      /* waits for the global interpreter lock */
	OPS_THREAD_LOCK,     /* for a lock, a queue or another thread */
	OPS_THREAD_IO,       /* for a file, a pipe or the network */
	OPS_THREAD_PROCESS,  /* for a process to end */
	OPS_THREAD_SLEEPING, /* for a time */
	OPS_THREAD_WAITING,  /* it was blocked between two samples */
	OPS_THREAD_STATES
};

#endif
