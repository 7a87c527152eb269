/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses Python pickles of plain data (dicts, lists, tuples, strings, numbers) as a stream. Nothing is unpickled: an opcode that
 * would import or call something is an error. A visitor receives the items of a container and returns the record that it becomes;
 * the items are then freed, so that a file may be much larger than memory.
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
	PICKLE_TEXT,   /* `number` is a string id of the builder; also for bytes */
	PICKLE_RECORD, /* the record of a container; `type` and `number` are defined by the visitor */
	PICKLE_BIG,    /* an integer of more than 64 bits */
};

struct pickle_value {
	enum pickle_kind kind;
	uint32_t type; /* of a record; 0 before the container has items */
	union {
		int64_t integer;
		double real;
		uint32_t number;
	};
};

/* The items of a dict, during a call of a visitor. */
struct pickle_dict {
	const struct ops_reading *in;
	const struct pickle_value *pairs;
	size_t count;
};

/* Receives the items of containers. `so_far` is the record of the same container from earlier items. An error code ends reading. */
struct pickle_visitor {
	enum ops_code (*on_dict)(struct pickle_visitor *visitor, const struct pickle_value *pairs, size_t count,
	                         struct pickle_value *so_far);
	enum ops_code (*on_list)(struct pickle_visitor *visitor, const struct pickle_value *items, size_t count,
	                         struct pickle_value *so_far);
};

/* Reads the pickle that begins at the window's position. `*ret_top` is its value. */
enum ops_code pickle_read(struct ops_reading *reading, struct pickle_visitor *visitor, struct pickle_value *ret_top);

/* Returns a member of a dict; NULL if it is missing or None. */
const struct pickle_value *pickle_find(const struct pickle_dict *dict, const char *name);
/* Returns false, and 0, if the member is not an integer. */
bool pickle_find_integer(const struct pickle_dict *dict, const char *name, int64_t *ret_value);
/* Returns the string id of a member that is a text; else 0, the empty string. */
uint32_t pickle_find_text(const struct pickle_dict *dict, const char *name);

#endif
