/* SPDX-License-Identifier: Apache-2.0
 *
 * Named values of a slot; see slot_values.h. Their names may be any text, so everything is written with the JSON writer.
 */
#include "read/slot_values.h"

#include <inttypes.h>
#include <string.h>

#include <opstrobe/internal/collector.h>

#include "base/json.h"

bool ops_payload_read(struct ops_payload *payload, void *out, size_t size)
{
	if (payload->size < size)
		return false;
	memcpy(out, payload->at, size);
	payload->at += size;
	payload->size -= size;
	return true;
}

bool ops_payload_text(struct ops_payload *payload, struct ops_string *ret_text)
{
	uint32_t size;
	size_t padded;

	if (!ops_payload_read(payload, &size, sizeof(size)))
		return false;
	padded = ((size_t)size + 3) & ~(size_t)3;
	if (payload->size < padded)
		return false;
	*ret_text = (struct ops_string){payload->at, size};
	payload->at += padded;
	payload->size -= padded;
	return true;
}

static bool slot_values_put_text(struct ops_payload *payload, struct ops_buffer *out)
{
	struct ops_string text;

	if (!ops_payload_text(payload, &text))
		return false;
	ops_json_string(out, text.bytes, text.size);
	return true;
}

static bool slot_values_put_texts(struct ops_payload *payload, struct ops_buffer *out)
{
	uint32_t count;

	if (!ops_payload_read(payload, &count, sizeof(count)))
		return false;
	ops_buffer_append_text(out, "[");
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			ops_buffer_append_text(out, ",");
		if (!slot_values_put_text(payload, out))
			return false;
	}
	ops_buffer_append_text(out, "]");
	return true;
}

static bool slot_values_put_int(struct ops_payload *payload, struct ops_buffer *out)
{
	int64_t value;

	if (!ops_payload_read(payload, &value, sizeof(value)))
		return false;
	ops_buffer_append_int(out, value);
	return true;
}

static bool put_uint(struct ops_payload *payload, struct ops_buffer *out)
{
	uint64_t value;

	if (!ops_payload_read(payload, &value, sizeof(value)))
		return false;
	ops_buffer_printf(out, "%" PRIu64, value);
	return true;
}

/* JSON has no representation of infinities and NaN: null. */
static bool slot_values_put_double(struct ops_payload *payload, struct ops_buffer *out)
{
	char text[32];
	double value;

	if (!ops_payload_read(payload, &value, sizeof(value)))
		return false;
	ops_buffer_append(out, text, (size_t)(ops_json_double_to(text, value) - text));
	return true;
}

static int64_t pair_time(struct ops_pair_times pairs, int64_t pair)
{
	return pair >= 0 && (uint64_t)pair < pairs.count ? pairs.ns[pair] : OPS_COUNT_UNKNOWN;
}

/* Writes a count, or the time between a pair of events. Writes nothing if it is unknown. */
static bool put_late(struct ops_payload *payload, bool closed, const struct ops_pair_times *pairs, struct ops_buffer *out,
		     size_t before)
{
	int64_t value;

	if (!ops_payload_read(payload, &value, sizeof(value)))
		return false;
	if (pairs)
		value = pair_time(*pairs, value);
	if (closed && value != OPS_COUNT_UNKNOWN)
		ops_buffer_append_int(out, value);
	else
		out->size = before;
	return true;
}

static bool slot_values_put_value(struct ops_payload *payload, uint32_t kind, struct ops_buffer *out)
{
	uint32_t truth;

	switch (kind) {
	case OPS_VALUE_INT:
		return slot_values_put_int(payload, out);
	case OPS_VALUE_UINT:
		return put_uint(payload, out);
	case OPS_VALUE_DOUBLE:
		return slot_values_put_double(payload, out);
	case OPS_VALUE_BOOL:
		if (!ops_payload_read(payload, &truth, sizeof(truth)))
			return false;
		ops_buffer_append_text(out, truth ? "true" : "false");
		return true;
	case OPS_VALUE_TEXT:
		return slot_values_put_text(payload, out);
	case OPS_VALUE_TEXT_LIST:
		return slot_values_put_texts(payload, out);
	default:
		return false;
	}
}

bool ops_payload_values(struct ops_payload *payload, bool closed, struct ops_pair_times pairs, struct ops_buffer *out)
{
	uint32_t count, kind;
	bool ok;

	if (!ops_payload_read(payload, &count, sizeof(count)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct ops_string name;
		size_t before = out->size;

		if (!ops_payload_text(payload, &name) || !ops_payload_read(payload, &kind, sizeof(kind)))
			return false;
		if (out->size)
			ops_buffer_append_text(out, ",");
		ops_json_string(out, name.bytes, name.size);
		ops_buffer_append_text(out, ":");
		if (kind == OPS_VALUE_COUNT || kind == OPS_VALUE_PAIR)
			ok = put_late(payload, closed, kind == OPS_VALUE_PAIR ? &pairs : NULL, out, before);
		else
			ok = slot_values_put_value(payload, kind, out);
		if (!ok)
			return false;
	}
	return true;
}
