/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that a thread has met, by the address of their name: a table that every operator looks up. Part of
 * torch_bridge.cpp; independent of sessions and blocks.
 */
#ifndef OPS_TORCH_NAMES_HPP
#define OPS_TORCH_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <opstrobe/internal/collector.h>

namespace {

/* Ids of operator names by the address of the schema's name. An address may later contain another name (an operator is
 * deregistered, its memory reused), so a hit is valid only if the text is the same. A call of strcmp costs 5 ns within a program,
 * so the text is compared by words. It belongs to a std::string and is aligned to words, so that a word with one byte of it can
 * be read completely. */
constexpr size_t short_words = 4;
struct alignas(64) name_entry {
	const char *key; /* NULL: empty */
	uint64_t last;   /* bits of the last word that are text or NUL */
	uint64_t writes; /* which arguments the operator may write to */
	uint32_t id;
	uint16_t list;      /* position of the operator's last input list in a block; 0: none */
	uint8_t list_words; /* its size in words of 4 bytes */
	uint8_t last_word;
	union { /* the text with its NUL, padded with zeros */
		uint64_t short_text[short_words];
		uint64_t *long_text; /* owned */
	};

	bool is_long() const
	{
		return last_word >= short_words;
	}
	bool has_text(const char *name) const
	{
		const uint64_t *const words = OPS_UNLIKELY(is_long()) ? long_text : short_text;
		uint64_t word;

		for (uint32_t i = 0; i < last_word; i++) {
			std::memcpy(&word, name + i * sizeof(word), sizeof(word));
			if (word != words[i])
				return false;
		}
		std::memcpy(&word, name + last_word * sizeof(word), sizeof(word));
		return ((word ^ words[last_word]) & last) == 0;
	}
	void clear()
	{
		if (key && is_long())
			std::free(long_text);
		key = nullptr;
	}
};
static_assert(sizeof(name_entry) == 64, "one cache line");
constexpr size_t name_bits = 10;
constexpr size_t name_count = size_t{1} << name_bits;
constexpr size_t name_probes = 4; /* open addressing; if all are in use, the first one is replaced */

struct name_table {
	name_entry entries[name_count + name_probes - 1]; /* all zero: empty */

	/* Returns the first slot to search. */
	static size_t place_of(const char *key)
	{
		return (reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> (64 - name_bits);
	}
	/* Returns NULL if the name is not in the table. */
	__attribute__((always_inline)) name_entry *find(const char *name)
	{
		name_entry *const first = entries + place_of(name);

		for (name_entry *entry = first; entry < first + name_probes && entry->key; entry++)
			if (OPS_LIKELY(entry->key == name) && entry->has_text(name))
				return entry;
		return nullptr;
	}
	void put(const char *key, uint32_t id, uint64_t writes);
	void clear()
	{
		for (name_entry &entry : entries)
			entry.clear();
	}
};

/* Does nothing for a name that cannot be compared by words, or if out of memory. */
inline void name_table::put(const char *key, uint32_t id, uint64_t writes)
{
	name_entry *const first = entries + place_of(key);
	name_entry *entry = first;
	const size_t bytes = std::strlen(key) + 1;
	const size_t words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
	const bool is_long = words > short_words;

	if (reinterpret_cast<uintptr_t>(key) % sizeof(uint64_t) != 0 || words - 1 > UINT8_MAX)
		return;
	auto *long_text = is_long ? static_cast<uint64_t *>(std::calloc(words, sizeof(uint64_t))) : nullptr;
	if (is_long && !long_text)
		return;
	while (entry < first + name_probes - 1 && entry->key && entry->key != key)
		entry++;
	if (entry->key && entry->key != key)
		entry = first;
	entry->clear();
	*entry = {};
	entry->key = key;
	entry->writes = writes;
	entry->id = id;
	entry->last_word = static_cast<uint8_t>(words - 1);
	std::memset(&entry->last, 0xff, bytes - (words - 1) * sizeof(uint64_t));
	if (is_long)
		entry->long_text = long_text;
	std::memcpy(is_long ? long_text : entry->short_text, key, bytes);
}

} // namespace

#endif
