/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of output text for an id of the trace (a name, an input list): created on first use, kept, and
 * copied into every row that has the id. Bounded: long or late pieces are created again each time.
 */
#ifndef OPS_WRITE_FRAGMENTS_H
#define OPS_WRITE_FRAGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <opstrobe/trace.h>

#include "base/arena.h"
#include "base/buffer.h"

/* Kept fragments are no longer than this, and behind the last byte of any fragment this many may be read. */
#define OPS_FRAGMENT_KEPT_MAX 4096u
#define OPS_FRAGMENT_PADDING 16u

struct ops_fragments {
	const struct ops_trace *trace;
	void (*make)(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id);
	struct ops_string *kept; /* by id; bytes NULL: not made yet */
	size_t kept_count;
	size_t kept_bytes;
	struct ops_arena arena;     /* the kept texts */
	struct ops_buffer scratch;  /* the last one made; its failure is sticky */
};

/* `count` ids. False when memory is out; released or not, ops_fragments_release is allowed. */
bool ops_fragments_init(struct ops_fragments *fragments, const struct ops_trace *trace, size_t count,
                        void (*make)(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id));
void ops_fragments_release(struct ops_fragments *fragments);

/* The slow half of ops_fragments_get. When memory is out the text is empty and scratch.failed is set. */
struct ops_string ops_fragments_make(struct ops_fragments *fragments, uint32_t id);

/* The text of an id; good until the next call. */
static inline struct ops_string ops_fragments_get(struct ops_fragments *fragments, uint32_t id)
{
	if (id < fragments->kept_count && fragments->kept[id].bytes)
		return fragments->kept[id];
	return ops_fragments_make(fragments, id);
}

/* Copies a fragment, up to OPS_FRAGMENT_PADDING - 1 bytes more than there are: short copies of unknown length cost less in
 * whole steps. `out` has that room. */
static inline char *ops_fragment_put(char *out, struct ops_string fragment)
{
	for (size_t at = 0; at < fragment.size; at += OPS_FRAGMENT_PADDING)
		memcpy(out + at, fragment.bytes + at, OPS_FRAGMENT_PADDING);
	return out + fragment.size;
}

#endif
