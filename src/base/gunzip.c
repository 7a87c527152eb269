/* SPDX-License-Identifier: Apache-2.0
 *
 * A source that decompresses gzip data; see source.h.
 */
#include "base/source.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fault.h"

#define INPUT_BYTES (64u << 10)

/* Argument of inflateInit2: the largest window, gzip format only. */
#define GZIP_WINDOW (15 + 16)

struct gzip_source {
	struct ops_source base;
	struct ops_source *inner;
	z_stream stream;
	unsigned char *input;
	bool inner_ended, ended;
};

static void *gunzip_allocate_for_zlib(void *unused, unsigned count, unsigned bytes_each)
{
	(void)unused;
	return ops_realloc_array(NULL, count, bytes_each);
}

static void gunzip_free_for_zlib(void *unused, void *memory)
{
	(void)unused;
	ops_free(memory);
}

static enum ops_code gunzip_fill_input(struct gzip_source *source, struct ops_error *error)
{
	size_t size = 0;
	enum ops_code code = ops_source_read(source->inner, (char *)source->input, INPUT_BYTES, &size, error);

	if (code)
		return code;
	source->inner_ended = size == 0;
	source->stream.next_in = source->input;
	source->stream.avail_in = (unsigned)size;
	__atomic_store_n(&source->base.done, source->inner->done, __ATOMIC_RELAXED);
	return OPS_OK;
}

/* At the end of a member, checks for another one. Other trailing bytes are reported and ignored. */
static enum ops_code next_member(struct gzip_source *source, struct ops_error *error)
{
	z_stream *stream = &source->stream;

	if (stream->avail_in == 0) {
		enum ops_code code = gunzip_fill_input(source, error);
		if (code)
			return code;
	}
	source->ended = stream->avail_in == 0;
	if (stream->avail_in && stream->next_in[0] == 0x1f && (stream->avail_in < 2 || stream->next_in[1] == 0x8b)) {
		inflateReset(stream);
	} else if (stream->avail_in) {
		source->base.flags |= OPS_SOURCE_TRAILING;
		source->ended = true;
	}
	return OPS_OK;
}

static enum ops_code gunzip_refuse(const struct gzip_source *source, int result, struct ops_error *error)
{
	uint64_t byte = source->inner->done - source->stream.avail_in;

	if (result == Z_MEM_ERROR)
		return ops_fault_memory(error);
	return ops_fault(error, OPS_CORRUPT, "compressed byte %llu: %s", (unsigned long long)byte,
	                 source->stream.msg ? source->stream.msg : "damaged gzip data");
}

/* Loops until there is output, so that the bytes before a defect are returned before the defect is reported. */
static enum ops_code gzip_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                               struct ops_error *error)
{
	struct gzip_source *source = (struct gzip_source *)base;
	z_stream *stream = &source->stream;
	unsigned room_now = room < UINT32_MAX ? (unsigned)room : UINT32_MAX;
	enum ops_code code = OPS_OK;

	stream->next_out = (unsigned char *)out;
	stream->avail_out = room_now;
	while (!code && !source->ended && stream->avail_out == room_now) {
		int result;

		if (stream->avail_in == 0 && !source->inner_ended) {
			code = gunzip_fill_input(source, error);
			continue;
		}
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			code = next_member(source, error);
		} else if (result == Z_BUF_ERROR && source->inner_ended) {
			base->flags |= OPS_SOURCE_TRUNCATED;
			source->ended = true;
		} else if (result != Z_OK && result != Z_BUF_ERROR && stream->avail_out == room_now) {
			code = gunzip_refuse(source, result, error);
		}
	}
	if (!code)
		code = ops_source_unpacked(base, room_now - stream->avail_out, error);
	if (!code)
		*ret_size = room_now - stream->avail_out;
	return code;
}

static void gzip_close(struct ops_source *base)
{
	struct gzip_source *source = (struct gzip_source *)base;

	inflateEnd(&source->stream);
	ops_source_close(source->inner);
	ops_free(source->input);
	ops_free(source);
}

static const struct ops_source_type gzip_type = {gzip_read, gzip_close};

enum ops_code ops_source_open_gzip(struct ops_source *owned_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error)
{
	struct gzip_source *source = ops_alloc_zeroed(1, sizeof(*source));

	if (!source) {
		ops_source_close(owned_inner);
		return ops_fault_memory(error);
	}
	source->base.type = &gzip_type;
	source->base.total = owned_inner->total;
	source->inner = owned_inner;
	source->input = ops_alloc(head_size > INPUT_BYTES ? head_size : INPUT_BYTES);
	source->stream.zalloc = gunzip_allocate_for_zlib;
	source->stream.zfree = gunzip_free_for_zlib;
	if (!source->input || inflateInit2(&source->stream, GZIP_WINDOW) != Z_OK) {
		gzip_close(&source->base);
		return ops_fault_memory(error);
	}
	memcpy(source->input, head, head_size);
	source->stream.next_in = source->input;
	source->stream.avail_in = (unsigned)head_size;
	*ret_source = &source->base;
	return OPS_OK;
}
