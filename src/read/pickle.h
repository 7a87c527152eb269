/* SPDX-License-Identifier: Apache-2.0
 *
 * Python pickles of plain data (dicts, lists, tuples, strings, numbers), taken apart as they stream by. Nothing is unpickled: an
 * opcode that would import or call something is an error. A visitor gets the items of a container and says which record it
 * becomes; the items are then freed, so that a file may be much larger than memory.
 *
 *     {'action': 'alloc', 'addr': 1} ─▶ on_dict(…, pairs, 2) ─▶ record 7 ─▶ on_list(…, [.. record 7 ..])
 */
#ifndef OPS_READ_PICKLE_H
#define OPS_READ_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/reading.h"

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INTEGER,
	PICKLE_REAL,
	PICKLE_TEXT,   /* `number` is a string id of the builder; of bytes too */
	PICKLE_RECORD, /* what a container became; `type` and `number` are its visitor's */
	PICKLE_BIG,    /* an integer of more than 64 bits */
};

struct pickle_value {
	enum pickle_kind kind;
	uint32_t type; /* of a record; 0 before it has items */
	union {
		int64_t integer;
		double real;
		uint32_t number;
	};
};

/* The items of a dict, while a visitor has them. */
struct pickle_dict {
	const struct ops_reading *in;
	const struct pickle_value *pairs;
	size_t count;
};

/* Gets the items of containers. `so_far` is what the same container became when it got items before. A code ends the reading. */
struct pickle_visitor {
	enum ops_code (*on_dict)(struct pickle_visitor *visitor, const struct pickle_value *pairs, size_t count,
	                         struct pickle_value *so_far);
	enum ops_code (*on_list)(struct pickle_visitor *visitor, const struct pickle_value *items, size_t count,
	                         struct pickle_value *so_far);
};

/* Reads the pickle that begins at the window's place. `*ret_top` is the value that it holds. */
enum ops_code pickle_read(struct ops_reading *reading, struct pickle_visitor *visitor, struct pickle_value *ret_top);

/* A member of a dict; NULL: there is none, or it is None. */
const struct pickle_value *pickle_find(const struct pickle_dict *dict, const char *name);
/* False, and 0, if the member is not an integer. */
bool pickle_find_integer(const struct pickle_dict *dict, const char *name, int64_t *ret_value);
/* The string id of a member that is a text; 0, the empty one, if it is not. */
uint32_t pickle_find_text(const struct pickle_dict *dict, const char *name);

#endif
