/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of bits in bytes: `count` bits take `count / 8 + 1` zeroed bytes.
 */
#ifndef OPS_BASE_BITS_H
#define OPS_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ops_bit(const uint8_t *bits, size_t i)
{
	return bits[i / 8] >> i % 8 & 1;
}

static inline void ops_bit_set(uint8_t *bits, size_t i)
{
	bits[i / 8] |= (uint8_t)(1 << i % 8);
}

#endif
