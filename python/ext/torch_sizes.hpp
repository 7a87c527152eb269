/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes of living allocations, by device and address: allocators get only the address when memory is freed. Part of
 * torch_bridge.cpp.
 *
 * Torch keeps such a table itself, for its profiler: one mutex for all threads, and a node on the heap for each allocation. This one
 * has open addressing, and one lock for each part of it, held for some instructions.
 */
#ifndef OPS_TORCH_SIZES_HPP
#define OPS_TORCH_SIZES_HPP

#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sched.h>

namespace {
namespace sizes {

struct entry {
	uint64_t key; /* 0: free */
	uint64_t bytes;
};

constexpr size_t part_bits = 4;
constexpr size_t first_entries = 256;

struct alignas(64) part {
	std::atomic_flag locked = ATOMIC_FLAG_INIT;
	entry *entries = nullptr; /* `mask` + 1 of them; NULL: none yet */
	size_t mask = 0;
	size_t count = 0;
};
part parts[size_t{1} << part_bits];

class holding {
public:
	explicit holding(part &of) : held(of)
	{
		while (held.locked.test_and_set(std::memory_order_acquire))
			sched_yield(); /* its thread has probably been preempted */
	}
	~holding()
	{
		held.locked.clear(std::memory_order_release);
	}
	holding(const holding &) = delete;
	holding &operator=(const holding &) = delete;

private:
	part &held;
};

inline uint64_t key_of(const void *address, c10::Device device)
{
	return reinterpret_cast<uintptr_t>(address) ^
	       (static_cast<uint64_t>(device.type()) << 58 | (static_cast<uint64_t>(device.index()) & 63) << 52);
}

inline uint64_t hash_of(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u;
}

inline part &part_of(uint64_t key)
{
	return parts[hash_of(key) >> (64 - part_bits)];
}

inline size_t place_of(const part &of, uint64_t key)
{
	return static_cast<size_t>(hash_of(key) >> 20) & of.mask;
}

/* Returns the entry of the key, or the free one where it belongs. */
inline entry *find(part &of, uint64_t key)
{
	size_t at = place_of(of, key);

	while (of.entries[at].key && of.entries[at].key != key)
		at = (at + 1) & of.mask;
	return &of.entries[at];
}

/* Returns false if out of memory. */
inline bool make_room(part &of)
{
	part grown;

	if (of.entries && of.count < of.mask / 2)
		return true;
	grown.mask = of.entries ? 2 * of.mask + 1 : first_entries - 1;
	grown.entries = static_cast<entry *>(std::calloc(grown.mask + 1, sizeof(entry)));
	if (!grown.entries)
		return of.entries && of.count < of.mask;
	for (size_t i = 0; of.entries && i <= of.mask; i++)
		if (of.entries[i].key)
			*find(grown, of.entries[i].key) = of.entries[i];
	std::free(of.entries);
	of.entries = grown.entries;
	of.mask = grown.mask;
	return true;
}

/* Does nothing if out of memory: then the free will not be recorded. */
inline void put(uint64_t key, uint64_t bytes)
{
	part &of = part_of(key);
	const holding held(of);

	if (!make_room(of))
		return;
	entry *const at = find(of, key);
	of.count += at->key == 0;
	*at = {key, bytes};
}

/* Returns the size that was put; 0 if there is none. */
inline uint64_t remove(uint64_t key)
{
	part &of = part_of(key);
	const holding held(of);

	if (!of.entries)
		return 0;
	entry *hole = find(of, key);
	const uint64_t bytes = hole->key ? hole->bytes : 0;
	if (!hole->key)
		return 0;
	of.count--;
	/* Entries after it move up, so that no search ends at the hole. */
	for (size_t at = static_cast<size_t>(hole - of.entries);;) {
		at = (at + 1) & of.mask;
		const entry &next = of.entries[at];
		if (!next.key)
			break;
		const size_t home = place_of(of, next.key);
		if (((at - home) & of.mask) >= ((at - static_cast<size_t>(hole - of.entries)) & of.mask)) {
			*hole = next;
			hole = &of.entries[at];
		}
	}
	*hole = {};
	return bytes;
}

/* Removes all entries. Calls `each(key, bytes)` for them. */
template <typename Each>
void drain(Each each)
{
	for (part &of : parts) {
		const holding held(of);

		for (size_t i = 0; of.entries && i <= of.mask; i++)
			if (of.entries[i].key)
				each(of.entries[i].key, of.entries[i].bytes);
		std::free(of.entries);
		of.entries = nullptr;
		of.mask = of.count = 0;
	}
}

/* In a forked child, no thread holds a lock any more. */
inline void forked()
{
	for (part &of : parts)
		of.locked.clear(std::memory_order_release);
}

} // namespace sizes
} // namespace

#endif
