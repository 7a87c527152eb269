/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the machine, the limits of the process's control group and the limit of its address space.
 */
#include <opstrobe/internal/host.h>

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory_group.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t control_group_figure(uint64_t (*figure_of)(const char *folder))
{
	char folder[PATH_MAX];

	return ops_memory_group_find(folder, sizeof(folder)) ? figure_of(folder) : UINT64_MAX;
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

uint64_t ops_memory_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : (uint64_t)1 << 30;

	return least(bytes, control_group_figure(ops_memory_group_limit));
}

uint64_t ops_usable_memory(void)
{
	return least(ops_memory_limit(), address_space_left());
}

uint64_t ops_free_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long kilobytes;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1)
			bytes = (uint64_t)kilobytes * 1024;
	if (file)
		fclose(file);
	return least(bytes, control_group_figure(ops_memory_group_free));
}
