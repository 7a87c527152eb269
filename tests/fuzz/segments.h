/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs for files that are large and mostly zeros. An input lists the other bytes: an offset (4 bytes), a size (2 bytes), the
 * bytes, and so on.
 */
#ifndef OPS_TEST_SEGMENTS_H
#define OPS_TEST_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Fills the file. Returns its size. */
static inline size_t segments_read(char *file, size_t room, const uint8_t *bytes, size_t size)
{
	size_t end = 0;

	memset(file, 0, room);
	while (size >= 6) {
		uint32_t offset;
		uint16_t length;

		memcpy(&offset, bytes, sizeof(offset));
		memcpy(&length, bytes + 4, sizeof(length));
		offset %= (uint32_t)room;
		bytes += 6;
		size -= 6;
		length = length < size ? length : (uint16_t)size;
		length = length < room - offset ? length : (uint16_t)(room - offset);
		memcpy(file + offset, bytes, length);
		end = offset + length > end ? offset + length : end;
		bytes += length;
		size -= length;
	}
	return end;
}

#endif
