/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of a diff as text. The buffer is marked as failed if memory runs out.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_WRITE_H
#define OPS_ANALYZE_VIEW_DIFF_WRITE_H

#include "analyze/views/view_diff.h"
#include "base/buffer.h"

void view_diff_write_json(const struct view_diff *diff, struct ops_buffer *out);
/* Writes one row per part of the steps, and one per operator. */
void view_diff_write_csv(const struct view_diff *diff, struct ops_buffer *out);
/* Writes tables for a terminal, or in Markdown for a pull request. */
void view_diff_write_text(const struct view_diff *diff, bool markdown, size_t columns, struct ops_buffer *out);

#endif
