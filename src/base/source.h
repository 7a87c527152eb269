/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of bytes: memory, a file, or either of them decompressed. Each kind is a small table of functions, so that tests and
 * fuzzers can provide bytes without files.
 */
#ifndef OPS_BASE_SOURCE_H
#define OPS_BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

struct ops_source;

struct ops_source_type {
	/* Reads up to `room` (not 0) bytes to `out`. A size of 0 means the end. */
	enum ops_code (*read)(struct ops_source *source, char *out, size_t room, size_t *ret_size,
	                      struct ops_error *error);
	void (*close)(struct ops_source *source);
};

/* Problems that were recovered from. */
enum ops_source_flag {
	OPS_SOURCE_TRUNCATED = 1, /* the compressed data end prematurely */
	OPS_SOURCE_TRAILING = 2,  /* bytes after the compressed data */
};

/* The first member of every kind of source. */
struct ops_source {
	const struct ops_source_type *type;
	uint64_t done;  /* bytes read from the file or memory so far; may be read while another thread reads from the source */
	uint64_t total; /* total number of these; 0: unknown */
	unsigned flags; /* enum ops_source_flag; valid after read has returned the end */
	uint64_t unpacked; /* bytes that a decompressing source has returned so far */
};

/* Maximum size of decompressed data: a few bytes can expand to terabytes. OPSTROBE_MAX_UNPACKED_GB in the environment sets
 * another limit. */
#define OPS_UNPACKED_GB_MAX 256
/* Counts `more` bytes of a decompressing source. OPS_CORRUPT if the limit is exceeded. */
enum ops_code ops_source_unpacked(struct ops_source *source, size_t more, struct ops_error *error);

/* `bytes` are borrowed until close. */
enum ops_code ops_source_open_memory(const char *bytes, size_t size, struct ops_source **ret_source,
                                     struct ops_error *error);
enum ops_code ops_source_open_file(const char *path, struct ops_source **ret_source, struct ops_error *error);

/* Decompress data of `owned_inner`, whose first bytes `head` were read before. On failure `owned_inner` is also
 * closed. */
enum ops_code ops_source_open_gzip(struct ops_source *owned_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error);
enum ops_code ops_source_open_zstd(struct ops_source *owned_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error);

/* Wraps `*source`, whose first bytes are `head`, in the decompressor that these bytes require. `*ret_compressed` is whether there
 * is one. On failure the source is closed and set to NULL. */
enum ops_code ops_source_decompress(struct ops_source **source, const char *head, size_t size, bool *ret_compressed,
                                    struct ops_error *error);

/* Reads `owned_inner` ahead in a separate thread. On failure `owned_inner` is also closed. */
enum ops_code ops_source_open_ahead(struct ops_source *owned_inner, struct ops_source **ret_source,
                                    struct ops_error *error);

static inline enum ops_code ops_source_read(struct ops_source *source, char *out, size_t room, size_t *ret_size,
                                            struct ops_error *error)
{
	return source->type->read(source, out, room, ret_size, error);
}

/* NULL is allowed. */
static inline void ops_source_close(struct ops_source *source)
{
	if (source)
		source->type->close(source);
}

#endif
