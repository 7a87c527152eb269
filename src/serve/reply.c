/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies; see reply.h.
 */
#include "serve/reply.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/json_writer.h"

/* Smaller replies fit into one packet anyway. Binary replies hardly shrink, and must be fast. */
#define PACK_MIN 1400
#define PACK_BYTES_MIN 65536
#define PACK_MAX (UINT32_C(1) << 31)
#define LEVEL 3
#define GZIP_WINDOW (15 + 16)

struct reply *reply_new(int status, const char *type, char *owned_body, size_t size)
{
	struct reply *reply = ops_alloc_zeroed(1, sizeof(*reply));

	if (!reply) {
		ops_free(owned_body);
		return NULL;
	}
	atomic_init(&reply->references, 1);
	reply->status = status;
	reply->type = type;
	reply->body = owned_body;
	reply->size = size;
	return reply;
}

struct reply *reply_error(int status, const char *message)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	ops_json_open(&json, '{');
	ops_json_key(&json, "error");
	ops_json_open(&json, '{');
	ops_json_member(&json, "status", status);
	ops_json_member_text(&json, "message", message);
	ops_json_close(&json, '}');
	ops_json_close(&json, '}');
	ops_buffer_append(&out, "", 1);
	if (!out.failed)
		return reply_new(status, REPLY_JSON, out.bytes, out.size - 1);
	ops_buffer_release(&out);
	return NULL;
}

struct reply *reply_busy(const char *message)
{
	struct reply *reply = reply_error(503, message);

	if (reply)
		reply->try_later = true;
	return reply;
}

struct reply *reply_ref(struct reply *reply)
{
	atomic_fetch_add_explicit(&reply->references, 1, memory_order_relaxed);
	return reply;
}

void reply_unref(struct reply *reply)
{
	/* Release orders this owner's last reads, acquire those of all other owners, before the memory is freed. */
	if (!reply || atomic_fetch_sub_explicit(&reply->references, 1, memory_order_acq_rel) != 1)
		return;
	ops_free(atomic_load(&reply->packed));
	ops_free(reply->body);
	ops_free(reply);
}

/* Returns NULL if out of memory, or if compression does not help. */
static struct packed_body *reply_compress(const char *bytes, size_t size)
{
	z_stream stream = {0};
	struct packed_body *packed;
	size_t room = size - size / 16;

	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	packed = ops_realloc_array(NULL, sizeof(*packed) + room, 1);
	if (packed) {
		stream.next_in = (unsigned char *)bytes;
		stream.avail_in = (uInt)size;
		stream.next_out = packed->bytes;
		stream.avail_out = (uInt)room;
	}
	if (packed && deflate(&stream, Z_FINISH) == Z_STREAM_END) {
		packed->size = stream.total_out;
	} else {
		ops_free(packed);
		packed = NULL;
	}
	deflateEnd(&stream);
	return packed;
}

void reply_pack(struct reply *reply)
{
	size_t least = strcmp(reply->type, REPLY_BYTES) ? PACK_MIN : PACK_BYTES_MIN;
	struct packed_body *none = NULL, *packed;

	if (reply->size < least || reply->size > PACK_MAX || atomic_load(&reply->packed))
		return;
	packed = reply_compress(reply->body, reply->size);
	if (packed && !atomic_compare_exchange_strong(&reply->packed, &none, packed))
		ops_free(packed);
}
