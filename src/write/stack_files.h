/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of flame graphs' data. Each puts all of it into a sink, and says in `*cut`, which is zeroed, which stacks it had
 * to cut short; false when memory is out.
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
