/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies: a body that several requests may share, and its compressed form once a client accepts it.
 */
#ifndef OPS_SERVE_REPLY_H
#define OPS_SERVE_REPLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct packed_body {
	size_t size;
	unsigned char bytes[];
};

struct reply {
	atomic_uint references;
	int status;
	const char *type; /* static */
	char *body;       /* followed by a NUL */
	size_t size;
	bool try_later; /* the same request may succeed in a second */
	_Atomic(struct packed_body *) packed; /* gzip; NULL: not compressed yet */
};

#define REPLY_JSON "application/json"
#define REPLY_BYTES "application/octet-stream"

/* Takes ownership of the body (from ops_alloc), even if out of memory, when it returns NULL. */
struct reply *reply_new(int status, const char *type, char *owned_body, size_t size);
/* Returns {"error": …}; NULL if out of memory. */
struct reply *reply_error(int status, const char *message);
/* Like reply_error, with status 503 and `try_later`. */
struct reply *reply_busy(const char *message);
struct reply *reply_ref(struct reply *reply);
void reply_unref(struct reply *reply); /* NULL is allowed */

/* Creates the compressed form if it is worthwhile; without it the body is sent uncompressed. */
void reply_pack(struct reply *reply);

#endif
