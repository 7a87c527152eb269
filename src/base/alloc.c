/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation, with a switch that makes selected allocations fail; see alloc.h.
 */
#include "base/alloc.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limit.h"

/* Set by the first ops_alloc_fail_at, so that a program that never calls it pays one load and shares no counter. */
static bool counting;
static uint64_t attempted;
static uint64_t failing; /* number of the attempt that fails; 0: none */
static bool failing_after;

static bool made_to_fail(void)
{
	uint64_t number;
	uint64_t target;

	if (!__atomic_load_n(&counting, __ATOMIC_RELAXED))
		return false;
	number = __atomic_add_fetch(&attempted, 1, __ATOMIC_RELAXED);
	target = __atomic_load_n(&failing, __ATOMIC_RELAXED);
	if (target == 0)
		return false;
	return number == target || (number > target && __atomic_load_n(&failing_after, __ATOMIC_RELAXED));
}

void ops_alloc_fail_at(uint64_t nth, bool all_after)
{
	__atomic_store_n(&attempted, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&failing, nth, __ATOMIC_RELAXED);
	__atomic_store_n(&failing_after, all_after, __ATOMIC_RELAXED);
	__atomic_store_n(&counting, true, __ATOMIC_RELAXED);
}

uint64_t ops_alloc_count(void)
{
	return __atomic_load_n(&attempted, __ATOMIC_RELAXED);
}

/* A process without limits only pays one load. */
static bool has_limits(void)
{
	return __atomic_load_n(&ops_limits_in_use, __ATOMIC_RELAXED);
}

/* `freed`: bytes that are freed at the same time. */
static bool is_refused(size_t bytes, size_t freed)
{
	return made_to_fail() || (has_limits() && !ops_limit_allows(bytes > freed ? bytes - freed : 0));
}

static void *counted(void *memory)
{
	if (has_limits())
		ops_limit_add(malloc_usable_size(memory));
	return memory;
}

void *ops_alloc(size_t bytes)
{
	return is_refused(bytes, 0) ? NULL : counted(malloc(bytes ? bytes : 1));
}

void *ops_alloc_zeroed(size_t count, size_t bytes_each)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, bytes_each, &bytes) || is_refused(bytes, 0))
		return NULL;
	return counted(calloc(1, bytes ? bytes : 1));
}

void *ops_realloc_array(void *old, size_t count, size_t bytes_each)
{
	size_t bytes, before = has_limits() ? malloc_usable_size(old) : 0;
	void *memory;

	if (__builtin_mul_overflow(count, bytes_each, &bytes) || is_refused(bytes, before))
		return NULL;
	memory = realloc(old, bytes ? bytes : 1);
	if (memory)
		ops_limit_subtract(before);
	return counted(memory);
}

uint32_t *ops_alloc_none(size_t count)
{
	uint32_t *numbers = ops_realloc_array(NULL, count, sizeof(*numbers));

	return numbers ? memset(numbers, 0xff, count * sizeof(*numbers)) : NULL;
}

void ops_free(void *memory)
{
	if (has_limits())
		ops_limit_subtract(malloc_usable_size(memory));
	free(memory);
}

#define PAGE_BYTES 4096u
#define LARGE_PAGE_BYTES (2u << 20)

/* To get an aligned range, maps more pages and unmaps the excess. */
void *ops_pages_map(size_t bytes)
{
	bool align = bytes > PAGE_BYTES && bytes <= LARGE_PAGE_BYTES && (bytes & (bytes - 1)) == 0;
	size_t mapped = align ? bytes * 2 : bytes;
	size_t before;
	char *pages;

	if (is_refused(bytes, 0))
		return NULL;
	pages = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
	if (has_limits())
		ops_limit_add(bytes);
	if (!align)
		return pages;
	before = (size_t)(-(uintptr_t)pages & (bytes - 1));
	if (before)
		munmap(pages, before);
	if (bytes - before)
		munmap(pages + before + bytes, bytes - before);
	return pages + before;
}

void ops_pages_large(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
	size_t before = (uintptr_t)memory % PAGE_BYTES; /* neighbours in one mapping share large pages */

	if (bytes >= LARGE_PAGE_BYTES)
		(void)madvise((char *)memory - before, before + bytes, MADV_HUGEPAGE); /* fails if the kernel does not support them */
#else
	(void)memory, (void)bytes;
#endif
}

void ops_pages_unmap(void *pages, size_t bytes)
{
	if (!pages)
		return;
	if (has_limits())
		ops_limit_subtract(bytes);
	munmap(pages, bytes);
}
