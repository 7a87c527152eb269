/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds collectives of several workers that are one operation; see view_operations.h.
 */
#include "analyze/views/view_operations.h"

#include <string.h>

#include "base/alloc.h"

/* Appends the process group that a row names. Returns false if the row does not name one. Torch stores it in an
 * operator around the collective, and in its kernels. */
static bool append_group(const struct ops_views *views, uint32_t row, struct ops_buffer *key)
{
	static const char *const names[] = {"Process Group Ranks", "Process Group Name", "Seq"};
	bool known = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct ops_string json;

		if (!ops_event_arg(views->trace, row, names[i], &json))
			continue;
		ops_buffer_append(key, json.bytes, json.size);
		ops_buffer_append(key, "\n", 1);
		known = true;
	}
	return known;
}

/* Returns OPS_INTERN_NONE if out of memory. `kernel` is a row of the collective, or OPS_NONE. */
static uint32_t view_operations_make_key(const struct ops_views *views, struct ops_intern *texts, uint32_t collective,
                                         uint32_t kernel)
{
	uint32_t row = views->collectives.items[collective].row, parent = views->nodes.items[views->node_of[row]].parent;
	struct ops_string name = view_row_name(views, row);
	struct ops_buffer text = {0};
	uint32_t key;

	ops_buffer_append(&text, name.bytes, name.size);
	ops_buffer_append(&text, "\n", 1);
	if (!append_group(views, row, &text) &&
	    (parent == OPS_NONE || !append_group(views, views->nodes.items[parent].row, &text)) && kernel != OPS_NONE)
		append_group(views, kernel, &text);
	key = text.failed ? OPS_INTERN_NONE : ops_intern_add(texts, text.bytes, text.size);
	ops_buffer_release(&text);
	return key;
}

bool view_operations_make_keys(const struct ops_views *views, struct ops_intern *texts, uint32_t *ret_keys)
{
	uint32_t *kernels = ops_alloc_none(views->collectives.count + 1); /* one row of each collective */
	bool done = kernels != NULL;

	for (size_t i = 0; done && i < views->device_events.count; i++)
		if (views->device_events.items[i].collective != OPS_NONE)
			kernels[views->device_events.items[i].collective] = views->device_events.items[i].row;
	for (uint32_t i = 0; done && i < views->collectives.count; i++) {
		ret_keys[i] = view_operations_make_key(views, texts, i, kernels[i]);
		done = ret_keys[i] != OPS_INTERN_NONE;
	}
	ops_free(kernels);
	return done;
}

bool view_operations_number(struct view_operations *operations, const struct ops_intern *texts, const uint32_t *keys,
                            size_t count, uint32_t *ret_operations)
{
	struct ops_map seen = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		const struct ops_intern_entry *text = &texts->entries[keys[i]];
		uint32_t key = ops_intern_add(&operations->keys, text->bytes, text->size);
		uint32_t *nth = key == OPS_INTERN_NONE ? NULL : ops_map_slot(&seen, key, 0);
		uint32_t *operation = nth ? ops_map_slot(&operations->numbers, view_operations_pair(key, (*nth)++),
		                                         (uint32_t)operations->numbers.count)
		                          : NULL;

		done = operation != NULL;
		if (done)
			ret_operations[i] = *operation;
	}
	ops_map_release(&seen);
	return done;
}

void view_operations_release(struct view_operations *operations)
{
	ops_intern_release(&operations->keys);
	ops_map_release(&operations->numbers);
}
