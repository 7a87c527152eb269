/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an operator's inputs to its slot's payload (inputs.h, storage.h): input lists, storages, texts, values. The payload is
 * built from the end downwards, so that each part can be written before its size is known. Part of torch_bridge.cpp, which
 * decides what is written; independent of sessions, threads and callbacks.
 */
#ifndef OPS_TORCH_PAYLOAD_HPP
#define OPS_TORCH_PAYLOAD_HPP

#include "torch_bridge.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <cstring>

#include <opstrobe/inputs.h>
#include <opstrobe/storage.h>

/* The path of every operator. Its cache lines are cold each time, so their number matters: few functions, no calls into other
 * libraries except for the name, rare cases elsewhere. */
#define OPS_INLINE __attribute__((always_inline)) inline
#define OPS_HOT __attribute__((noinline, hot))
#define OPS_COLD __attribute__((noinline, cold))

namespace {

/* The position at which a payload is built. The put_… functions write below `at` and return the start of what they wrote, or NULL
 * if there is no room or the position is no longer free. A tensor may compute its sizes with operators, which are recorded at the
 * same position; so nothing may be written once they have reserved a slot. */
struct place {
	char *low;
	const ops_thread *thread; /* whose block this is */
	const ops_block *block;   /* its block and slots when the payload was begun */
	uint32_t slots;
	bool short_lists; /* leave out tensor lists of more than OPS_INPUT_LIST_MAX */
};

inline char *reserve(const place &to, char *at, size_t bytes)
{
	if (OPS_UNLIKELY(static_cast<size_t>(at - to.low) < bytes || to.thread->reserved_slots != to.slots ||
	                 to.thread->block != to.block))
		return nullptr;
	return at - bytes;
}

inline char *put_item(const place &to, char *at, uint8_t tag, size_t n = 0, const void *data = nullptr, size_t bytes = 0,
                      uint8_t dtype = 0)
{
	const ops_input_head head = {tag, dtype, static_cast<uint16_t>(n)};

	at = reserve(to, at, sizeof(head) + bytes);
	if (OPS_UNLIKELY(!at))
		return nullptr;
	std::memcpy(at, &head, sizeof(head));
	if (bytes)
		std::memcpy(at + sizeof(head), data, bytes);
	return at;
}

inline bool is_plain(const at::TensorImpl *tensor)
{
	return tensor != c10::UndefinedTensorImpl::singleton() && !tensor->is_nested() &&
	       !tensor->has_symbolic_sizes_strides();
}

inline uint8_t dtype_of(const at::TensorImpl *tensor)
{
	caffe2::TypeMeta type = tensor->dtype(); /* a copy, because torch 2.4 requires one that it may change */
	return static_cast<uint8_t>(type.toScalarType());
}

/* Adds a number to a hash of an input list. It need not be a good hash: see reserve_list. */
OPS_INLINE void stir(uint64_t *hash, uint64_t number)
{
	*hash = (*hash << 5 | *hash >> 59) ^ number;
}

/* Writes head, sizes and strides of a tensor, from `at` upwards. */
OPS_INLINE void write_strided(char *at, size_t n, const int64_t *sizes, const int64_t *strides, uint8_t dtype,
                              uint64_t *hash)
{
	const ops_input_head head = {OPS_INPUT_TENSOR, dtype, static_cast<uint16_t>(n)};
	char *const first = at + sizeof(head);

	std::memcpy(at, &head, sizeof(head));
	stir(hash, dtype);
	for (size_t i = 0; i < n; i++) { /* both in one loop, because the processor mispredicts its exit */
		std::memcpy(first + i * sizeof(int64_t), &sizes[i], sizeof(int64_t));
		std::memcpy(first + (n + i) * sizeof(int64_t), &strides[i], sizeof(int64_t));
		stir(hash, static_cast<uint64_t>(sizes[i]) + 3 * static_cast<uint64_t>(strides[i]));
	}
}

/* Returns the 4 bytes of a head. */
OPS_INLINE uint32_t head_word(uint8_t tag, uint8_t dtype, size_t n)
{
	const ops_input_head head = {tag, dtype, static_cast<uint16_t>(n)};
	uint32_t word;

	std::memcpy(&word, &head, sizeof(word));
	return word;
}

constexpr size_t strided_bytes(size_t n)
{
	return sizeof(ops_input_head) + 2 * n * sizeof(int64_t);
}

inline char *put_strided(const place &to, char *at, const at::TensorImpl *tensor)
{
	const auto sizes = tensor->sizes();
	const auto strides = tensor->strides();

	at = reserve(to, at, strided_bytes(sizes.size()));
	uint64_t hash = 0;
	if (at)
		write_strided(at, sizes.size(), sizes.data(), strides.data(), dtype_of(tensor), &hash);
	return at;
}

inline char *put_plain_tensor(const place &to, char *at, const at::TensorImpl *tensor)
{
	if (OPS_LIKELY(tensor->layout() == c10::kStrided))
		return put_strided(to, at, tensor);
	const auto sizes = tensor->sizes();
	return put_item(to, at, OPS_INPUT_TENSOR_PLAIN, sizes.size(), sizes.data(), sizes.size() * sizeof(int64_t),
	                dtype_of(tensor));
}

/* A tensor with one of these keys may have no strides or no plain sizes. */
constexpr auto odd_keys = c10::sparse_ks | c10::sparse_csr_ks | c10::mkldnn_ks | c10::python_ks |
                          c10::DispatchKeySet(c10::DispatchKey::NestedTensor);

/* The sizes and strides that are stored in a tensor. NULL for tensors that compute them, perhaps with operators, or have none. */
struct standing_sizes : at::TensorImpl {
	static const c10::impl::SizesAndStrides *of(const at::TensorImpl *tensor)
	{
		constexpr auto matches = &standing_sizes::matches_policy; /* for derived classes */
		constexpr auto held = &standing_sizes::sizes_and_strides_;
		const bool computed = (tensor->*matches)(SizesStridesPolicy::CustomStrides);
		return computed || tensor->key_set().has_any(odd_keys) ? nullptr : &(tensor->*held);
	}
};

/* Writes NONE for anything but a scalar. */
inline char *put_scalar(const place &to, char *at, const c10::IValue &value)
{
	if (value.isInt()) {
		const int64_t number = value.toInt();
		return put_item(to, at, OPS_INPUT_INT, 0, &number, sizeof(number));
	}
	if (value.isBool())
		return put_item(to, at, OPS_INPUT_BOOL, value.toBool());
	if (value.isDouble()) {
		const double number = value.toDouble();
		return put_item(to, at, OPS_INPUT_DOUBLE, 0, &number, sizeof(number));
	}
	if (value.isComplexDouble()) {
		const c10::complex<double> number = value.toComplexDouble();
		return put_item(to, at, OPS_INPUT_COMPLEX, 0, &number, sizeof(number));
	}
	return put_item(to, at, OPS_INPUT_NONE);
}

char *put_tensor_list(const place &to, char *at, c10::ArrayRef<c10::IValue> items)
{
	if (items.size() > UINT16_MAX || (to.short_lists && items.size() > OPS_INPUT_LIST_MAX))
		return put_item(to, at, OPS_INPUT_NONE);
	for (const c10::IValue &item : items)
		if (!is_plain(item.toTensor().unsafeGetTensorImpl()))
			return put_item(to, at, OPS_INPUT_NONE);
	for (size_t i = items.size(); at && i-- > 0;)
		at = put_plain_tensor(to, at, items[i].toTensor().unsafeGetTensorImpl());
	return at ? put_item(to, at, OPS_INPUT_TENSOR_LIST, items.size()) : nullptr;
}

char *put_int_list(const place &to, char *at, c10::ArrayRef<c10::IValue> items)
{
	int64_t numbers[OPS_INPUT_LIST_MAX];

	for (size_t i = 0; i < items.size(); i++)
		numbers[i] = items[i].toInt();
	return put_item(to, at, OPS_INPUT_INT_LIST, items.size(), numbers, items.size() * sizeof(numbers[0]));
}

char *put_scalar_list(const place &to, char *at, c10::ArrayRef<c10::IValue> items)
{
	bool ints = true;

	if (items.size() > OPS_INPUT_LIST_MAX)
		return put_item(to, at, OPS_INPUT_NONE);
	for (const c10::IValue &item : items) {
		if (!item.isInt() && !item.isBool() && !item.isDouble() && !item.isComplexDouble())
			return put_item(to, at, OPS_INPUT_NONE);
		ints = ints && item.isInt();
	}
	if (ints)
		return put_int_list(to, at, items);
	for (size_t i = items.size(); at && i-- > 0;)
		at = put_scalar(to, at, items[i]);
	return at ? put_item(to, at, OPS_INPUT_SCALAR_LIST, items.size()) : nullptr;
}

/* Writes any value; NONE for a tensor whose sizes are not available. */
__attribute__((noinline)) char *put_any(const place &to, char *const at, const c10::IValue &value) noexcept
{
	try {
		if (value.isTensor()) {
			const at::TensorImpl *const tensor = value.toTensor().unsafeGetTensorImpl();
			return is_plain(tensor) ? put_plain_tensor(to, at, tensor) : put_item(to, at, OPS_INPUT_NONE);
		}
		if (!value.isList())
			return put_scalar(to, at, value);
		const auto items = value.toListRef();
		const bool numbers = !items.empty() && items[0].isInt(); /* in most cases; querying the type of a list is slow */
		return !numbers && value.isTensorList() ? put_tensor_list(to, at, items) : put_scalar_list(to, at, items);
	} catch (...) {
		return put_item(to, at, OPS_INPUT_NONE);
	}
}

/* Writes the kinds of values that nearly all inputs are. Returns NULL for others, and if there is no room. */
OPS_INLINE char *put_usual(char *low, char *at, const c10::IValue &value, uint64_t *hash)
{
	static constexpr ops_input_head none_head = {OPS_INPUT_NONE, 0, 0};
	static constexpr ops_input_head int_head = {OPS_INPUT_INT, 0, 0}, double_head = {OPS_INPUT_DOUBLE, 0, 0};
	const size_t room = static_cast<size_t>(at - low);

	if (OPS_LIKELY(value.isTensor())) {
		const at::TensorImpl *const tensor = value.toTensor().unsafeGetTensorImpl();
		const auto *const sizes = standing_sizes::of(tensor);
		const caffe2::TypeMeta type = tensor->dtype();
		if (OPS_UNLIKELY(!sizes || room < strided_bytes(sizes->size()) || !type.isScalarType()))
			return nullptr;
		at -= strided_bytes(sizes->size());
		write_strided(at, sizes->size(), sizes->sizes_data(), sizes->strides_data(), dtype_of(tensor),
		              hash);
		return at;
	}
	if (value.isNone() && room >= sizeof(none_head)) {
		at -= sizeof(none_head);
		std::memcpy(at, &none_head, sizeof(none_head));
		return at;
	}
	if ((!value.isInt() && !value.isDouble()) || room < sizeof(int_head) + sizeof(int64_t))
		return nullptr;
	at -= sizeof(int64_t);
	std::memcpy(at, &value.payload.u, sizeof(int64_t)); /* toInt() is a call, because of symbolic integers */
	stir(hash, static_cast<uint64_t>(value.payload.u.as_int) + value.isInt());
	at -= sizeof(int_head);
	std::memcpy(at, value.isInt() ? &int_head : &double_head, sizeof(int_head));
	return at;
}

/* Returns whether the numbers at `at` are these. */
OPS_INLINE bool has_numbers(const char *at, const int64_t *numbers, size_t n)
{
	int64_t differing = 0, number;

	for (size_t i = 0; i < n; i++) {
		std::memcpy(&number, at + i * sizeof(number), sizeof(number));
		differing |= number ^ numbers[i];
	}
	return differing == 0;
}

/* Returns the end of the item at `at` if it is what put_usual would write for this value; else NULL. Reads nothing from `end` on. */
OPS_INLINE const char *skip_equal(const char *at, const char *end, const c10::IValue &value)
{
	const size_t room = static_cast<size_t>(end - at);
	uint32_t here;

	if (OPS_UNLIKELY(room < sizeof(here)))
		return nullptr;
	std::memcpy(&here, at, sizeof(here));
	if (OPS_LIKELY(value.isTensor())) {
		const at::TensorImpl *const tensor = value.toTensor().unsafeGetTensorImpl();
		const auto *const sizes = standing_sizes::of(tensor);
		const caffe2::TypeMeta type = tensor->dtype();
		if (OPS_UNLIKELY(!sizes || !type.isScalarType()))
			return nullptr;
		const size_t n = sizes->size();
		const char *const first = at + sizeof(here);
		if (here != head_word(OPS_INPUT_TENSOR, dtype_of(tensor), n) || room < strided_bytes(n) ||
		    !has_numbers(first, sizes->sizes_data(), n) ||
		    !has_numbers(first + n * sizeof(int64_t), sizes->strides_data(), n))
			return nullptr;
		return at + strided_bytes(n);
	}
	if (value.isNone())
		return here == head_word(OPS_INPUT_NONE, 0, 0) ? at + sizeof(here) : nullptr;
	if ((!value.isInt() && !value.isDouble()) || room < sizeof(here) + sizeof(int64_t) ||
	    here != head_word(value.isInt() ? OPS_INPUT_INT : OPS_INPUT_DOUBLE, 0, 0) ||
	    std::memcmp(at + sizeof(here), &value.payload.u, sizeof(int64_t)) != 0)
		return nullptr;
	return at + sizeof(here) + sizeof(int64_t);
}

/* Returns whether [at, end) is the list that put_inputs would write for these inputs. May return false for unusual ones. */
OPS_HOT bool is_list_of(const char *at, const char *end, c10::ArrayRef<const c10::IValue> inputs)
{
	uint32_t count;

	std::memcpy(&count, at, sizeof(count));
	if (count != inputs.size())
		return false;
	at += sizeof(count);
	for (const c10::IValue &input : inputs) {
		at = skip_equal(at, end, input);
		if (!at)
			return false;
	}
	return at == end;
}

/* Writes an input list (inputs.h). `*ret_hash` is the same for equal lists. */
OPS_HOT char *put_inputs(const place &to, char *at, c10::ArrayRef<const c10::IValue> inputs, uint64_t *ret_hash)
{
	const uint32_t count = static_cast<uint32_t>(inputs.size());
	char *const low = to.low;
	uint64_t hash = count;

	for (size_t i = count; i-- > 0;) {
		char *const usual = put_usual(low, at, inputs[i], &hash);
		at = OPS_LIKELY(usual != nullptr) ? usual : put_any(to, at, inputs[i]);
		if (OPS_UNLIKELY(!at))
			return nullptr;
	}
	if (OPS_UNLIKELY(static_cast<size_t>(at - low) < sizeof(count)))
		return nullptr;
	at -= sizeof(count);
	std::memcpy(at, &count, sizeof(count));
	*ret_hash = hash;
	return at;
}

/* Returns false for a tensor without memory. */
OPS_INLINE bool describe_storage(const c10::StorageImpl *memory, bool written, ops_storage *ret_storage)
{
	const void *address;
	size_t bytes;
	try {
		address = memory->data();
		bytes = memory->nbytes();
	} catch (...) { /* a tensor without real storage */
		return false;
	}
	const c10::Device device = memory->device();
	*ret_storage = { /* assigned at once, because separate bit-field stores are slow */
		reinterpret_cast<uintptr_t>(address),
		bytes & OPS_STORAGE_BYTES_MAX,
		static_cast<uint64_t>(device.type()) & 63,
		static_cast<uint64_t>(device.index() + 1) & 255,
		written,
		OPS_ROLE_NONE,
		0,
	};
	return address != nullptr;
}

/* Describes a Python number that was passed as a tensor: equal numbers have the same description. */
__attribute__((noinline)) void describe_number(ops_storage *storage)
{
	uint64_t parts[2] = {0, 0}; /* a complex number has two parts */

	std::memcpy(parts, reinterpret_cast<const void *>(storage->address),
	            storage->bytes < sizeof(parts) ? storage->bytes : sizeof(parts));
	*storage = {0, ops_number_digest(storage->bytes, parts[0], parts[1]), 0, 0, 0, OPS_ROLE_NONE, 0};
}

OPS_INLINE char *put_storage(const place &to, char *at, const at::TensorImpl *tensor, bool written)
{
	const c10::StorageImpl *const memory = tensor->unsafe_storage().unsafeGetStorageImpl();
	ops_storage storage;

	if (!memory || !describe_storage(memory, written, &storage))
		return at;
	if (OPS_UNLIKELY(tensor->is_wrapped_number()) && !written && memory->device().is_cpu())
		describe_number(&storage);
	if (OPS_UNLIKELY(static_cast<size_t>(at - to.low) < sizeof(storage)))
		return nullptr;
	at -= sizeof(storage);
	std::memcpy(at, &storage, sizeof(storage));
	return at;
}

/* Writes the storages of a list of tensors. A list that is too long is left out, like its sizes. */
__attribute__((noinline)) char *put_list_storages(const place &to, char *at, const c10::IValue &list, bool written)
{
	const auto items = list.toListRef();

	if (items.empty() || !items[0].isTensor() || !list.isTensorList() ||
	    (to.short_lists && items.size() > OPS_INPUT_LIST_MAX))
		return at;
	for (size_t i = items.size(); at && i-- > 0;)
		at = put_storage(to, at, items[i].toTensor().unsafeGetTensorImpl(), written);
	return at;
}

/* Writes the storages of the tensors in an input list (storage.h). None of this runs operators. */
OPS_HOT char *put_storages(const place &to, char *at, c10::ArrayRef<const c10::IValue> inputs, uint64_t writes)
{
	char *const end = at;

	for (size_t i = inputs.size(); at && i-- > 0;) {
		const bool written = i < 64 && (writes >> i & 1);
		if (inputs[i].isTensor())
			at = put_storage(to, at, inputs[i].toTensor().unsafeGetTensorImpl(), written);
		else if (inputs[i].isList())
			at = put_list_storages(to, at, inputs[i], written);
	}
	const uint32_t bytes = static_cast<uint32_t>(end - at);
	if (OPS_UNLIKELY(!at || static_cast<size_t>(at - to.low) < sizeof(bytes)))
		return nullptr;
	at -= sizeof(bytes);
	std::memcpy(at, &bytes, sizeof(bytes));
	return at;
}

/* A text: length, bytes, padding to 4. */
struct text {
	const char *bytes;
	size_t size;
};
constexpr size_t inline_max = 2048; /* longer texts are interned, because a block should have room for many records */

constexpr size_t text_bytes(size_t size)
{
	return sizeof(uint32_t) + ((size + 3) & ~size_t{3});
}

char *put_text(const place &to, char *at, text text)
{
	const uint32_t length = static_cast<uint32_t>(text.size);

	at = reserve(to, at, text_bytes(text.size));
	if (!at)
		return nullptr;
	std::memcpy(at, &length, sizeof(length));
	std::memcpy(at + sizeof(length), text.bytes, text.size);
	return at;
}

/* Named values in the form of a payload: the id that torch assigned to a RecordFunction, counters (whose values are set at the
 * end), and then torch's description of a collective or the keyword values of a function. */
struct named_values {
	uint64_t record_id;           /* 0: none */
	bool device_time;             /* of a pair of events; not known yet */
	const ops_counters *counters; /* NULL: none */
	text given;                   /* NULL bytes: none */
	uint32_t given_count;         /* number of values */
};

constexpr char record_id_name[] = "Record function id";

char *put_number(const place &to, char *at, const char *name, uint32_t kind, int64_t value)
{
	char bytes[sizeof(kind) + sizeof(value)];

	at = at ? reserve(to, at, sizeof(bytes)) : nullptr;
	if (!at)
		return nullptr;
	std::memcpy(at, &kind, sizeof(kind));
	std::memcpy(at + sizeof(kind), &value, sizeof(value));
	return put_text(to, at, {name, std::strlen(name)});
}

OPS_COLD char *put_values(const place &to, char *at, const named_values &values)
{
	uint32_t count = values.counters ? values.counters->count : 0;

	if (values.given.bytes) {
		at = reserve(to, at, values.given.size);
		if (at)
			std::memcpy(at, values.given.bytes, values.given.size);
	}
	for (uint32_t i = count; i-- > 0;)
		at = put_number(to, at, values.counters->names[i], OPS_VALUE_COUNT, OPS_COUNT_UNKNOWN);
	if (values.device_time) {
		at = put_number(to, at, OPS_DEVICE_TIME_NAME, OPS_VALUE_PAIR, OPS_COUNT_UNKNOWN);
		count++;
	}
	if (values.record_id) {
		at = put_number(to, at, record_id_name, OPS_VALUE_INT, static_cast<int64_t>(values.record_id));
		count++;
	}
	count += values.given_count;
	at = at ? reserve(to, at, sizeof(count)) : nullptr;
	if (at)
		std::memcpy(at, &count, sizeof(count));
	return at;
}

/* The position in a script at which an operator runs: ids of interned texts, 0: none. In the form of a payload. */
struct script_place {
	uint32_t call_stack;
	uint32_t module_hierarchy;
};

inline char *put_script(const place &to, char *at, const script_place &script)
{
	at = reserve(to, at, sizeof(script));
	if (at)
		std::memcpy(at, &script, sizeof(script));
	return at;
}

} // namespace

#endif
