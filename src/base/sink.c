/* SPDX-License-Identifier: Apache-2.0
 *
 * Sinks; see sink.h. Bytes are collected in a staging area, optionally compressed, and written to a new file in the target's
 * directory or appended to a buffer:
 *
 *     room, write ─▶ staging ─▶ [deflate ─▶ packed │ threads] ─▶ write(2) to the new file │ ops_buffer_append
 *
 * Where the file system supports it (O_TMPFILE), the new file has no name until it is complete and on disk, so that no file
 * remains however the process ends. Elsewhere it has a temporary name next to the target, which is removed with the sink.
 */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/gzip_threads.h"

#define STAGING_BYTES OPS_GZIP_BLOCK_BYTES
#define PACKED_BYTES (128u << 10)
#define LINKS_MAX 40
#define NAMES_MAX 100

struct ops_sink {
	struct ops_buffer *buffer; /* destination of the bytes; NULL: fd */
	int fd;
	int os_errno;     /* of the first failure; 0: none */
	bool out_of_memory;
	bool deflating;
	char *target;     /* path without symbolic links; NULL for a buffer */
	char *temporary;  /* path of the new file; NULL if it has no name yet, or if fd is the target itself */
	bool unnamed;     /* the new file has no name yet */
	char *packed;
	z_stream stream;
	struct ops_gzip_threads *threads; /* compress instead of `stream`; NULL: none */
	uint64_t total;   /* bytes flushed from the staging area */
	size_t staged;
	char staging[STAGING_BYTES];
};

/* --- bytes out ----------------------------------------------------------------------------------------------------- */

bool ops_sink_failed(const struct ops_sink *sink)
{
	return sink->os_errno || sink->out_of_memory;
}

static void emit(void *context, const char *bytes, size_t size)
{
	struct ops_sink *sink = context;

	if (sink->buffer) {
		ops_buffer_append(sink->buffer, bytes, size);
		sink->out_of_memory |= sink->buffer->failed;
		return;
	}
	while (size && !ops_sink_failed(sink)) {
		ssize_t written = write(sink->fd, bytes, size);

		if (written < 0 && errno != EINTR) {
			sink->os_errno = errno;
		} else if (written > 0) {
			bytes += written;
			size -= (size_t)written;
		}
	}
}

static void emit_packed(struct ops_sink *sink, int how)
{
	sink->stream.next_in = (Bytef *)sink->staging;
	sink->stream.avail_in = (uInt)sink->staged;
	do {
		sink->stream.next_out = (Bytef *)sink->packed;
		sink->stream.avail_out = PACKED_BYTES;
		deflate(&sink->stream, how);
		emit(sink, sink->packed, PACKED_BYTES - sink->stream.avail_out);
	} while (sink->stream.avail_out == 0 && !ops_sink_failed(sink));
}

static void sink_flush(struct ops_sink *sink)
{
	if (!ops_sink_failed(sink)) {
		if (sink->threads)
			ops_gzip_threads_add(sink->threads, sink->staging, sink->staged, false);
		else if (sink->deflating)
			emit_packed(sink, Z_NO_FLUSH);
		else
			emit(sink, sink->staging, sink->staged);
	}
	sink->total += sink->staged;
	sink->staged = 0;
}

char *ops_sink_room(struct ops_sink *sink)
{
	if (STAGING_BYTES - sink->staged < OPS_SINK_ROOM)
		sink_flush(sink);
	return sink->staging + sink->staged;
}

void ops_sink_advance(struct ops_sink *sink, size_t bytes)
{
	sink->staged += bytes;
}

void ops_sink_write(struct ops_sink *sink, const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size) {
		size_t left = STAGING_BYTES - sink->staged;
		size_t part = size < left ? size : left;

		memcpy(sink->staging + sink->staged, from, part);
		sink->staged += part;
		from += part;
		size -= part;
		if (sink->staged == STAGING_BYTES)
			sink_flush(sink);
	}
}

void ops_sink_rewrite(struct ops_sink *sink, uint64_t offset, const void *bytes, size_t size)
{
	const char *from = bytes;

	sink_flush(sink);
	while (size && !ops_sink_failed(sink)) {
		ssize_t written = pwrite(sink->fd, from, size, (off_t)offset);

		if (written < 0 && errno != EINTR) {
			sink->os_errno = errno;
		} else if (written > 0) {
			from += written;
			offset += (uint64_t)written;
			size -= (size_t)written;
		}
	}
}

