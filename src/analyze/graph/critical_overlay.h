/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path drawn on a copy of its trace file: events of the path are marked, and its edges become arrows.
 */
#ifndef OPS_ANALYZE_CRITICAL_OVERLAY_H
#define OPS_ANALYZE_CRITICAL_OVERLAY_H

#include "analyze/graph/critical_path.h"
#include "base/buffer.h"

struct critical_overlay {
	const struct ops_rank *rank;
	const char *directory; /* directory of the copy */
	bool only_critical;    /* leave out events that are not on the path, except annotations and Python */
	bool all_edges;        /* draw all edges, not only those between events of the path */
};

enum ops_code critical_overlay_write(const struct critical_path *path, const struct critical_overlay *what,
                                     struct ops_buffer *ret_path, struct ops_error *error);

#endif
