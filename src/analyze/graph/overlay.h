/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a trace file with something drawn on it: events marked by further arguments, events left out, events added. What
 * is not touched is copied as it stands, one value at a time.
 */
#ifndef OPS_ANALYZE_OVERLAY_H
#define OPS_ANALYZE_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"

enum overlay_action { OVERLAY_KEEP, OVERLAY_MARK, OVERLAY_RENAME, OVERLAY_LEAVE_OUT };

struct overlay {
	/* What becomes of the event at this place in the file. To mark it, members for its arguments are put into `marks`,
	 * which is empty: "\"critical\":1". To rename it, its new name, as JSON; then it has no arguments. */
	enum overlay_action (*event)(void *context, uint32_t index, struct ops_buffer *marks);
	/* Event number `i` of those that are added; false when there are no more. */
	bool (*add)(void *context, size_t i, struct ops_buffer *event);
	void *context;
};

/* Writes the copy to the directory: its name is `prefix` and the name of the file, with ".gz" appended unless it is
 * there. `ret_path` is the caller's to release. OPS_CORRUPT for a file that is not JSON to its end. */
enum ops_code overlay_write(const char *path, const char *directory, const char *prefix, const struct overlay *overlay,
                            struct ops_buffer *ret_path, struct ops_error *error);

#endif
