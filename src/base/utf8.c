/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 according to the table of well-formed sequences in the Unicode standard (chapter 3, table 3-7); see utf8.h.
 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

static bool is_between(uint8_t byte, uint8_t low, uint8_t high)
{
	return byte >= low && byte <= high;
}

size_t ops_utf8_length(const char *at, const char *end)
{
	const uint8_t *byte = (const uint8_t *)at;
	size_t left = (size_t)(end - at);
	uint8_t low = 0x80;
	uint8_t high = 0xbf;
	size_t length;

	if (left == 0)
		return 0;
	if (byte[0] < 0x80)
		return 1;
	if (is_between(byte[0], 0xc2, 0xdf))
		length = 2;
	else if (is_between(byte[0], 0xe0, 0xef))
		length = 3;
	else if (is_between(byte[0], 0xf0, 0xf4))
		length = 4;
	else
		return 0;
	/* After some lead bytes the range of the second byte is smaller: this excludes overlong forms, surrogates and code points
	 * past the last. */
	if (byte[0] == 0xe0)
		low = 0xa0;
	else if (byte[0] == 0xed)
		high = 0x9f;
	else if (byte[0] == 0xf0)
		low = 0x90;
	else if (byte[0] == 0xf4)
		high = 0x8f;
	if (left < length || !is_between(byte[1], low, high))
		return 0;
	for (size_t i = 2; i < length; i++)
		if (!is_between(byte[i], 0x80, 0xbf))
			return 0;
	return length;
}

size_t ops_utf8_step(const char *at, const char *end)
{
	const uint8_t *byte = (const uint8_t *)at;
	size_t length = *byte < 0x80 ? 1 : ops_utf8_length(at, end);

	if (length)
		return length;
	return end - at >= 3 && byte[0] == 0xed && is_between(byte[1], 0xa0, 0xbf) && is_between(byte[2], 0x80, 0xbf) ? 3 : 1;
}

bool ops_utf8_valid(const char *bytes, size_t size)
{
	const char *end = ops_bytes_end(bytes, size);

	while (bytes < end) {
		uint64_t word = UINT64_MAX;
		size_t length;

		if (end - bytes >= (ptrdiff_t)sizeof(word))
			memcpy(&word, bytes, sizeof(word));
		length = word & UINT64_C(0x8080808080808080) ? ops_utf8_length(bytes, end) : sizeof(word);
		if (length == 0)
			return false;
		bytes += length;
	}
	return true;
}
