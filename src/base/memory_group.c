/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files of a control group; see memory_group.h.
 */
#include "base/memory_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOT_2 "/sys/fs/cgroup"
#define ROOT_1 "/sys/fs/cgroup/memory"
#define PATH_BYTES 4096
#define NO_LIMIT_1 ((uint64_t)1 << 62) /* version 1 has a number near INT64_MAX instead of "max" */

/* Finds the group in one line of /proc/self/cgroup: "4:memory:/path" or "0::/path". Where both versions are mounted, the former
 * has the memory. */
static bool group_parse_line(char *line, char *ret_folder, size_t size)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	const char *root;
	int written;

	if (!path)
		return false;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (strcmp(controllers + 1, "memory") == 0)
		root = ROOT_1;
	else if (!controllers[1] && !ret_folder[0])
		root = ROOT_2;
	else
		return false;
	written = snprintf(ret_folder, size, "%s%s", root, strcmp(path, "/") == 0 ? "" : path);
	if (written < 0 || (size_t)written >= size)
		ret_folder[0] = '\0';
	else if (access(ret_folder, F_OK) != 0) /* the path is that outside of this container */
		snprintf(ret_folder, size, "%s", root);
	return ret_folder[0];
}

bool ops_memory_group_find(char *ret_folder, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_BYTES];

	ret_folder[0] = '\0';
	while (file && fgets(line, sizeof(line), file))
		if (group_parse_line(line, ret_folder, size) && strncmp(ret_folder, ROOT_1, strlen(ROOT_1)) == 0)
			break;
	if (file)
		fclose(file);
	return ret_folder[0];
}

/* Returns the number in a file, of the first of two names that exists; UINT64_MAX if there is none, or no limit. */
static uint64_t group_read_bytes(const char *folder, int size, const char *name, const char *name_1)
{
	char path[PATH_BYTES];
	unsigned long long bytes = UINT64_MAX;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", size, folder, name) >= sizeof(path))
		return UINT64_MAX;
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &bytes) != 1 || bytes >= NO_LIMIT_1)
		bytes = UINT64_MAX;
	if (file)
		fclose(file);
	return bytes == UINT64_MAX && name_1 ? group_read_bytes(folder, size, name_1, NULL) : bytes;
}

/* Returns the number after a word at the start of a line; 0 if there is none. */
static int64_t group_read_count(const char *folder, int size, const char *name, const char *word)
{
	char path[PATH_BYTES], line[128];
	int64_t count = 0;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", size, folder, name) >= sizeof(path))
		return 0;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == ' ')
			count = strtoll(line + strlen(word), NULL, 10);
	if (file)
		fclose(file);
	return count;
}

static uint64_t group_limit_of(const char *folder, int size)
{
	return group_read_bytes(folder, size, "memory.max", "memory.limit_in_bytes");
}

static uint64_t group_free_of(const char *folder, int size)
{
	uint64_t limit = group_limit_of(folder, size), used;
	int64_t cached = group_read_count(folder, size, "memory.stat", "total_inactive_file");

	if (limit == UINT64_MAX)
		return UINT64_MAX;
	used = group_read_bytes(folder, size, "memory.current", "memory.usage_in_bytes");
	cached = cached ? cached : group_read_count(folder, size, "memory.stat", "inactive_file");
	if (used == UINT64_MAX)
		return limit;
	used -= used > (uint64_t)cached ? (uint64_t)cached : used;
	return limit > used ? limit - used : 0;
}

/* Returns the smallest figure of the group and its ancestors. */
static uint64_t group_least(const char *folder, uint64_t (*figure_of)(const char *folder, int size))
{
	uint64_t least = UINT64_MAX, here;

	for (size_t size = strlen(folder); size >= strlen(ROOT_2);) {
		here = figure_of(folder, (int)size);
		least = here < least ? here : least;
		do
			size--;
		while (size > 0 && folder[size] != '/');
	}
	return least;
}

uint64_t ops_memory_group_limit(const char *folder)
{
	return group_least(folder, group_limit_of);
}

uint64_t ops_memory_group_free(const char *folder)
{
	return group_least(folder, group_free_of);
}

void ops_memory_group_events_read(const char *folder, struct ops_memory_group_events *ret_events)
{
	/* Not "max", which also counts each time that the kernel dropped cached pages of files at the limit. */
	ret_events->failures = group_read_count(folder, (int)strlen(folder), "memory.events", "oom");
	ret_events->oom_kills = group_read_count(folder, (int)strlen(folder), "memory.events", "oom_kill") + group_read_count(folder, (int)strlen(folder), "memory.oom_control", "oom_kill");
}
