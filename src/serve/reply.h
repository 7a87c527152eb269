/* SPDX-License-Identifier: Apache-2.0
 *
 * What is answered: a body that several requests may share, and its compressed form once somebody wants it.
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
	_Atomic(struct packed_body *) packed; /* gzip; NULL: not made */
};

#define REPLY_JSON "application/json"
#define REPLY_BYTES "application/octet-stream"

/* Takes the body (of ops_alloc), also when memory is out and NULL comes back. */
struct reply *reply_new(int status, const char *type, char *owned_body, size_t size);
/* {"error": …}; NULL when memory is out. */
struct reply *reply_error(int status, const char *message);
/* The same of a 503 with `try_later`. */
struct reply *reply_busy(const char *message);
struct reply *reply_ref(struct reply *reply);
void reply_unref(struct reply *reply); /* NULL is allowed */

/* Makes the compressed form, if that is worth it; without it the body is sent as it is. */
void reply_pack(struct reply *reply);

#endif
