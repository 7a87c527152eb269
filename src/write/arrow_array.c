/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of all tables in Arrow's C data interface: arrays that keep their trace alive, and dictionaries.
 */
#include "write/arrow_array.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/utf8.h"

void arrow_release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		if (schema->children[i] && schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
		ops_free(schema->children[i]);
	}
	ops_free(schema->children);
	if (schema->dictionary && schema->dictionary->release)
		schema->dictionary->release(schema->dictionary);
	ops_free(schema->dictionary);
	ops_free(schema->private_data);
	schema->release = NULL;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

void arrow_release_array(struct ArrowArray *array)
{
	struct arrow_kept *kept = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++) {
		if (array->children[i] && array->children[i]->release)
			array->children[i]->release(array->children[i]);
		ops_free(array->children[i]);
	}
	ops_free(array->children);
	if (array->dictionary && array->dictionary->release)
		array->dictionary->release(array->dictionary);
	ops_free(array->dictionary);
	if (kept) {
		for (int i = 0; i < 3; i++)
			ops_free(kept->owned[i]);
		ops_trace_unref(kept->trace);
		ops_free(kept);
	}
	array->release = NULL;
}

struct arrow_kept *arrow_begin(struct ArrowArray *array, struct ops_trace *trace, size_t length, int64_t buffers)
{
	struct arrow_kept *kept = ops_alloc_zeroed(1, sizeof(*kept));

	*array = (struct ArrowArray){.length = (int64_t)length, .n_buffers = buffers, .release = arrow_release_array,
	                             .private_data = kept};
	if (!kept)
		return NULL;
	kept->trace = trace ? ops_trace_ref(trace) : NULL;
	array->buffers = kept->buffers;
	return kept;
}

void *arrow_own(struct arrow_kept *kept, int i, size_t count, size_t bytes_each)
{
	kept->owned[i] = ops_alloc_zeroed(count + 1, bytes_each);
	kept->buffers[i] = kept->owned[i];
	return kept->owned[i];
}

/* --- dictionaries --------------------------------------------------------------------------------------------------- */

void arrow_append_utf8(struct ops_buffer *out, struct ops_string text)
{
	const char *end = ops_string_end(text);

	for (const char *at = text.bytes; at < end;) {
		size_t size = (uint8_t)*at < 0x80 ? 1 : ops_utf8_length(at, end);

		if (size)
			ops_buffer_append(out, at, size);
		else
			ops_buffer_append_text(out, "\xef\xbf\xbd");
		at += size ? size : 1;
	}
}

uint32_t arrow_number_of(struct arrow_texts *texts, struct ops_string text)
{
	texts->scratch.size = 0;
	arrow_append_utf8(&texts->scratch, text);
	if (texts->scratch.failed)
		return OPS_NONE;
	return ops_intern_add(&texts->unique, ops_buffer_text(&texts->scratch), texts->scratch.size);
}

bool arrow_finish_dictionary(struct ArrowArray *array, struct ops_trace *trace, const struct arrow_texts *texts)
{
	size_t count = texts->unique.count, size = 0;
	struct arrow_kept *kept;
	int64_t *offsets;
	char *bytes;

	for (size_t i = 0; i < count; i++)
		size += texts->unique.entries[i].size;
	array->dictionary = ops_alloc_zeroed(1, sizeof(*array->dictionary));
	kept = array->dictionary ? arrow_begin(array->dictionary, trace, count, 3) : NULL;
	offsets = kept ? arrow_own(kept, 1, count, sizeof(*offsets)) : NULL;
	bytes = offsets ? arrow_own(kept, 2, size, 1) : NULL;
	for (size_t i = 0; bytes && i < count; i++) {
		const struct ops_intern_entry *entry = &texts->unique.entries[i];

		if (entry->size)
			memcpy(bytes + offsets[i], entry->bytes, entry->size);
		offsets[i + 1] = offsets[i] + (int64_t)entry->size;
	}
	return bytes;
}

void arrow_texts_release(struct arrow_texts *texts)
{
	ops_buffer_release(&texts->scratch);
	ops_intern_release(&texts->unique);
}
