/* SPDX-License-Identifier: Apache-2.0
 *
 * Which coroutine runs on a thread: an asyncio task, other code with its own context (contextvars), or a greenlet.
 */
#ifndef OPS_EXT_COROUTINES_H
#define OPS_EXT_COROUTINES_H

/* From now on the recorder learns of coroutines (ops_note_context in collector.h). With the GIL; never fails. */
void ops_ext_watch_coroutines(void);

#endif
