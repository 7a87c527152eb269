/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values of a slot (opstrobe/collector.h, OPS_SLOT_HAS_VALUES) as text.
 */
#ifndef OPS_READ_SLOT_VALUES_H
#define OPS_READ_SLOT_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"

/* What is left of a slot's payload. */
struct ops_payload {
	const char *at;
	size_t size;
};

/* Takes `size` bytes off the payload; false when it is cut short. */
bool ops_payload_take(struct ops_payload *payload, void *out, size_t size);

/* Takes a text (length, bytes, padding) off the payload; false when it is cut short. */
bool ops_payload_text(struct ops_payload *payload, struct ops_string *ret_text);

/* Takes the named values off the payload and appends them to `out` as members of a JSON object, without the braces; those
 * of counters only if `with_counts`. False when they are cut short or make no sense. */
bool ops_payload_values(struct ops_payload *payload, bool with_counts, struct ops_buffer *out);

#endif
