/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of bytes in memory and in files; see source.h. A file is read and not mapped, because another program may truncate it
 * meanwhile.
 */
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct memory_source {
	struct ops_source base;
	const char *bytes;
};

static enum ops_code memory_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                                 struct ops_error *error)
{
	struct memory_source *source = (struct memory_source *)base;
	size_t size = (size_t)(base->total - base->done);

	(void)error;
	if (size > room)
		size = room;
	if (size)
		memcpy(out, source->bytes + base->done, size);
	base->done += size;
	*ret_size = size;
	return OPS_OK;
}

static void memory_close(struct ops_source *source)
{
	ops_free(source);
}

static const struct ops_source_type memory_type = {memory_read, memory_close};

enum ops_code ops_source_open_memory(const char *bytes, size_t size, struct ops_source **ret_source,
                                     struct ops_error *error)
{
	struct memory_source *source = ops_alloc_zeroed(1, sizeof(*source));

	if (!source)
		return ops_fault_memory(error);
	source->base.type = &memory_type;
	source->base.total = size;
	source->bytes = bytes;
	*ret_source = &source->base;
	return OPS_OK;
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

struct file_source {
	struct ops_source base;
	int descriptor;
};

static enum ops_code file_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                               struct ops_error *error)
{
	struct file_source *source = (struct file_source *)base;
	ssize_t size;

	do {
		size = read(source->descriptor, out, room);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return ops_fault_errno(error, errno, "cannot read byte %llu", (unsigned long long)base->done);
	__atomic_store_n(&base->done, base->done + (uint64_t)size, __ATOMIC_RELAXED);
	*ret_size = (size_t)size;
	return OPS_OK;
}

static void file_close(struct ops_source *base)
{
	close(((struct file_source *)base)->descriptor);
	ops_free(base);
}

static const struct ops_source_type file_type = {file_read, file_close};

enum ops_code ops_source_open_file(const char *path, struct ops_source **ret_source, struct ops_error *error)
{
	struct file_source *source = ops_alloc_zeroed(1, sizeof(*source));
	struct stat status;

	if (!source)
		return ops_fault_memory(error);
	source->base.type = &file_type;
	source->descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (source->descriptor < 0) {
		int failure = errno;

		ops_free(source);
		return ops_fault_errno(error, failure, "cannot open");
	}
	if (fstat(source->descriptor, &status) == 0 && S_ISREG(status.st_mode))
		source->base.total = (uint64_t)status.st_size;
	*ret_source = &source->base;
	return OPS_OK;
}

/* --- detection of compression --------------------------------------------------------------------------------------- */

static uint64_t unpacked_max(void)
{
	const char *text = getenv("OPSTROBE_MAX_UNPACKED_GB");
	double gigabytes;

	if (!text || !ops_json_double(text, strlen(text), &gigabytes) || !(gigabytes > 0 && gigabytes < 1e9))
		gigabytes = OPS_UNPACKED_GB_MAX;
	return (uint64_t)(gigabytes * 1e9);
}

enum ops_code ops_source_unpacked(struct ops_source *source, size_t more, struct ops_error *error)
{
	uint64_t most = unpacked_max();

	source->unpacked += more;
	if (source->unpacked <= most)
		return OPS_OK;
	return ops_fault(error, OPS_CORRUPT, "more than %g GB when decompressed; OPSTROBE_MAX_UNPACKED_GB sets another limit",
	                 (double)most / 1e9);
}

/* Returns whether the data begin with a zstd frame, or one of the sixteen kinds of skippable frames. */
static bool is_zstd(const char *head)
{
	return memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ||
	       ((head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0);
}

enum ops_code ops_source_decompress(struct ops_source **source, const char *head, size_t size, bool *ret_compressed,
                                    struct ops_error *error)
{
	struct ops_source *inner = *source;

	*ret_compressed = true;
	*source = NULL;
	if (size >= 2 && memcmp(head, "\x1f\x8b", 2) == 0)
		return ops_source_open_gzip(inner, head, size, source, error);
	if (size >= 4 && is_zstd(head))
		return ops_source_open_zstd(inner, head, size, source, error);
	*ret_compressed = false;
	*source = inner;
	return OPS_OK;
}