uint64_t ops_sink_total(const struct ops_sink *sink)
{
	return sink->total + sink->staged;
}

/* --- opening ------------------------------------------------------------------------------------------------------- */

static void *sink_allocate_for_zlib(void *unused, uInt count, uInt bytes_each)
{
	(void)unused;
	return ops_realloc_array(NULL, count, bytes_each);
}

static void sink_free_for_zlib(void *unused, void *memory)
{
	(void)unused;
	ops_free(memory);
}

static void sink_release(struct ops_sink *sink)
{
	if (sink->deflating)
		deflateEnd(&sink->stream);
	ops_gzip_threads_free(sink->threads);
	ops_free(sink->target);
	ops_free(sink->temporary);
	ops_free(sink->packed);
	ops_free(sink);
}

static bool start_deflate(struct ops_sink *sink, int level, unsigned threads)
{
	const int gzip_window = 15 + 16; /* the largest window, and a gzip header */

	if (threads > 1) {
		sink->threads = ops_gzip_threads_new(level, threads, emit, sink);
		return sink->threads != NULL;
	}
	sink->packed = ops_alloc(PACKED_BYTES);
	if (!sink->packed)
		return false;
	sink->stream.zalloc = sink_allocate_for_zlib;
	sink->stream.zfree = sink_free_for_zlib;
	sink->deflating =
		deflateInit2(&sink->stream, level, Z_DEFLATED, gzip_window, 9, Z_DEFAULT_STRATEGY) == Z_OK;
	return sink->deflating;
}

/* Returns `path` with its last component replaced by `name`, or only `name` if that is absolute. */
static char *sink_join(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	size_t folder = slash && name[0] != '/' ? (size_t)(slash - path) + 1 : 0;
	size_t length = strlen(name);
	char *joined = ops_alloc(folder + length + 1);

	if (!joined)
		return NULL;
	memcpy(joined, path, folder);
	memcpy(joined + folder, name, length + 1);
	return joined;
}

/* Follows symbolic links in the last component of `path`, even to a path that does not exist yet. Returns errno. */
static int sink_follow_links(const char *path, char **ret_target)
{
	char *target = sink_join("", path);

	for (int i = 0; target && i < LINKS_MAX; i++) {
		char link[PATH_MAX];
		ssize_t length = readlink(target, link, sizeof(link) - 1);
		char *next;

		if (length < 0) {
			*ret_target = target;
			return 0;
		}
		link[length] = '\0';
		next = sink_join(target, link);
		ops_free(target);
		target = next;
	}
	ops_free(target);
	return target ? ELOOP : ENOMEM;
}

