/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches replies that took long to make; the least recently used are dropped first. Concurrent requests for the same
 * reply make it once: the first makes it, the others wait.
 */
#ifndef OPS_SERVE_CACHE_H
#define OPS_SERVE_CACHE_H

#include "serve/reply.h"
#include "serve/workers.h"

struct cache;

struct cache *cache_new(struct workers *workers);
void cache_free(struct cache *cache); /* when nobody waits; NULL is allowed */

enum cache_found { CACHE_HAS, CACHE_WAIT, CACHE_MAKE };

/* CACHE_HAS: `*ret_reply` is another reference. CACHE_WAIT: `waiter` is run when it is made, or is not to be had. CACHE_MAKE:
 * the caller makes it, and hands it to cache_put. Without memory for the entry it is made twice. */
enum cache_found cache_find(struct cache *cache, const char *key, struct job *waiter, struct reply **ret_reply);
/* Keeps the reply if it is one (NULL, or an error: not), and runs those who wait. */
void cache_put(struct cache *cache, const char *key, struct reply *reply);

#endif
