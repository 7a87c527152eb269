/* SPDX-License-Identifier: Apache-2.0
 *
 * How a frame of a stack is written in a trace.
 */
#ifndef OPS_READ_FRAME_TEXT_H
#define OPS_READ_FRAME_TEXT_H

#include <stdint.h>

#include <opstrobe/common.h>

#include "base/buffer.h"

/* Appends "model.py(12): forward". Functions of other languages have no line of the program, so their place comes after the name:
 * "malloc [allocator.cpp:7]", and only the name where no place is known. A semicolon, which divides the frames of a stack, becomes a comma. */
void ops_put_frame(struct ops_buffer *out, struct ops_string file, uint32_t line, struct ops_string name);

#endif
