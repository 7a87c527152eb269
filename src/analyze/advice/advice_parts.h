/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of parts of storages, by the views that created them; see advice_parts.c.
 */
#ifndef OPS_ANALYZE_ADVICE_PARTS_H
#define OPS_ANALYZE_ADVICE_PARTS_H

#include "analyze/advice/advice.h"

/* The latest part of a storage with a number of elements. */
struct advice_part {
	uint64_t key;
	uint64_t number; /* of the contents of the storage */
	uint32_t reads;  /* number of reads since its views were created */
	bool several;    /* there are several such parts */
	bool read;       /* an operator has read it, so that the next view is a new part */
};

/* To be initialized with zeros. */
struct advice_parts {
	struct ops_map slots; /* by storage and number of elements */
	OPS_ARRAY(struct advice_part) items;
};

/* Returns the identity of the part that an operator reads; 0: unknown. `number` is that of the contents. */
uint64_t advice_part_read(struct advice_parts *parts, uint64_t address, uint64_t number, int64_t elements);
/* Follows an operator that may create views of its first input, which is the part `base`; 0: the complete storage. Returns false if out
 * of memory. */
bool advice_parts_follow(struct advice_parts *parts, const struct advice *advice, uint32_t row, uint64_t address, uint64_t number, uint64_t base);
void advice_parts_release(struct advice_parts *parts);

#endif