static int link_to(const struct ops_sink *sink, const char *path)
{
	char own[32];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", sink->fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static int create_at(struct ops_sink *sink, const char *path)
{
	sink->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return sink->fd < 0 ? errno : 0;
}

/* Creates the file, or names it for the first time, under a temporary name that is not in use; tries names until one is free.
 * Returns errno. */
static int name_temporary(struct ops_sink *sink)
{
	static uint32_t count;
	int os_errno = EEXIST;

	for (int i = 0; os_errno == EEXIST && i < NAMES_MAX; i++) {
		struct timespec now;
		char name[64];

		clock_gettime(CLOCK_REALTIME, &now);
		snprintf(name, sizeof(name), ".opstrobe-%lx-%lx-%x.tmp", (unsigned long)getpid(), (unsigned long)now.tv_nsec,
		         (unsigned)__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
		sink->temporary = sink_join(sink->target, name);
		if (!sink->temporary)
			return ENOMEM;
		os_errno = sink->unnamed ? link_to(sink, sink->temporary) : create_at(sink, sink->temporary);
		if (os_errno) {
			ops_free(sink->temporary);
			sink->temporary = NULL;
		}
	}
	return os_errno;
}

/* Creates the new file, without a name if it can be named later. Returns errno. */
static int create_new(struct ops_sink *sink, const struct stat *old)
{
	char *folder = sink_join(sink->target, ".");
	int os_errno = 0;

	if (!folder)
		return ENOMEM;
	sink->fd = access("/proc/self/fd", X_OK) ? -1 : open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	sink->unnamed = sink->fd >= 0;
	ops_free(folder);
	if (!sink->unnamed)
		os_errno = name_temporary(sink);
	if (!os_errno && old && fchmod(sink->fd, old->st_mode & 07777) != 0) {
		os_errno = errno;
		close(sink->fd);
		if (sink->temporary)
			unlink(sink->temporary);
	}
	return os_errno;
}

/* Renames the complete file to the target. A file without a name can take a free name at once; to replace another it needs
 * a temporary name first. Returns errno. */
static int put_in_place(struct ops_sink *sink)
{
	int os_errno = 0;

	if (sink->unnamed) {
		os_errno = link_to(sink, sink->target);
		if (os_errno != EEXIST)
			return os_errno;
		os_errno = name_temporary(sink);
	}
	return os_errno ? os_errno : rename(sink->temporary, sink->target) ? errno : 0;
}

/* Opens the file to which bytes are written. A device or a pipe cannot be replaced and is written in place. Returns errno. */
static int sink_open_target(struct ops_sink *sink, const char *path)
{
	struct stat old;
	bool exists = stat(path, &old) == 0;
	int os_errno;

	if (!exists && (errno != ENOENT || path[0] == '\0'))
		return errno;
	if (exists && S_ISDIR(old.st_mode))
		return EISDIR;
	if (exists && access(path, W_OK) != 0)
		return errno;
	os_errno = sink_follow_links(path, &sink->target);
	if (os_errno)
		return os_errno;
	if (!exists || S_ISREG(old.st_mode))
		return create_new(sink, exists ? &old : NULL);
	sink->fd = open(path, O_WRONLY | O_CLOEXEC);
	return sink->fd < 0 ? errno : 0;
}

enum ops_code ops_sink_open_file(const char *path, int gzip_level, struct ops_sink **ret_sink, struct ops_error *error)
{
	return ops_sink_open_gzip(path, gzip_level, 1, ret_sink, error);
}

enum ops_code ops_sink_open_gzip(const char *path, int gzip_level, unsigned threads, struct ops_sink **ret_sink,
                                 struct ops_error *error)
{
	struct ops_sink *sink = ops_alloc_zeroed(1, sizeof(*sink));
	int os_errno;

	if (!sink)
		return ops_fault_memory(error);
	sink->fd = -1;
	if (gzip_level > 0 && !start_deflate(sink, gzip_level, threads)) {
		sink_release(sink);
		return ops_fault_memory(error);
	}
	os_errno = sink_open_target(sink, path);
	if (os_errno) {
		sink_release(sink);
		return ops_fault_errno(error, os_errno, "cannot create '%s'", path);
	}
	*ret_sink = sink;
	return OPS_OK;
}

enum ops_code ops_sink_open_buffer(struct ops_buffer *buffer, struct ops_sink **ret_sink, struct ops_error *error)
{
	struct ops_sink *sink = ops_alloc_zeroed(1, sizeof(*sink));

	if (!sink)
		return ops_fault_memory(error);
	sink->fd = -1;
	sink->buffer = buffer;
	*ret_sink = sink;
	return OPS_OK;
}

/* --- closing ------------------------------------------------------------------------------------------------------- */

enum ops_code ops_sink_close(struct ops_sink *sink, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	if (sink->threads && !ops_sink_failed(sink))
		ops_gzip_threads_add(sink->threads, sink->staging, sink->staged, true);
	else
		sink_flush(sink);
	if (sink->deflating && !ops_sink_failed(sink))
		emit_packed(sink, Z_FINISH);
	/* After a system crash the name refers to the old file or to the complete new one. Some file systems report a full disk
	 * only at this point. */
	if ((sink->temporary || sink->unnamed) && !ops_sink_failed(sink) && fsync(sink->fd) != 0)
		sink->os_errno = errno;
	if ((sink->temporary || sink->unnamed) && !ops_sink_failed(sink))
		sink->os_errno = put_in_place(sink);
	if (sink->fd >= 0 && close(sink->fd) != 0 && !ops_sink_failed(sink))
		sink->os_errno = errno;
	if (sink->temporary && ops_sink_failed(sink))
		unlink(sink->temporary);
	if (sink->os_errno)
		code = ops_fault_errno(error, sink->os_errno, "cannot write '%s'", sink->target);
	else if (sink->out_of_memory)
		code = ops_fault_memory(error);
	sink_release(sink);
	return code;
}

void ops_sink_abandon(struct ops_sink *sink)
{
	if (!sink)
		return;
	if (sink->fd >= 0)
		close(sink->fd);
	if (sink->temporary)
		unlink(sink->temporary);
	sink_release(sink);
}
