/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of the library is made here, so that tests can make each one fail once.
 */
#ifndef OPS_BASE_ALLOC_H
#define OPS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>

/* Like malloc, calloc, realloc and free. Return NULL if out of memory or if the limit of the thread is reached (base/limit.h).
 * The _array forms check sizes for overflow. */
void *ops_alloc(size_t bytes);
void *ops_alloc_zeroed(size_t count, size_t bytes_each);
void *ops_realloc_array(void *old, size_t count, size_t bytes_each);
/* Returns an array of OPS_NONE. */
uint32_t *ops_alloc_none(size_t count);

/* Returns anonymous pages, zeroed, aligned to `bytes` if that is a power of two up to 2 MiB. Returns NULL if out of memory. */
void *ops_pages_map(size_t bytes);
void ops_pages_unmap(void *pages, size_t bytes);
/* Lets the system back memory, from any allocation, with pages of 2 MiB where one fits, for memory that will be used completely.
 * Faulting in a large page takes a tenth of the time of as many bytes in small pages. */
void ops_pages_large(void *memory, size_t bytes);

/* For tests: the nth allocation from now (1-based; 0: none) fails, and with `all_after` also every later one. */
void ops_alloc_fail_at(uint64_t nth, bool all_after);
/* For tests: number of allocations attempted since the last call of ops_alloc_fail_at. */
uint64_t ops_alloc_count(void);

#endif
