/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a watch file that a process left, which may be damaged.
 */
#ifndef OPS_LEFT_BEHIND_H
#define OPS_LEFT_BEHIND_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/watch.h>

#include "base/buffer.h"

/* Returns false if it is not a page of this version. Afterwards texts are terminated and counts are in range. */
bool left_page_check(struct ops_watch_page *page);
/* Writes the facts of the incident, JSON: how the process ended, at `end_ns` (wall clock). The page has been checked. */
void left_page_facts(const struct ops_watch_page *page, int64_t end_ns, struct ops_buffer *out);

#endif
