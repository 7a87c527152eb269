/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of stack frames in traces.
 */
#ifndef OPS_READ_FRAME_TEXT_H
#define OPS_READ_FRAME_TEXT_H

#include <stdint.h>

#include <opstrobe/common.h>

#include "base/buffer.h"

/* Appends "model.py(12): forward". Functions of other languages are not lines of the program, so their position comes after the
 * name, if known: "malloc [allocator.cpp:7]". A semicolon, which separates the frames of a stack, becomes a comma. */
void ops_put_frame(struct ops_buffer *out, struct ops_string file, uint32_t line, struct ops_string name);

#endif
