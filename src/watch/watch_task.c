/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel reports about a thread and about the memory of this process; see watch_task.h.
 */
#include "watch/watch_task.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Finds the folder of the process's control group; version 2 only. */
static bool control_group(char *to, size_t room)
{
	char text[1024], *end;
	int size;

	if (!watch_read_text("/proc/self/cgroup", text, sizeof(text)))
		return false;
	for (char *line = text; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (strncmp(line, "0::", 3) != 0)
			continue;
		size = snprintf(to, room, "/sys/fs/cgroup%.*s", end ? (int)(end - line - 3) : (int)strlen(line + 3), line + 3);
		return size > 0 && (size_t)size < room;
	}
	return false;
}

static int64_t count_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

void watch_memory_read(struct watch_memory *ret_memory)
{
	char folder[1024], path[1100], text[1024];
	long long pages = 0;

	*ret_memory = (struct watch_memory){0};
	if (watch_read_text("/proc/self/statm", text, sizeof(text)) && sscanf(text, "%*s %lld", &pages) == 1)
		ret_memory->rss_bytes = pages * sysconf(_SC_PAGESIZE);
	if (!control_group(folder, sizeof(folder)))
		return;
	snprintf(path, sizeof(path), "%s/memory.max", folder);
	if (watch_read_text(path, text, sizeof(text)))
		ret_memory->limit_bytes = strtoll(text, NULL, 10); /* 0 for "max" */
	snprintf(path, sizeof(path), "%s/memory.events", folder);
	if (!watch_read_text(path, text, sizeof(text)))
		return;
	/* Not "max", which also counts each time that the kernel dropped cached pages of files at the limit. */
	ret_memory->failures = count_of(text, "\noom ");
	ret_memory->oom_kills = count_of(text, "\noom_kill ");
}
