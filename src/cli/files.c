/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace files of a run: those of a directory by the names that torch gives them, "<worker>[.<stamp>].pt.trace.json[.gz]".
 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How much of the name stands before ".pt.trace.json" or ".json", which may have ".gz" behind; 0 for no trace. */
static size_t stem_size(const char *name, bool any_json)
{
	size_t size = strlen(name);

	if (size > 3 && !strcmp(name + size - 3, ".gz"))
		size -= 3;
	if (size > 14 && !strncmp(name + size - 14, ".pt.trace.json", 14))
		return size - 14;
	return any_json && size > 5 && !strncmp(name + size - 5, ".json", 5) ? size - 5 : 0;
}

/* "worker0.1623143089861" is the worker "worker0" at some time. */
static void split(struct cli_file *file, const char *name, size_t size)
{
	size_t dot = size;

	while (dot > 0 && name[dot - 1] >= '0' && name[dot - 1] <= '9')
		dot--;
	if (dot < size && dot > 1 && name[dot - 1] == '.') {
		file->stamp = strndup(name + dot, size - dot);
		size = dot - 1;
	} else {
		file->stamp = strdup("");
	}
	file->worker = strndup(name, size);
}

/* `path` is the folder's, with the name behind, or the file's own. */
static int add_file(struct cli_files *files, const char *path, const char *name, size_t stem, bool in_folder)
{
	struct cli_file *grown = realloc(files->items, (files->count + 1) * sizeof(*grown));
	struct cli_file *file;
	size_t room = strlen(path) + strlen(name) + 2;

	if (!grown)
		return ENOMEM;
	files->items = grown;
	file = &files->items[files->count++];
	*file = (struct cli_file){.path = malloc(room)};
	split(file, name, stem);
	if (!file->path || !file->worker || !file->stamp)
		return ENOMEM;
	snprintf(file->path, room, in_folder ? "%s/%s" : "%s", path, name);
	return 0;
}

/* Stamps are numbers: the shorter is the smaller (F26). */
static int compare_stamps(const char *a, const char *b)
{
	size_t left = strlen(a), right = strlen(b);

	return left != right ? (left > right) - (left < right) : strcmp(a, b);
}

static int compare_files(const void *a, const void *b)
{
	const struct cli_file *left = a, *right = b;
	int order = strcmp(left->worker, right->worker);

	return order ? order : compare_stamps(left->stamp, right->stamp);
}

/* Spans of a worker are numbered from 1 in order of time; a file without a stamp has none. */
static void number_spans(struct cli_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct cli_file *file = &files->items[i];

		if (!*file->stamp)
			continue;
		file->span = 1;
		if (i && !strcmp(files->items[i - 1].worker, file->worker))
			file->span = files->items[i - 1].span + 1;
	}
}

static int add_folder(struct cli_files *files, const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	int failure = 0;

	if (!folder)
		return errno;
	while (!failure && (entry = readdir(folder))) {
		size_t stem = stem_size(entry->d_name, false);

		if (stem)
			failure = add_file(files, path, entry->d_name, stem, true);
	}
	closedir(folder);
	if (!failure && files->count)
		qsort(files->items, files->count, sizeof(*files->items), compare_files);
	return failure;
}

static int add_path(struct cli_files *files, const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t stem = stem_size(name, true);

	if (!strcmp(path, "-"))
		return add_file(files, "/dev/stdin", "stdin", strlen("stdin"), false);
	return add_file(files, path, name, stem ? stem : strlen(name), false);
}

/* A pattern that the shell was kept from replacing. A file of just that name comes before. */
static int add_matches(struct cli_files *files, const char *pattern)
{
	glob_t matches;
	int failure = glob(pattern, 0, NULL, &matches);

	if (failure)
		return failure == GLOB_NOMATCH ? add_path(files, pattern) : failure == GLOB_NOSPACE ? ENOMEM : EACCES;
	for (size_t i = 0; !failure && i < matches.gl_pathc; i++)
		failure = add_path(files, matches.gl_pathv[i]);
	files->is_folder = true;
	globfree(&matches);
	return failure;
}

static int add_any(struct cli_files *files, const char *path)
{
	struct stat about;

	if (stat(path, &about))
		return strpbrk(path, "*?[") ? add_matches(files, path) : add_path(files, path);
	if (!S_ISDIR(about.st_mode))
		return add_path(files, path);
	files->is_folder = true;
	return add_folder(files, path);
}

bool cli_files_find(struct cli_files *files, const char *path)
{
	int failure;

	*files = (struct cli_files){0};
	failure = add_any(files, path);
	if (failure)
		fprintf(stderr, "opstrobe: cannot read '%s': %s\n", path, strerror(failure));
	else if (!files->count)
		fprintf(stderr, "opstrobe: there is no trace (*.pt.trace.json, *.pt.trace.json.gz) in '%s'\n", path);
	if (!failure)
		number_spans(files);
	return !failure && files->count;
}

bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count)
{
	bool done = true;

	*files = (struct cli_files){.is_folder = count > 1};
	for (size_t i = 0; done && i < count; i++) {
		struct cli_files found;
		struct cli_file *grown;

		done = cli_files_find(&found, paths[i]);
		grown = done ? realloc(files->items, (files->count + found.count) * sizeof(*grown)) : NULL;
		if (!grown) {
			cli_files_release(&found);
			return false;
		}
		memcpy(grown + files->count, found.items, found.count * sizeof(*grown));
		files->items = grown;
		files->count += found.count;
		files->is_folder |= found.is_folder;
		free(found.items);
	}
	return done;
}

void cli_files_release(struct cli_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].path);
		free(files->items[i].worker);
		free(files->items[i].stamp);
	}
	free(files->items);
	*files = (struct cli_files){0};
}
