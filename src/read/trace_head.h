/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a file may be a trace, by how it begins.
 */
#ifndef OPS_READ_TRACE_HEAD_H
#define OPS_READ_TRACE_HEAD_H

#include <stdbool.h>

/* A regular file, plain or compressed, whose first kilobytes have what a trace begins with: its events, or what torch
 * writes before them. What cannot be read is none. */
bool ops_begins_like_trace(const char *path);

#endif
