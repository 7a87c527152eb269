/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages of tensors, for tracking which of them exist (torch_bridge.h): none of this runs while an operator is recorded. Part
 * of torch_bridge.cpp.
 */
#ifndef OPS_TORCH_STORAGES_HPP
#define OPS_TORCH_STORAGES_HPP

#include "torch_payload.hpp"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

namespace {

using held_storage = c10::weak_intrusive_ptr<c10::StorageImpl>;

c10::StorageImpl *storage_of(const void *impl, bool gradient)
{
	const auto *tensor = static_cast<const at::TensorImpl *>(impl);

	if (gradient)
		tensor = tensor->grad().unsafeGetTensorImpl(); /* the undefined tensor if there is no gradient */
	return tensor->has_storage() ? tensor->unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

bool tensor_storage(const void *tensor, bool gradient, ops_storage *ret_storage) noexcept
{
	const c10::StorageImpl *memory = storage_of(tensor, gradient);

	return memory && describe_storage(memory, false, ret_storage);
}

void *storage_hold(const void *tensor, bool gradient) noexcept
{
	c10::StorageImpl *memory = storage_of(tensor, gradient);

	return memory ? held_storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(memory)).release() : nullptr;
}

bool storage_look(void *held, ops_storage *ret_storage) noexcept
{
	auto weak = held_storage::reclaim(static_cast<c10::StorageImpl *>(held));
	const auto memory = weak.lock();

	weak.release();
	return memory && describe_storage(memory.get(), false, ret_storage);
}

void storage_drop(void *held) noexcept
{
	held_storage::reclaim(static_cast<c10::StorageImpl *>(held));
}

} // namespace

#endif
