/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats of flame graphs. Each function writes the complete graph to a sink and sets `*cut`, which is zeroed, if it shortened
 * stacks. Returns false if out of memory.
 */
#ifndef OPS_WRITE_STACK_FILES_H
#define OPS_WRITE_STACK_FILES_H

#include <stdbool.h>

#include <opstrobe/internal/write.h>

#include "analyze/flame.h"
#include "base/sink.h"

bool ops_put_collapsed(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);
bool ops_put_pprof(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);
bool ops_put_speedscope(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);
bool ops_put_flame_svg(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);

#endif
