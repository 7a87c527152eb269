/* SPDX-License-Identifier: Apache-2.0
 *
 * Named values in the form of a payload (collector.h), and those of a function that was called with keyword values. Part of
 * torch_bridge.cpp.
 */
#ifndef OPS_TORCH_VALUES_HPP
#define OPS_TORCH_VALUES_HPP

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include <opstrobe/internal/collector.h>

namespace named {

struct values {
	std::string bytes;
	uint32_t count = 0;
};

inline void add_word(values &to, uint32_t word)
{
	to.bytes.append(reinterpret_cast<const char *>(&word), sizeof(word));
}

inline void add_padded(values &to, const std::string &text)
{
	add_word(to, static_cast<uint32_t>(text.size()));
	to.bytes += text;
	to.bytes.append(-text.size() & 3, '\0');
}

inline void add_name(values &to, const char *name, uint32_t kind)
{
	add_padded(to, name);
	add_word(to, kind);
	to.count++;
}

inline void add(values &to, const char *name, int64_t value)
{
	add_name(to, name, OPS_VALUE_INT);
	to.bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline void add_unsigned(values &to, const char *name, uint64_t value)
{
	add_name(to, name, OPS_VALUE_UINT);
	to.bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline void add(values &to, const char *name, const std::string &text)
{
	add_name(to, name, OPS_VALUE_TEXT);
	add_padded(to, text);
}

inline void add_double(values &to, const char *name, double value)
{
	add_name(to, name, OPS_VALUE_DOUBLE);
	to.bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline void add_bool(values &to, const char *name, bool value)
{
	add_name(to, name, OPS_VALUE_BOOL);
	add_word(to, value);
}

inline bool is_text_list(const c10::IValue &value)
{
	if (!value.isList())
		return false;
	for (const c10::IValue &item : value.toListRef())
		if (!item.isString())
			return false;
	return true;
}

/* Skips what torch's traces leave out as well: other lists, and None. */
inline void add_any(values &to, const char *name, const c10::IValue &value)
{
	if (value.isBool())
		add_bool(to, name, value.toBool());
	else if (value.isInt())
		add(to, name, value.toInt());
	else if (value.isDouble())
		add_double(to, name, value.toDouble());
	else if (value.isString())
		add(to, name, value.toStringRef());
	else if (is_text_list(value)) {
		add_name(to, name, OPS_VALUE_TEXT_LIST);
		add_word(to, static_cast<uint32_t>(value.toListRef().size()));
		for (const c10::IValue &item : value.toListRef())
			add_padded(to, item.toStringRef());
	}
}

inline values of_keywords(const std::unordered_map<std::string, c10::IValue> &keywords)
{
	values all;

	for (const auto &[name, value] : keywords)
		add_any(all, name.c_str(), value);
	return all;
}

} // namespace named

#endif
