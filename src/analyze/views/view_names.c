/* SPDX-License-Identifier: Apache-2.0
 *
 * Unique names; see view_names.h.
 */
#include "analyze/views/view_names.h"

#include "base/buffer.h"

/* Adds the first numbered name that is still free; `first` is the id of the plain name. */
static bool add_numbered(struct view_names *names, struct ops_string name, uint32_t first)
{
	uint32_t *repeats = ops_map_slot(&names->repeats, first, 1);
	size_t before = names->texts.count;
	bool done = repeats != NULL;

	while (done && names->texts.count == before) {
		struct ops_buffer text = {0};

		ops_buffer_append(&text, name.bytes, name.size);
		ops_buffer_printf(&text, " (%u)", ++*repeats);
		done = !text.failed && ops_intern_add(&names->texts, text.bytes, text.size) != OPS_INTERN_NONE;
		ops_buffer_release(&text);
	}
	return done;
}

bool view_names_add(struct view_names *names, struct ops_string name)
{
	size_t before = names->texts.count;
	uint32_t id = ops_intern_add(&names->texts, name.bytes, name.size);

	return id != OPS_INTERN_NONE && (names->texts.count > before || add_numbered(names, name, id));
}

struct ops_string view_names_at(const struct view_names *names, size_t id)
{
	return ops_intern_text(&names->texts, id);
}

void view_names_release(struct view_names *names)
{
	ops_intern_release(&names->texts);
	ops_map_release(&names->repeats);
}
