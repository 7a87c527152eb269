/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values of a slot (opstrobe/internal/collector.h, OPS_SLOT_HAS_VALUES) as text.
 */
#ifndef OPS_READ_SLOT_VALUES_H
#define OPS_READ_SLOT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"

/* The remaining bytes of a slot's payload. */
struct ops_payload {
	const char *at;
	size_t size;
};

/* Reads `size` bytes of the payload. Returns false if it is truncated. */
bool ops_payload_read(struct ops_payload *payload, void *out, size_t size);

/* Reads a text (length, bytes, padding) of the payload. Returns false if it is truncated. */
bool ops_payload_text(struct ops_payload *payload, struct ops_string *ret_text);

/* Times by pair of events, see ops_recording_set_pair_times. */
struct ops_pair_times {
	const int64_t *ns;
	size_t count;
};

/* Reads the named values of the payload and appends them to `out` as members of a JSON object, without the braces. Those of
 * counters and pairs are included only if `closed`, if the slot is closed. Returns false if they are truncated or malformed. */
bool ops_payload_values(struct ops_payload *payload, bool closed, struct ops_pair_times pairs, struct ops_buffer *out);

#endif
