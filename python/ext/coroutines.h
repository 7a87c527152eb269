/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies the coroutine that runs on a thread: an asyncio task, other code with its own context (contextvars), or a greenlet.
 */
#ifndef OPS_EXT_COROUTINES_H
#define OPS_EXT_COROUTINES_H

/* Enables noting coroutines (ops_note_context in collector.h). Requires the GIL; never fails. */
void ops_ext_watch_coroutines(void);

#endif
