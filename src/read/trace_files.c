/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds trace files by their names; see opstrobe/files.h.
 */
#include <opstrobe/files.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "read/trace_head.h"

static bool trace_files_ends_with(const char *name, size_t size, const char *ending)
{
	size_t ending_size = strlen(ending);

	return size > ending_size && !memcmp(name + size - ending_size, ending, ending_size);
}

/* What a folder is searched for. */
enum search {
	TORCH_NAMES, /* files with torch's names of traces */
	TRACES,      /* files that begin like a trace */
	ANY_JSON,
};

/* File name extensions of other formats. The longest comes first. */
static const char *const endings[] = {".xplane.pb", ".pftrace", ".pickle", ".sqlite", ".oprec", ".pb", ".folded", ".perf"};

/* Returns the size of the name before ".pt.trace.json", ".json" or one of these, which may be followed by ".gz" or ".zst"; 0 if
 * it is not the name of a trace. */
static size_t stem_size(const char *name, enum search search)
{
	size_t size = strlen(name);

	if (trace_files_ends_with(name, size, ".gz"))
		size -= 3;
	else if (trace_files_ends_with(name, size, ".zst"))
		size -= 4;
	if (trace_files_ends_with(name, size, ".pt.trace.json"))
		return size - 14;
	if (search != TORCH_NAMES && trace_files_ends_with(name, size, ".json"))
		return size - 5;
	for (size_t i = 0; search == TRACES && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (trace_files_ends_with(name, size, endings[i]))
			return size - strlen(endings[i]);
	return 0;
}

static char *trace_files_copy(const char *text, size_t size)
{
	char *copied = ops_realloc_array(NULL, size + 1, 1);

	if (copied) {
		memcpy(copied, text, size);
		copied[size] = '\0';
	}
	return copied;
}

/* Splits "worker0.1623143089861" into the worker "worker0" and a time. */
static void trace_files_split(struct ops_trace_file *file, const char *name, size_t size)
{
	size_t dot = size;

	while (dot > 0 && name[dot - 1] >= '0' && name[dot - 1] <= '9')
		dot--;
	if (dot < size && dot > 1 && name[dot - 1] == '.') {
		file->stamp = trace_files_copy(name + dot, size - dot);
		size = dot - 1;
	} else {
		file->stamp = trace_files_copy("", 0);
	}
	file->worker = trace_files_copy(name, size);
}

/* Takes ownership of the path, which is NULL if out of memory. */
static bool trace_files_push(struct ops_trace_files *files, char *owned_path, size_t stem)
{
	struct ops_trace_file *file = OPS_ARRAY_PUSH(files);
	const char *slash;

	if (!file || !owned_path) {
		files->count -= file != NULL;
		ops_free(owned_path);
		return false;
	}
	slash = strrchr(owned_path, '/');
	*file = (struct ops_trace_file){.path = owned_path};
	trace_files_split(file, slash ? slash + 1 : owned_path, stem);
	return file->worker && file->stamp;
}

/* Numbers the spans of a worker in order of time; `first` is the first file to consider. */
static void number_span(struct ops_trace_files *files, size_t i, size_t first)
{
	struct ops_trace_file *file = &files->items[i];

	if (*file->stamp)
		file->span = i > first && !strcmp(file[-1].worker, file->worker) ? file[-1].span + 1 : 1;
}

enum ops_code ops_trace_files_add(struct ops_trace_files *files, const char *path, struct ops_error *error)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t stem = stem_size(name, TRACES);

	if (!trace_files_push(files, trace_files_copy(path, strlen(path)), stem ? stem : strlen(name)))
		return ops_fault_memory(error);
	number_span(files, files->count - 1, 0);
	return OPS_OK;
}

/* Stamps are numbers: the shorter one is smaller. */
static int compare_stamps(const char *a, const char *b)
{
	size_t left = strlen(a), right = strlen(b);

	return left != right ? (left > right) - (left < right) : strcmp(a, b);
}

static int trace_files_compare_files(const void *a, const void *b)
{
	const struct ops_trace_file *left = a, *right = b;
	int order = strcmp(left->worker, right->worker);

	return order ? order : compare_stamps(left->stamp, right->stamp);
}

/* Opening a pipe in a folder would wait for a writer. */
static bool trace_files_is_file(const char *path)
{
	struct stat about;

	return !stat(path, &about) && S_ISREG(about.st_mode);
}

static bool push_entry(struct ops_trace_files *files, const char *folder, const char *name, enum search search)
{
	size_t length = strlen(folder), room = length + strlen(name) + 2, stem = stem_size(name, search);
	const char *slash = length && folder[length - 1] == '/' ? "" : "/";
	char *path = stem ? ops_realloc_array(NULL, room, 1) : NULL;

	if (!stem)
		return true;
	if (path)
		snprintf(path, room, "%s%s%s", folder, slash, name);
	if (path && (!trace_files_is_file(path) || (search == TRACES && !ops_begins_like_trace(path)))) {
		ops_free(path);
		return true;
	}
	return trace_files_push(files, path, stem);
}

static enum ops_code search_folder(struct ops_trace_files *files, const char *folder, enum search search,
                                   struct ops_error *error)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;
	size_t from = files->count;
	bool done = true;

	if (!stream)
		return ops_fault_errno(error, errno, "cannot read '%s'", folder);
	while (done && (entry = readdir(stream)))
		done = push_entry(files, folder, entry->d_name, search);
	closedir(stream);
	if (!done)
		return ops_fault_memory(error);
	if (files->count > from)
		qsort(files->items + from, files->count - from, sizeof(*files->items), trace_files_compare_files);
	for (size_t i = from; i < files->count; i++)
		number_span(files, i, from);
	return OPS_OK;
}

/* Searches by torch's names and, if there are none, with `fallback`. */
static enum ops_code add_folder(struct ops_trace_files *files, const char *folder, enum search fallback,
                                struct ops_error *error)
{
	size_t before = files->count;
	enum ops_code code = search_folder(files, folder, TORCH_NAMES, error);

	return code || files->count > before ? code : search_folder(files, folder, fallback, error);
}

enum ops_code ops_trace_files_add_folder(struct ops_trace_files *files, const char *folder, struct ops_error *error)
{
	return add_folder(files, folder, TRACES, error);
}

enum ops_code ops_trace_files_add_json(struct ops_trace_files *files, const char *folder, struct ops_error *error)
{
	return add_folder(files, folder, ANY_JSON, error);
}

void ops_trace_files_release(struct ops_trace_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		ops_free(files->items[i].path);
		ops_free(files->items[i].worker);
		ops_free(files->items[i].stamp);
	}
	OPS_ARRAY_RELEASE(files);
}
