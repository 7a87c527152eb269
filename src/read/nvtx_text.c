/* SPDX-License-Identifier: Apache-2.0
 *
 * See nvtx_text.h.
 */
#include "read/nvtx_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"

/* Returns the text between a word and the comma that ends it; empty if the word is missing. */
static struct ops_string nvtx_value(struct ops_string text, const char *word)
{
	const char *at = memmem(text.bytes, text.size, word, strlen(word)), *end = ops_string_end(text), *stop;

	if (!at)
		return (struct ops_string){"", 0};
	at += strlen(word);
	stop = at < end && *at == '[' ? end : memchr(at, ',', (size_t)(end - at));
	return (struct ops_string){at, (size_t)((stop ? stop : end) - at)};
}

/* Returns the part of a text that is one list, with all its brackets. */
static struct ops_string nvtx_list(struct ops_string text)
{
	size_t depth = 0;

	for (size_t i = 0; i < text.size; i++) {
		depth += text.bytes[i] == '[';
		depth -= text.bytes[i] == ']' && depth;
		if (!depth)
			return (struct ops_string){text.bytes, i + 1};
	}
	return (struct ops_string){"", 0};
}

bool nvtx_parse_operator(struct ops_string text, struct nvtx_operator *ret_operator)
{
	struct ops_string sequence = nvtx_value(text, ", seq = "), id = nvtx_value(text, ", op_id = ");
	struct ops_string sizes = nvtx_list(nvtx_value(text, ", sizes = "));
	const char *comma = text.size ? memmem(text.bytes, text.size, ", ", 2) : NULL;
	int64_t number;

	if (!comma || (!sequence.size && !id.size && !sizes.size))
		return false;
	*ret_operator = (struct nvtx_operator){.name = {text.bytes, (size_t)(comma - text.bytes)}, .sizes = {"", 0}, .sequence = -1};
	if (ops_json_parse_integer(sequence, &number) && number >= 0)
		ret_operator->sequence = number;
	if (sizes.size > 1 && !ops_json_validate(sizes.bytes, sizes.size, NULL))
		ret_operator->sizes = sizes;
	return true;
}

void nvtx_put_args(struct ops_buffer *out, const struct nvtx_operator *operator)
{
	ops_buffer_append_text(out, ",\"args\":{\"nvtx\":true");
	if (operator->sequence >= 0)
		ops_buffer_printf(out, ",\"Sequence number\":%" PRId64, operator->sequence);
	if (operator->sizes.size) {
		ops_buffer_append_text(out, ",\"Input Dims\":");
		ops_buffer_append(out, operator->sizes.bytes, operator->sizes.size);
	}
	ops_buffer_append_text(out, "}");
}
