/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of output text for an id of the trace (a name, an input list): rendered on first use, kept, and copied to every row that
 * has the id. Bounded: long or late pieces are rendered again each time.
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

/* Maximum size of a kept fragment; also the number of bytes that may be read after the end of any fragment. */
#define OPS_FRAGMENT_KEPT_MAX 4096u
#define OPS_FRAGMENT_PADDING 16u

struct ops_fragments {
	const struct ops_trace *trace;
	void (*make)(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id);
	struct ops_string *kept; /* by id; bytes is NULL if it is not rendered yet */
	size_t kept_count;
	size_t kept_bytes;
	struct ops_arena arena;     /* the kept texts */
	struct ops_buffer scratch;  /* the last rendered one; its failure is sticky */
};

/* Prepares fragments for `count` ids. Returns false if out of memory; ops_fragments_release is allowed even then, and repeatedly. */
bool ops_fragments_init(struct ops_fragments *fragments, const struct ops_trace *trace, size_t count,
                        void (*make)(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id));
void ops_fragments_release(struct ops_fragments *fragments);

/* The slow path of ops_fragments_get. If out of memory, the text is empty and scratch.failed is set. */
struct ops_string ops_fragments_make(struct ops_fragments *fragments, uint32_t id);

/* Returns the text of an id; valid until the next call. */
static inline struct ops_string ops_fragments_get(struct ops_fragments *fragments, uint32_t id)
{
	if (id < fragments->kept_count && fragments->kept[id].bytes)
		return fragments->kept[id];
	return ops_fragments_make(fragments, id);
}

/* Copies a fragment and up to OPS_FRAGMENT_PADDING - 1 more bytes, because short copies of unknown length are cheaper in fixed
 * steps. `out` must have that room. */
static inline char *ops_fragment_put(char *out, struct ops_string fragment)
{
	for (size_t at = 0; at < fragment.size; at += OPS_FRAGMENT_PADDING)
		memcpy(out + at, fragment.bytes + at, OPS_FRAGMENT_PADDING);
	return out + fragment.size;
}

#endif
