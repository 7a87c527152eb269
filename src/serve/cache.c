/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies by key; see cache.h. There are few entries, because each took long to compute.
 */
#include "serve/cache.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

#define ENTRIES_MAX 256
#define BYTES_MAX (UINT64_C(128) << 20)

struct entry {
	struct entry *next; /* used less recently */
	struct reply *reply; /* NULL: being computed */
	struct job *waiters;
	char key[];
};

struct cache {
	pthread_mutex_t lock; /* protects the following members */
	struct entry *entries;
	struct workers *workers;
};

struct cache *cache_new(struct workers *workers)
{
	struct cache *cache = ops_alloc_zeroed(1, sizeof(*cache));

	if (cache) {
		pthread_mutex_init(&cache->lock, NULL);
		cache->workers = workers;
	}
	return cache;
}

void cache_free(struct cache *cache)
{
	if (!cache)
		return;
	while (cache->entries) {
		struct entry *entry = cache->entries;

		cache->entries = entry->next;
		reply_unref(entry->reply);
		ops_free(entry);
	}
	pthread_mutex_destroy(&cache->lock);
	ops_free(cache);
}

/* Removes the entry of a key from the list and returns it, or NULL. */
static struct entry *cache_remove(struct cache *cache, const char *key)
{
	for (struct entry **at = &cache->entries; *at; at = &(*at)->next) {
		struct entry *entry = *at;

		if (strcmp(entry->key, key) != 0)
			continue;
		*at = entry->next;
		return entry;
	}
	return NULL;
}

static void cache_put_first(struct cache *cache, struct entry *entry)
{
	entry->next = cache->entries;
	cache->entries = entry;
}

static struct entry *new_entry(const char *key)
{
	size_t size = strlen(key) + 1;
	struct entry *entry = ops_alloc_zeroed(1, sizeof(*entry) + size);

	if (entry)
		memcpy(entry->key, key, size);
	return entry;
}

enum cache_found cache_find(struct cache *cache, const char *key, struct job *waiter, struct reply **ret_reply)
{
	enum cache_found found = CACHE_MAKE;
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = cache_remove(cache, key);
	if (!entry) {
		entry = new_entry(key);
	} else if (entry->reply) {
		*ret_reply = reply_ref(entry->reply);
		found = CACHE_HAS;
	} else {
		waiter->next = entry->waiters;
		entry->waiters = waiter;
		found = CACHE_WAIT;
	}
	if (entry)
		cache_put_first(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	return found;
}

/* Drops entries beyond the limits, except those being computed. */
static void cache_trim(struct cache *cache)
{
	uint64_t bytes = 0;
	size_t count = 0;

	for (struct entry **at = &cache->entries; *at;) {
		struct entry *entry = *at;

		bytes += entry->reply ? entry->reply->size : 0;
		count++;
		if (!entry->reply || (bytes <= BYTES_MAX && count <= ENTRIES_MAX)) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		bytes -= entry->reply->size;
		reply_unref(entry->reply);
		ops_free(entry);
	}
}

void cache_put(struct cache *cache, const char *key, struct reply *reply)
{
	struct job *waiters = NULL;
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = cache_remove(cache, key);
	if (entry) {
		waiters = entry->waiters;
		entry->waiters = NULL;
	}
	if (entry && reply && reply->status == 200 && !entry->reply)
		entry->reply = reply_ref(reply);
	if (entry && entry->reply)
		cache_put_first(cache, entry);
	else
		ops_free(entry);
	cache_trim(cache);
	pthread_mutex_unlock(&cache->lock);
	while (waiters) {
		struct job *waiter = waiters;

		waiters = waiter->next;
		workers_submit(cache->workers, waiter, false);
	}
}
