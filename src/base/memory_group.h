/* SPDX-License-Identifier: Apache-2.0
 *
 * The control group that limits the memory of a process, version 1 or 2.
 */
#ifndef OPS_BASE_MEMORY_GROUP_H
#define OPS_BASE_MEMORY_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the folder of this process's group to `ret_folder`. In a container, it may be the root. Returns false, with an empty
 * text, if there is none or the path does not fit into `size` bytes. */
bool ops_memory_group_find(char *ret_folder, size_t size);
/* Returns the smallest limit of the group and its ancestors in bytes; UINT64_MAX: none. */
uint64_t ops_memory_group_limit(const char *folder);

/* Returns the memory that the group and its ancestors leave under their limits, UINT64_MAX without one. Memory that caches files
 * is free, because the kernel can drop it. */
uint64_t ops_memory_group_free(const char *folder);

/* What happened in a group so far; zeros if the folder does not exist. */
struct ops_memory_group_events {
	int64_t failures;  /* allocations that failed, or nearly, at the limit; only in version 2 */
	int64_t oom_kills; /* processes that the kernel killed, because their memory was needed */
};
void ops_memory_group_events_read(const char *folder, struct ops_memory_group_events *ret_events);

#endif
