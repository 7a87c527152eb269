/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a collective operation moves, as torch records it in the arguments of its kernels.
 */
#ifndef OPS_DERIVE_MESSAGES_H
#define OPS_DERIVE_MESSAGES_H

#include <opstrobe/trace.h>

/* Bytes of an element of the type, "BFloat16" or "Float8_e4m3fn"; 0 for a type that is not known. */
int64_t ops_type_bytes(struct ops_string name);
/* Bytes of the message that a rank sends, or receives if it sends nothing: "In msg nelems", "Out msg nelems" and
 * "dtype" of a row. 0 if the row does not have them; elements of an unknown type count as a byte each. */
int64_t ops_message_bytes(const struct ops_trace *trace, uint32_t row);

#endif
