/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises files that may be traces by their beginning.
 */
#ifndef OPS_READ_TRACE_HEAD_H
#define OPS_READ_TRACE_HEAD_H

#include <stdbool.h>

/* Returns whether a regular file, plain or compressed, begins like a trace: with its events, or what torch writes before them, in
 * the first kilobytes. Returns false if it cannot be read. */
bool ops_begins_like_trace(const char *path);

#endif
