/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a trace file with something drawn on it: events marked by further arguments, events left out, events added.
 * Everything else is copied unchanged, one value at a time.
 */
#ifndef OPS_ANALYZE_OVERLAY_H
#define OPS_ANALYZE_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "analyze/events/event_table.h"
#include "base/buffer.h"

enum overlay_action { OVERLAY_KEEP, OVERLAY_MARK, OVERLAY_RENAME, OVERLAY_LEAVE_OUT };

struct overlay {
	/* Decides about the event at this position in the file. To mark it, appends members for its arguments to
	 * `marks`, which is empty: "\"critical\":1". To rename it, appends its new name as JSON; the event then loses
	 * its arguments. NULL: keeps all events. */
	enum overlay_action (*event)(void *context, uint32_t index, struct ops_buffer *marks);
	/* Writes event number `i` of the added events. Returns false if there are no more. */
	bool (*add)(void *context, size_t i, struct ops_buffer *event);
	void *context;
	const char *prefix, *suffix; /* of the name of the copy; NULL: none. A suffix replaces ".json" */
};

/* Returns the number of positions in the file, as far as the rows of a table know. */
size_t overlay_positions(const struct event_table *table);

/* Writes the copy to the directory, or next to the file if that is "". Its name is that of the file with the prefix or suffix, and
 * ".gz". The caller must release `ret_path`. Returns OPS_INVALID for a trace without a file, and OPS_CORRUPT for a file that is not
 * complete JSON. */
enum ops_code overlay_write(const struct ops_rank *rank, const char *directory, const struct overlay *overlay, struct ops_buffer *ret_path,
                            struct ops_error *error);

#endif
