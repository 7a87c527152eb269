/* SPDX-License-Identifier: Apache-2.0
 *
 * What an execution trace observer records about integer input tensors: the range of their elements, and files with the elements.
 * Part of torch_bridge.cpp.
 */
#ifndef OPS_TORCH_INTEGERS_HPP
#define OPS_TORCH_INTEGERS_HPP

#include "torch_bridge.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace integers {

/* The options of an observer; copied, because operators read them while the observer may be closed. */
struct wishes {
	bool ranges = false;
	std::string data_of; /* ",name,name," */
	std::string folder;

	bool wants_data(const std::string &name) const
	{
		return data_of.find("," + name + ",") != std::string::npos;
	}
};

inline wishes wishes_of(const ops_integer_options &options)
{
	wishes wishes;

	wishes.ranges = options.ranges;
	if (options.data_of[0])
		wishes.data_of = "," + std::string(options.data_of) + ",";
	wishes.folder = options.data_folder;
	return wishes;
}

/* Returns false for tensors whose elements cannot be read here: fake ones, and those of Python classes. */
inline bool is_readable(const at::Tensor &tensor)
{
	return tensor.defined() && tensor.layout() == c10::kStrided && !tensor.is_meta() && !tensor.is_nested() &&
	       !tensor.key_set().has_any(c10::python_ks) && c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) &&
	       tensor.numel() > 0;
}

template <class Element>
std::string range_of(const at::Tensor &tensor)
{
	const auto *const first = static_cast<const Element *>(tensor.const_data_ptr());
	const auto ends = std::minmax_element(first, first + tensor.numel());

	return "[" + std::to_string(*ends.first) + "," + std::to_string(*ends.second) + "]";
}

/* Returns "" for integer types that few tensors have. */
inline std::string range_of_any(const at::Tensor &tensor)
{
	switch (tensor.scalar_type()) {
	case c10::ScalarType::Byte:
		return range_of<uint8_t>(tensor);
	case c10::ScalarType::Char:
		return range_of<int8_t>(tensor);
	case c10::ScalarType::Short:
		return range_of<int16_t>(tensor);
	case c10::ScalarType::Int:
		return range_of<int32_t>(tensor);
	case c10::ScalarType::Long:
		return range_of<int64_t>(tensor);
	default:
		return "";
	}
}

/* A file that cannot be written is left out. */
inline void save(const at::Tensor &tensor, const std::string &path)
{
	std::FILE *const file = std::fopen(path.c_str(), "wb");

	if (!file)
		return;
	std::fwrite(tensor.const_data_ptr(), tensor.itemsize(), static_cast<size_t>(tensor.numel()), file);
	std::fclose(file);
}

/* Reads the tensors of one operator, numbered in order, including those in lists. */
class reader {
public:
	reader(const wishes &wishes, const std::string &name, uint64_t node)
		: ranges_(wishes.ranges), data_(wishes.wants_data(name)),
		  prefix_(wishes.folder + "nid_" + std::to_string(node) + "_tid_")
	{
	}

	/* Returns the ranges as JSON; "" if there are none. */
	std::string read(c10::ArrayRef<const c10::IValue> inputs)
	{
		const at::RecordFunctionGuard unrecorded(/*is_enabled=*/false);

		if (ranges_ || data_)
			for (const c10::IValue &value : inputs)
				see(value);
		return text_.empty() ? text_ : "{" + text_ + "}";
	}

private:
	void see(const c10::IValue &value)
	{
		if (value.isTensor())
			add_tensor(value.toTensor());
		else if (value.isTuple())
			for (const c10::IValue &item : value.toTupleRef().elements())
				see(item);
		else if (value.isTensorList())
			for (const c10::IValue &item : value.toListRef())
				see(item);
	}

	void add_tensor(const at::Tensor &tensor)
	{
		const std::string number = std::to_string(seen_++);

		if (!is_readable(tensor))
			return;
		/* In memory order, as in torch's files: the node has the strides. With gaps between elements, in the order of the
		 * sizes. */
		at::Tensor here = tensor.cpu();
		if (!here.is_non_overlapping_and_dense())
			here = here.contiguous();
		if (data_)
			save(here, prefix_ + number + ".dat");
		const std::string range = ranges_ ? range_of_any(here) : "";
		if (!range.empty())
			text_ += (text_.empty() ? "\"" : ",\"") + number + "\":" + range;
	}

	const bool ranges_;
	const bool data_;
	const std::string prefix_;
	size_t seen_ = 0;
	std::string text_;
};

} // namespace integers

#endif
