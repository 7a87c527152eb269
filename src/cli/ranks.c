/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the traces of a run (HTA's section 1, its flaws put right): the rank is that which the trace itself says, else
 * that of the file's name, else the lowest that is left.
 */
#include "ranks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <opstrobe/read.h>

struct paths {
	char **items;
	size_t count;
};

static bool push(struct paths *paths, char *path)
{
	char **grown = path ? realloc(paths->items, (paths->count + 1) * sizeof(*grown)) : NULL;

	if (!grown) {
		free(path);
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	paths->items = grown;
	paths->items[paths->count++] = path;
	return true;
}

static bool ends_with(const char *name, const char *end)
{
	size_t size = strlen(name), end_size = strlen(end);

	return size > end_size && !strcmp(name + size - end_size, end);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_folder(struct paths *paths, const char *folder)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;
	bool done = true;

	if (!stream) {
		fprintf(stderr, "opstrobe: cannot read '%s': %s\n", folder, strerror(errno));
		return false;
	}
	while (done && (entry = readdir(stream))) {
		size_t room = strlen(folder) + strlen(entry->d_name) + 2;
		char *path;

		if (!ends_with(entry->d_name, ".json") && !ends_with(entry->d_name, ".gz"))
			continue;
		path = malloc(room);
		if (path)
			snprintf(path, room, "%s/%s", folder, entry->d_name);
		done = push(paths, path);
	}
	closedir(stream);
	if (paths->count)
		qsort(paths->items, paths->count, sizeof(*paths->items), compare_paths);
	return done;
}

static bool is_folder(const char *path)
{
	struct stat about;

	return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Reads one file. `optional`: it may be none that we know. */
static bool read_one(struct cli_ranks *ranks, const char *path, bool optional, bool any_file)
{
	struct ops_rank *rank = &ranks->items[ranks->count];
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code = ops_trace_read(path, NULL, &trace, &error);
	bool is_trace = !code && ops_trace_events(trace)->count > 0;

	if ((code && !optional && !(any_file && code == OPS_CORRUPT)) || code == OPS_NO_MEMORY) {
		fprintf(stderr, "opstrobe: %s\n", error.text);
		return false;
	}
	if (!is_trace && optional && !any_file) {
		fprintf(stderr, "opstrobe: passed over '%s', which is no trace\n", path);
		ops_trace_unref(trace);
		return true;
	}
	*rank = (struct ops_rank){.rank = -1, .trace = trace, .path = path};
	ranks->count++;
	return true;
}

/* By number; tells of traces that say the same. */
static void number_ranks(struct cli_ranks *ranks)
{
	ops_number_ranks(ranks->items, ranks->count);
	for (size_t i = 0; i < ranks->count; i++) {
		const struct ops_rank *rank = &ranks->items[i];
		int64_t said = rank->trace ? ops_trace_rank(rank->trace, rank->path) : -1;

		if (said >= 0 && said != rank->rank)
			fprintf(stderr, "opstrobe: '%s' says that it is rank %lld, as another file does\n", rank->path,
			        (long long)said);
	}
}

static bool read_all(struct cli_ranks *ranks, const struct paths *paths, bool optional, bool any_file)
{
	ranks->items = calloc(paths->count + 1, sizeof(*ranks->items));
	if (!ranks->items) {
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	for (size_t i = 0; i < paths->count; i++)
		if (!read_one(ranks, paths->items[i], optional, any_file))
			return false;
	if (!ranks->count)
		fputs("opstrobe: there is no trace in the directory\n", stderr);
	return ranks->count;
}

/* The first trace of each of two directories: that of the lowest rank. */
static bool read_pair(struct cli_ranks *pair, const char *const *paths, size_t count)
{
	pair->items = calloc(count + 1, sizeof(*pair->items));
	pair->paths = calloc(count + 1, sizeof(*pair->paths));
	if (!pair->items || !pair->paths) {
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	pair->path_count = count;
	for (size_t i = 0; i < count; i++) {
		struct cli_ranks side;
		bool done = cli_ranks_read(&side, &paths[i], 1, OPS_ANALYSIS_RANKS);

		if (done) {
			pair->items[i] = side.items[0];
			pair->paths[i] = strdup(side.items[0].path);
			pair->items[i].path = pair->paths[i];
			side.items[0].trace = NULL;
			pair->count++;
		}
		cli_ranks_release(&side);
		if (!done || !pair->paths[i])
			return false;
	}
	return true;
}

bool cli_ranks_read(struct cli_ranks *ranks, const char *const *paths, size_t count, enum ops_analysis_inputs inputs)
{
	struct paths found = {0};
	bool optional = false, done = true;

	*ranks = (struct cli_ranks){0};
	if (inputs == OPS_ANALYSIS_PAIR)
		return read_pair(ranks, paths, count);
	for (size_t i = 0; done && i < count; i++) {
		if (is_folder(paths[i])) {
			done = list_folder(&found, paths[i]);
			optional = true;
		} else {
			done = push(&found, strdup(paths[i]));
		}
	}
	ranks->paths = found.items;
	ranks->path_count = found.count;
	done = done && read_all(ranks, &found, optional, inputs == OPS_ANALYSIS_FILES);
	if (done)
		number_ranks(ranks);
	return done;
}

void cli_ranks_release(struct cli_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++)
		ops_trace_unref((struct ops_trace *)ranks->items[i].trace);
	for (size_t i = 0; i < ranks->path_count; i++)
		free(ranks->paths[i]);
	free(ranks->paths);
	free(ranks->items);
	*ranks = (struct cli_ranks){0};
}
