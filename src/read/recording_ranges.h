/* SPDX-License-Identifier: Apache-2.0
 *
 * The open operators and ranges of a thread, for the calls made in them. Coroutines take turns on a thread; a range encloses only
 * what its own coroutine does, and the coroutines that it calls:
 *
 *     thread   ├─ a (task A) ──────────────────────┤
 *                 ├─ b (task B) ──────────────┤
 *                 ↑ launch 1: b   ↑ launch 2 by task A: a
 */
#ifndef OPS_READ_RECORDING_RANGES_H
#define OPS_READ_RECORDING_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/intern.h"
#include "read/slot_values.h"

/* What runs on a thread from a slot of kind OPS_SLOT_CONTEXT on. */
struct recording_running {
	struct ops_string name;
	uint64_t greenlet; /* 0: that of the thread itself */
	uint64_t context;  /* the innermost entered context; 0: none */
	struct ops_payload contexts; /* uint64_t each: all of them, innermost first */
};

/* Reads the payload of such a slot. Returns false if it is invalid. */
bool recording_running_parse(struct ops_payload payload, struct recording_running *ret_running);
/* Returns whether the function that began a range in `greenlet` and `context` still runs and called the current one. */
bool recording_running_calls(const struct recording_running *running, uint64_t greenlet, uint64_t context);

/* An annotation around calls. If other ranges are around it later, there is a further item for it. */
struct recording_annotation {
	uint64_t id;
	uint32_t name;  /* string id */
	uint32_t outer; /* the enclosing annotation; OPS_NONE: none */
	uint32_t first; /* the first item of the annotation */
	bool was_interrupted; /* in the first item: another coroutine ran while it was open */
};

struct recording_annotations {
	struct recording_annotation *items;
	size_t count;
	size_t capacity;
};

/* An operator or range that may enclose calls. The caller sets the first members and, if there is one, `own_collective`. */
struct recording_range {
	int64_t start_ns;
	int64_t end_ns;
	uint64_t id;
	uint32_t name; /* string id */
	uint32_t own_collective; /* description of the operator if it is a collective: string id of members; OPS_NONE: none */
	bool is_operator;
	/* of the range and those around it: */
	int64_t until_ns;     /* the earliest end */
	uint64_t operator_id; /* of the innermost operator; 0: none */
	uint32_t operator_name;
	uint32_t collective;  /* of the innermost operator, as above */
	uint32_t annotation;  /* the innermost annotation; OPS_NONE: none */
	uint32_t first_annotation; /* of this range; OPS_NONE: none */
	uint64_t greenlet; /* in which it began */
	uint64_t context;
};

/* A range of a coroutine that does not run. */
struct recording_waiting {
	struct recording_range range;
	uint32_t next; /* index + 1 */
};

struct recording_ranges {
	OPS_ARRAY(struct recording_range) open; /* of what runs, outermost first */
	OPS_ARRAY(struct recording_waiting) waiting;
	struct ops_intern coroutines; /* greenlet and context: */
	OPS_ARRAY(uint32_t) first_waiting; /* by id in `coroutines`: index + 1 in `waiting` */
	uint32_t first_free; /* index + 1 in `waiting` */
	uint64_t greenlet;   /* of what runs */
	uint64_t context;
	bool is_changed;     /* ranges have been added to `open` or removed, and what it says about those around is wrong */
};

void recording_ranges_release(struct recording_ranges *ranges);

/* These functions return false if out of memory, and can then be called again. */

/* Must be called before a range that begins at `time_ns` is added. */
bool recording_ranges_reserve(struct recording_ranges *ranges, struct recording_annotations *annotations, int64_t time_ns);
/* Adds a range, in order of their start. Does not fail. */
void recording_ranges_add(struct recording_ranges *ranges, struct recording_annotations *annotations,
                          const struct recording_range *range);
/* Finds the innermost range that is open at a time; NULL if there is none. */
bool recording_ranges_find(struct recording_ranges *ranges, struct recording_annotations *annotations, int64_t time_ns,
                           const struct recording_range **ret_range);
/* From a time on something else runs on the thread. */
bool recording_ranges_switch(struct recording_ranges *ranges, struct recording_annotations *annotations,
                             const struct recording_running *running, int64_t time_ns);

#endif
