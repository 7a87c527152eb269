/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of an input list's shapes in the views: "[[32, 3, 224, 224], []]", where a scalar is "[]".
 */
#ifndef OPS_ANALYZE_VIEW_SHAPES_H
#define OPS_ANALYZE_VIEW_SHAPES_H

#include <opstrobe/trace.h>

#include "base/buffer.h"

void view_shapes_text(const struct ops_trace *trace, uint32_t inputs, struct ops_buffer *out);

#endif
