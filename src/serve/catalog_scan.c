/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the trace files below some paths. A directory with traces is a run, however deep it is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <opstrobe/files.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "serve/catalog.h"

#define DEPTH_MAX 16
#define FOLDERS_MAX 10000

struct scan {
	served_list *found;
	path_list *folders;
	struct ops_error *error;
};

static char *catalog_scan_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copied = ops_realloc_array(NULL, size, 1);

	return copied ? memcpy(copied, text, size) : NULL;
}

void served_free(struct served *served)
{
	if (!served)
		return;
	ops_memory_timeline_free(served->memory);
	ops_timeline_free(served->timeline);
	ops_trace_unref(served->trace);
	ops_free(served->path);
	ops_free(served->run);
	ops_free(served->worker);
	ops_free(served->summary);
	pthread_mutex_destroy(&served->memory_lock);
	ops_free(served);
}

/* The id depends on the file: links to it remain valid when the server is restarted, but not when the file is replaced. */
static void make_id(struct served *served, const char *real_path)
{
	char key[PATH_MAX + 64];
	int size = snprintf(key, sizeof(key), "%" PRIu64 " %" PRId64 " %s", served->bytes, served->changed_ns, real_path);

	if ((size_t)size >= sizeof(key))
		size = sizeof(key) - 1;
	snprintf(served->id, sizeof(served->id), "%012" PRIx64, ops_hash(key, (size_t)size) & UINT64_C(0xffffffffffff));
}

static enum ops_code add_file(struct scan *scan, const struct ops_trace_file *file, const char *run)
{
	char real[PATH_MAX];
	struct served **slot, *served;
	struct stat about;

	if (stat(file->path, &about) || !realpath(file->path, real))
		return OPS_OK; /* the file is gone again */
	slot = OPS_ARRAY_PUSH(scan->found);
	served = slot ? ops_alloc_zeroed(1, sizeof(*served)) : NULL;
	if (!slot)
		return ops_fault_memory(scan->error);
	*slot = served;
	if (!served)
		return ops_fault_memory(scan->error);
	pthread_mutex_init(&served->memory_lock, NULL);
	served->path = catalog_scan_copy(file->path);
	served->run = catalog_scan_copy(run);
	served->worker = catalog_scan_copy(file->worker);
	served->span = file->span;
	if (S_ISREG(about.st_mode)) { /* others, such as pipes, are changed by reading */
		served->bytes = (uint64_t)about.st_size;
		served->changed_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
	}
	served->events = -1;
	served->is_listed = true;
	make_id(served, real);
	return served->path && served->run && served->worker ? OPS_OK : ops_fault_memory(scan->error);
}

static enum ops_code add_files(struct scan *scan, const struct ops_trace_files *files, const char *run)
{
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < files->count; i++)
		code = add_file(scan, &files->items[i], run);
	return code;
}

/* --- directories ---------------------------------------------------------------------------------------------------- */

static int catalog_scan_compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Lists the names of the subdirectories, sorted, without hidden ones and links. */
static bool list_folders(const char *path, path_list *names)
{
	DIR *stream = opendir(path);
	const struct dirent *entry;
	bool done = true;

	while (done && stream && (entry = readdir(stream))) {
		struct stat about;
		char **slot;

		if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (fstatat(dirfd(stream), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(about.st_mode))
			continue;
		slot = OPS_ARRAY_PUSH(names);
		if (slot)
			*slot = catalog_scan_copy(entry->d_name);
		done = slot && *slot;
	}
	if (stream)
		closedir(stream);
	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), catalog_scan_compare_names);
	return done;
}

static enum ops_code scan_folder(struct scan *scan, const char *path, const char *run, int depth);

static enum ops_code scan_inside(struct scan *scan, const char *path, const char *run, const char *name, int depth)
{
	struct ops_buffer inner_path = {0}, inner_run = {0};
	enum ops_code code;

	ops_buffer_printf(&inner_path, "%s/%s", path, name);
	ops_buffer_printf(&inner_run, "%s/%s", run, name);
	ops_buffer_append(&inner_path, "", 1);
	ops_buffer_append(&inner_run, "", 1);
	if (inner_path.failed || inner_run.failed)
		code = ops_fault_memory(scan->error);
	else
		code = scan_folder(scan, inner_path.bytes, inner_run.bytes, depth);
	ops_buffer_release(&inner_path);
	ops_buffer_release(&inner_run);
	return code;
}

static enum ops_code scan_folder(struct scan *scan, const char *path, const char *run, int depth)
{
	struct ops_trace_files files = {0};
	path_list names = {0};
	char **slot = scan->folders->count < FOLDERS_MAX ? OPS_ARRAY_PUSH(scan->folders) : NULL;
	enum ops_code code;

	if (!slot)
		return OPS_OK;
	*slot = catalog_scan_copy(path);
	code = ops_trace_files_add_folder(&files, path, scan->error);
	if (!code)
		code = add_files(scan, &files, run);
	if (code == OPS_IO && depth)
		code = OPS_OK; /* no permission to read it */
	if (!code && depth < DEPTH_MAX && !list_folders(path, &names))
		code = ops_fault_memory(scan->error);
	for (size_t i = 0; !code && i < names.count; i++)
		code = scan_inside(scan, path, run, names.items[i], depth + 1);
	for (size_t i = 0; i < names.count; i++)
		ops_free(names.items[i]);
	OPS_ARRAY_RELEASE(&names);
	ops_trace_files_release(&files);
	return code;
}

/* --- paths ---------------------------------------------------------------------------------------------------------- */

/* Returns the last component of a path, or the path if it has no other component. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static enum ops_code scan_file(struct scan *scan, const char *path, char *real)
{
	struct ops_trace_files files = {0};
	enum ops_code code = ops_trace_files_add(&files, path, scan->error);
	char *slash = strrchr(real, '/');

	if (slash)
		*slash = '\0';
	if (!code)
		code = add_files(scan, &files, *real ? last_part(real) : "/");
	ops_trace_files_release(&files);
	return code;
}

enum ops_code catalog_scan(const char *const *paths, size_t count, served_list *found, path_list *folders,
                           struct ops_error *error)
{
	struct scan scan = {found, folders, error};
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < count; i++) {
		char real[PATH_MAX];
		struct stat about;

		if (stat(paths[i], &about) || !realpath(paths[i], real))
			code = ops_fault_errno(error, errno, "cannot read '%s'", paths[i]);
		else if (S_ISDIR(about.st_mode))
			code = scan_folder(&scan, paths[i], last_part(real), 0);
		else
			code = scan_file(&scan, paths[i], real);
	}
	return code;
}
