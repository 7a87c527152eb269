/* SPDX-License-Identifier: Apache-2.0
 *
 * Torch's CPU allocator with functions that are called at each allocation and free. Allocators report to the calling thread's
 * profiler state. A thread that never ran an operator has none, so its frees would be missing. Part of torch_bridge.cpp.
 *
 * It forwards to the allocator that torch had at the first session that needed it, and lasts for the life of the process, because
 * memory may be freed at any later time. While allocations are not recorded, torch has its own allocator. An allocator installed by
 * other code is not replaced.
 */
#ifndef OPS_TORCH_ALLOCATOR_HPP
#define OPS_TORCH_ALLOCATOR_HPP

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace {

/* In torch_bridge.cpp: before an allocation or free, after an allocation, when one has failed, and before a free. */
void prepare_thread() noexcept;
void note_allocated(const void *memory, size_t bytes) noexcept;
void note_failed(size_t bytes) noexcept;
void note_freed(const void *memory) noexcept;

namespace allocator {

c10::Allocator *theirs = nullptr;
c10::DeleterFnPtr free_theirs = nullptr;

void free_memory(void *memory)
{
	prepare_thread();
	note_freed(memory);
	free_theirs(memory);
}

c10::DataPtr allocate_theirs(size_t bytes)
{
	try {
		return theirs->allocate(bytes);
	} catch (...) {
		note_failed(bytes);
		throw;
	}
}

class forwarding final : public c10::Allocator {
public:
	c10::DataPtr allocate(size_t bytes) override
	{
		prepare_thread();
		c10::DataPtr taken = allocate_theirs(bytes);
		if (taken.get_context() != taken.get() || taken.get_deleter() != free_theirs)
			return taken; /* which must not be freed like other memory */
		void *const memory = taken.release_context();
		note_allocated(memory, bytes);
		return {memory, memory, &free_memory, taken.device()};
	}
	c10::DeleterFnPtr raw_deleter() const override
	{
		return &free_memory;
	}
	void copy_data(void *to, const void *from, std::size_t count) const override
	{
		theirs->copy_data(to, from, count);
	}
};

forwarding *ours = nullptr; /* never freed, because storages point to it */

/* Returns whether torch now allocates through it. */
bool put()
{
	c10::Allocator *const present = c10::GetCPUAllocator();

	if (!ours && present->raw_deleter()) {
		theirs = present;
		free_theirs = present->raw_deleter();
		ours = new forwarding;
	}
	if (ours && present == theirs)
		c10::SetCPUAllocator(ours);
	return ours && c10::GetCPUAllocator() == ours;
}

void remove()
{
	if (ours && c10::GetCPUAllocator() == ours)
		c10::SetCPUAllocator(theirs);
}

} // namespace allocator
} // namespace

#endif
