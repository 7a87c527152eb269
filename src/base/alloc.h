/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of the library goes through here, so that a test can make each one fail once.
 */
#ifndef OPS_BASE_ALLOC_H
#define OPS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>

/* As malloc, calloc, realloc, and ops_free as free; NULL when memory is out, or the limit of the thread is reached (base/limit.h). Sizes are checked
 * against overflow in the _array forms. */
void *ops_alloc(size_t bytes);
void *ops_alloc_zeroed(size_t count, size_t bytes_each);
void *ops_realloc_array(void *old, size_t count, size_t bytes_each);
/* An array of OPS_NONE. */
uint32_t *ops_alloc_none(size_t count);

/* Anonymous pages, zeroed, aligned to `bytes` when that is a power of two up to 2 MiB. NULL when memory is out. */
void *ops_pages_map(size_t bytes);
void ops_pages_unmap(void *pages, size_t bytes);
/* Lets the system serve memory, wherever it is from, by pages of 2 MiB where there is room for one: for what will be used to its
 * end. To find and clear a large page takes a tenth of the time that as much of small ones takes. */
void ops_pages_large(void *memory, size_t bytes);

/* Tests only: the nth allocation from now (1-based; 0: none) fails, and with `all_after` so does every later one. */
void ops_alloc_fail_at(uint64_t nth, bool all_after);
/* Tests only: allocations attempted since ops_alloc_fail_at was last called. */
uint64_t ops_alloc_count(void);

#endif
