/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of flame graphs' data. Each puts all of it into a sink; false when memory is out.
 */
#ifndef OPS_WRITE_STACK_FILES_H
#define OPS_WRITE_STACK_FILES_H

#include <stdbool.h>

#include "analyze/flame.h"
#include "base/sink.h"

bool ops_put_collapsed(const struct ops_flame *flame, struct ops_sink *sink);
bool ops_put_speedscope(const struct ops_flame *flame, struct ops_sink *sink);
bool ops_put_flame_svg(const struct ops_flame *flame, struct ops_sink *sink);

/* The names of a chain's frames, outermost first. False when memory is out. */
typedef OPS_ARRAY(uint32_t) ops_name_list;
bool ops_list_names(const struct ops_frames *frames, uint32_t chain, ops_name_list *names);

#endif
