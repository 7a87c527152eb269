/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches slow replies; the least recently used are dropped first. Of concurrent requests for the same reply, the first computes
 * it and the others wait.
 */
#ifndef OPS_SERVE_CACHE_H
#define OPS_SERVE_CACHE_H

#include "serve/reply.h"
#include "serve/workers.h"

struct cache;

struct cache *cache_new(struct workers *workers);
void cache_free(struct cache *cache); /* nobody may be waiting; NULL is allowed */

enum cache_found { CACHE_HAS, CACHE_WAIT, CACHE_MAKE };

/* CACHE_HAS: `*ret_reply` is another reference. CACHE_WAIT: `waiter` runs when the reply has been computed or has failed.
 * CACHE_MAKE: the caller computes it and passes it to cache_put. If there is no memory for the entry, it is computed twice. */
enum cache_found cache_find(struct cache *cache, const char *key, struct job *waiter, struct reply **ret_reply);
/* Keeps the reply, unless it is NULL or an error, and runs the waiting jobs. */
void cache_put(struct cache *cache, const char *key, struct reply *reply);

#endif
