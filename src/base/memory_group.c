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

/* Returns UINT64_MAX if the file does not exist or has no limit. */
static uint64_t group_read_limit(const char *folder, int size, const char *name)
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
	return bytes;
}

uint64_t ops_memory_group_limit(const char *folder)
{
	uint64_t bytes = UINT64_MAX, here;

	for (size_t size = strlen(folder); size >= strlen(ROOT_2);) {
		here = group_read_limit(folder, (int)size, "memory.max");
		if (here == UINT64_MAX)
			here = group_read_limit(folder, (int)size, "memory.limit_in_bytes");
		bytes = here < bytes ? here : bytes;
		do
			size--;
		while (size > 0 && folder[size] != '/');
	}
	return bytes;
}

/* Returns the number after a word at the start of a line; 0 if there is none. */
static int64_t group_read_count(const char *folder, const char *name, const char *word)
{
	char path[PATH_BYTES], line[128];
	int64_t count = 0;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return 0;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == ' ')
			count = strtoll(line + strlen(word), NULL, 10);
	if (file)
		fclose(file);
	return count;
}

void ops_memory_group_events_read(const char *folder, struct ops_memory_group_events *ret_events)
{
	/* Not "max", which also counts each time that the kernel dropped cached pages of files at the limit. */
	ret_events->failures = group_read_count(folder, "memory.events", "oom");
	ret_events->oom_kills = group_read_count(folder, "memory.events", "oom_kill") + group_read_count(folder, "memory.oom_control", "oom_kill");
}
