/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel reports about a thread and about the memory of this process; see watch_task.h.
 */
#include "watch/watch_task.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory_group.h"

static bool watch_read_text(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, to, room - 1);

	if (fd >= 0)
		close(fd);
	to[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* Reads numbers after the name in a stat file: those of index 1 … `count`, after the state. */
static bool watch_read_stat(const char *path, int64_t *ret_values, int count)
{
	char text[1024], *at;

	if (!watch_read_text(path, text, sizeof(text)) || !(at = strrchr(text, ')')) || strlen(at) < 4)
		return false;
	if (at[2] == 'Z' || at[2] == 'X')
		return false; /* it has ended and has not been waited for */
	at += 3;
	for (int i = 0; i < count; i++)
		ret_values[i] = strtoll(at, &at, 10);
	return true;
}

void watch_task_read(int64_t tid, struct watch_task *ret_task)
{
	char path[64], text[128];
	int64_t values[9];

	*ret_task = (struct watch_task){0};
	snprintf(path, sizeof(path), "/proc/self/task/%" PRId64 "/stat", tid);
	if (watch_read_stat(path, values, 9)) {
		ret_task->minor_faults = values[6];
		ret_task->major_faults = values[8];
	}
	snprintf(path, sizeof(path), "/proc/self/task/%" PRId64 "/schedstat", tid);
	if (watch_read_text(path, text, sizeof(text)))
		sscanf(text, "%" SCNd64 " %" SCNd64, &ret_task->ran_ns, &ret_task->waited_ns);
}

uint64_t watch_process_start(int64_t pid)
{
	char path[64];
	int64_t values[19];

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	return watch_read_stat(path, values, 19) ? (uint64_t)values[18] : 0;
}

/* --- memory ---------------------------------------------------------------------------------------------------------- */

void watch_memory_read(struct watch_memory *ret_memory)
{
	struct ops_memory_group_events events;
	char folder[PATH_MAX], text[256];
	long long pages = 0;
	uint64_t limit;

	*ret_memory = (struct watch_memory){0};
	if (watch_read_text("/proc/self/statm", text, sizeof(text)) && sscanf(text, "%*s %lld", &pages) == 1)
		ret_memory->rss_bytes = pages * sysconf(_SC_PAGESIZE);
	if (!ops_memory_group_find(folder, sizeof(folder)))
		return;
	limit = ops_memory_group_limit(folder);
	ret_memory->limit_bytes = limit < INT64_MAX ? (int64_t)limit : 0;
	ops_memory_group_events_read(folder, &events);
	ret_memory->failures = events.failures;
	ret_memory->oom_kills = events.oom_kills;
}
