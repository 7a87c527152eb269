/* SPDX-License-Identifier: Apache-2.0
 *
 * A source that decompresses zstd data; see source.h. Frames follow each other, and may be skippable ones. Frames that require a
 * window of more than 128 MiB, the library's limit, are rejected.
 */
#include "base/source.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"
#include "base/fault.h"

#define INPUT_BYTES (64u << 10)

struct zstd_source {
	struct ops_source base;
	struct ops_source *inner;
	ZSTD_DStream *stream;
	ZSTD_inBuffer input; /* in `bytes` */
	char *bytes;
	uint64_t frames; /* number of complete frames */
	bool in_frame;   /* a frame is incomplete */
	bool inner_ended, ended;
};

static enum ops_code unzstd_fill_input(struct zstd_source *source, struct ops_error *error)
{
	size_t size = 0;
	enum ops_code code = ops_source_read(source->inner, source->bytes, INPUT_BYTES, &size, error);

	if (code)
		return code;
	source->inner_ended = size == 0;
	source->input = (ZSTD_inBuffer){source->bytes, size, 0};
	__atomic_store_n(&source->base.done, source->inner->done, __ATOMIC_RELAXED);
	return OPS_OK;
}

/* Trailing bytes that are not a frame are reported and ignored. */
static enum ops_code unzstd_refuse(struct zstd_source *source, size_t result, struct ops_error *error)
{
	uint64_t byte = source->inner->done - (source->input.size - source->input.pos);
	ZSTD_ErrorCode reason = ZSTD_getErrorCode(result);

	if (reason == ZSTD_error_memory_allocation)
		return ops_fault_memory(error);
	if (reason == ZSTD_error_prefix_unknown && source->frames && !source->in_frame) {
		source->base.flags |= OPS_SOURCE_TRAILING;
		source->ended = true;
		return OPS_OK;
	}
	return ops_fault(error, OPS_CORRUPT, "compressed byte %llu: zstd: %s", (unsigned long long)byte,
	                 ZSTD_getErrorName(result));
}

/* Decompresses the available input. */
static enum ops_code unzstd_decompress(struct zstd_source *source, ZSTD_outBuffer *output, struct ops_error *error)
{
	size_t from = source->input.pos, had = output->pos;
	size_t result = ZSTD_decompressStream(source->stream, output, &source->input);

	if (ZSTD_isError(result))
		return unzstd_refuse(source, result, error);
	if (result == 0) {
		source->frames += source->in_frame || source->input.pos > from;
		source->in_frame = false;
	} else if (source->input.pos > from) {
		source->in_frame = true;
	}
	if (source->inner_ended && output->pos == had) {
		source->base.flags |= source->in_frame ? OPS_SOURCE_TRUNCATED : 0;
		source->ended = true;
	}
	return OPS_OK;
}

static enum ops_code zstd_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                               struct ops_error *error)
{
	struct zstd_source *source = (struct zstd_source *)base;
	ZSTD_outBuffer output = {out, room, 0};
	enum ops_code code = OPS_OK;

	while (!code && !source->ended && !output.pos) {
		if (source->input.pos == source->input.size && !source->inner_ended)
			code = unzstd_fill_input(source, error);
		if (!code)
			code = unzstd_decompress(source, &output, error);
	}
	if (!code)
		code = ops_source_unpacked(base, output.pos, error);
	if (!code)
		*ret_size = output.pos;
	return code;
}

static void zstd_close(struct ops_source *base)
{
	struct zstd_source *source = (struct zstd_source *)base;

	ZSTD_freeDStream(source->stream);
	ops_source_close(source->inner);
	ops_free(source->bytes);
	ops_free(source);
}

static const struct ops_source_type zstd_type = {zstd_read, zstd_close};

enum ops_code ops_source_open_zstd(struct ops_source *owned_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error)
{
	struct zstd_source *source = ops_alloc_zeroed(1, sizeof(*source));

	if (!source) {
		ops_source_close(owned_inner);
		return ops_fault_memory(error);
	}
	source->base.type = &zstd_type;
	source->base.total = owned_inner->total;
	source->inner = owned_inner;
	source->bytes = ops_alloc(head_size > INPUT_BYTES ? head_size : INPUT_BYTES);
	source->stream = ZSTD_createDStream();
	if (!source->bytes || !source->stream || ZSTD_isError(ZSTD_initDStream(source->stream))) {
		zstd_close(&source->base);
		return ops_fault_memory(error);
	}
	memcpy(source->bytes, head, head_size);
	source->input = (ZSTD_inBuffer){source->bytes, head_size, 0};
	*ret_source = &source->base;
	return OPS_OK;
}
