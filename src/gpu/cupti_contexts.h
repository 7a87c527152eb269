/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA contexts that end during a recording. CUPTI loses the records of a context when it ends, so they are fetched before.
 *
 * The callbacks used are those of calls that end contexts, not CONTEXT_DESTROY_STARTING: since 13.4 the header allows
 * cuptiActivityFlushAll only in callbacks of calls, and lists those of resources among the ones in which it is not allowed.
 */
#ifndef OPS_GPU_CUPTI_CONTEXTS_H
#define OPS_GPU_CUPTI_CONTEXTS_H

#include "gpu/cupti_library.h"

/* Enables a subscriber's callbacks for calls that end a context. */
void ops_cupti_contexts_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber);
/* Handles the callback of a call. Any thread. */
void ops_cupti_contexts_on_call(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback);

#endif
