/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts by id, rendered once; see fragments.h.
 */
#include "write/fragments.h"

#include "base/alloc.h"

/* Frequent names and input lists occur early, and there are hundreds of them. These limits are for traces in which every event
 * has its own. */
#define KEPT_COUNT_MAX 65536u
#define KEPT_BYTES_MAX (16u << 20)

bool ops_fragments_init(struct ops_fragments *fragments, const struct ops_trace *trace, size_t count,
                        void (*make)(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id))
{
	*fragments = (struct ops_fragments){.trace = trace, .make = make};
	if (count > KEPT_COUNT_MAX)
		count = KEPT_COUNT_MAX;
	fragments->kept = ops_alloc_zeroed(count, sizeof(*fragments->kept));
	if (!fragments->kept)
		return false;
	fragments->kept_count = count;
	return true;
}

void ops_fragments_release(struct ops_fragments *fragments)
{
	ops_free(fragments->kept);
	ops_arena_release(&fragments->arena);
	ops_buffer_release(&fragments->scratch);
	*fragments = (struct ops_fragments){0};
}

struct ops_string ops_fragments_make(struct ops_fragments *fragments, uint32_t id)
{
	struct ops_buffer *scratch = &fragments->scratch;
	struct ops_string text = {"", 0};
	char *kept;

	scratch->size = 0;
	fragments->make(scratch, fragments->trace, id);
	if (!ops_buffer_room(scratch, OPS_FRAGMENT_PADDING))
		return text;
	text = (struct ops_string){scratch->bytes, scratch->size};
	if (id >= fragments->kept_count || text.size > OPS_FRAGMENT_KEPT_MAX ||
	    fragments->kept_bytes + text.size > KEPT_BYTES_MAX)
		return text;
	kept = ops_arena_alloc(&fragments->arena, text.size + OPS_FRAGMENT_PADDING);
	if (!kept) {
		scratch->failed = true;
		return text;
	}
	memcpy(kept, text.bytes, text.size + OPS_FRAGMENT_PADDING);
	fragments->kept_bytes += text.size + OPS_FRAGMENT_PADDING;
	text.bytes = fragments->kept[id].bytes = kept;
	fragments->kept[id].size = text.size;
	return text;
}
