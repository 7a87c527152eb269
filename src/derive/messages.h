/* SPDX-License-Identifier: Apache-2.0
 *
 * How much data a collective operation moves, as torch records it in the arguments of its kernels.
 */
#ifndef OPS_DERIVE_MESSAGES_H
#define OPS_DERIVE_MESSAGES_H

#include <opstrobe/trace.h>

/* Returns the bytes of an element of a type ("BFloat16", "Float8_e4m3fn"); 0 for an unknown type. */
int64_t ops_type_bytes(struct ops_string name);
/* Returns the bytes of the message that a rank sends, or receives if it sends nothing: "In msg nelems", "Out msg
 * nelems" and "dtype" of a row. Returns 0 if the row does not have them. Elements of an unknown type count as one byte
 * each. */
int64_t ops_message_bytes(const struct ops_trace *trace, uint32_t row);

#endif
