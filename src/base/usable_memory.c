/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the machine, the limits of the process's control group and the limit of its address space.
 */
#include "base/usable_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* Reads a number of bytes from a file of one line. Returns UINT64_MAX if there is none or it is "max". */
static uint64_t usable_memory_read_limit(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long bytes = UINT64_MAX;

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%llu", &bytes) != 1)
		bytes = UINT64_MAX;
	fclose(file);
	return bytes;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the smallest limit of a control group and its ancestors. Changes `path`. */
static uint64_t group_limit(const char *root, char *path, const char *file)
{
	char whole[PATH_BYTES];
	uint64_t bytes = UINT64_MAX;
	char *last;

	for (;;) {
		if ((size_t)snprintf(whole, sizeof(whole), "%s%s/%s", root, path, file) < sizeof(whole))
			bytes = least(bytes, usable_memory_read_limit(whole));
		last = strrchr(path, '/');
		if (!last)
			return bytes;
		*last = '\0';
	}
}

/* Returns the limit of the process's control group, version 2 or 1. In a container, its own group may be the root. */
static uint64_t control_group_limit(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_BYTES];
	uint64_t bytes = UINT64_MAX;

	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		if (path == controllers + 1)
			bytes = least(bytes, group_limit("/sys/fs/cgroup", path + 1, "memory.max"));
		else if (strncmp(controllers, ":memory:", 8) == 0)
			bytes = least(bytes, group_limit("/sys/fs/cgroup/memory", path + 1, "memory.limit_in_bytes"));
	}
	if (file)
		fclose(file);
	return bytes;
}

/* Returns the remaining address space under its limit. Blocks and the trace that is made of them must share it. */
static uint64_t address_space_left(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;
	uint64_t used;
	struct rlimit limit;

	if (file && fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t ops_usable_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : (uint64_t)1 << 30;

	return least(least(bytes, control_group_limit()), address_space_left());
}
