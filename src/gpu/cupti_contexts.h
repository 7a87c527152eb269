/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of CUDA that end while they are recorded. What CUPTI has of a context goes with it, so its records are fetched before.
 *
 * Of what CUPTI tells of, that is the calls that end contexts, and not CONTEXT_DESTROY_STARTING: from 13.4 on its header allows
 * cuptiActivityFlushAll in callbacks of calls alone, and names those of resources among the ones it is not allowed in.
 */
#ifndef OPS_GPU_CUPTI_CONTEXTS_H
#define OPS_GPU_CUPTI_CONTEXTS_H

#include "gpu/cupti_library.h"

/* Asks a subscriber's callback to be told of calls that end a context. */
void ops_cupti_contexts_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber);
/* What the callback was told of a call. Any thread. */
void ops_cupti_contexts_told(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback);

#endif
