/* SPDX-License-Identifier: Apache-2.0
 *
 * Native stacks of this process, read by another one (python/ext/native_stacks.c).
 */
#ifndef OPS_WATCH_WATCH_NATIVE_H
#define OPS_WATCH_WATCH_NATIVE_H

#include "base/buffer.h"

/* Runs the program, which reads all threads of this process from outside, and appends the JSON that it writes. Appends nothing if it fails
 * or takes too long. Needs neither the GIL nor memory of other threads, except for the buffer's. */
void watch_native_read(const char *program, struct ops_buffer *out);

#endif
