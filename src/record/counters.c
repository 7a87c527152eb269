/* SPDX-License-Identifier: Apache-2.0
 *
 * Performance counters of threads, see counters.h. The counters of a thread are one group, so that one system call reads all of
 * them:
 *
 *     read(leader) ─▶ { number of values, value of the leader, of the second, … }
 */
#include <opstrobe/internal/counters.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/fault.h"

#define HARDWARE(name, config) {name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config}
#define SOFTWARE(name, config) {name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config}

/* torch's names first, then those of the perf command. */
static const struct event {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	HARDWARE("cycles", CPU_CYCLES),
	HARDWARE("instructions", INSTRUCTIONS),
	SOFTWARE("pagefaults", PAGE_FAULTS),
	HARDWARE("backend-stall-cycles", STALLED_CYCLES_BACKEND),
	HARDWARE("frontend-stall-cycles", STALLED_CYCLES_FRONTEND),
	HARDWARE("cpu-cycles", CPU_CYCLES),
	HARDWARE("ref-cycles", REF_CPU_CYCLES),
	HARDWARE("cache-references", CACHE_REFERENCES),
	HARDWARE("cache-misses", CACHE_MISSES),
	HARDWARE("branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", BRANCH_MISSES),
	HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	SOFTWARE("page-faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", PAGE_FAULTS_MAJ),
	SOFTWARE("task-clock", TASK_CLOCK),
	SOFTWARE("cpu-clock", CPU_CLOCK),
	SOFTWARE("context-switches", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
};
#define EVENT_COUNT (sizeof(events) / sizeof(events[0]))

/* The open set. Written by open and close, which are not called concurrently; all threads read the generation. */
static struct ops_counters counters;
static const struct event *chosen[OPS_COUNTERS_MAX];
static uint64_t generation; /* number of the open set, 0: none; release store, acquire load */
static uint64_t last_generation;
static int refuse_with; /* for tests only */

/* The group of the calling thread. */
static __thread struct {
	uint64_t generation; /* number of the set for which it was opened; 0: none */
	uint32_t count;      /* number of descriptors; 0 if none could be opened */
	int descriptors[OPS_COUNTERS_MAX];
} mine;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void close_mine(void)
{
	while (mine.count > 0)
		close(mine.descriptors[--mine.count]);
	mine.generation = 0;
}

static void counters_thread_exit(void *unused)
{
	(void)unused;
	close_mine();
}

static void counters_make_key(void)
{
	has_key = pthread_key_create(&exit_key, counters_thread_exit) == 0;
}

/* Returns a descriptor, or -1 with errno set. Counts in user mode only, which requires no privilege. */
static int open_event(const struct event *event, int leader)
{
	struct perf_event_attr attributes = {
		.size = sizeof(attributes),
		.type = event->type,
		.config = event->config,
		.read_format = PERF_FORMAT_GROUP,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	if (refuse_with) {
		errno = refuse_with;
		return -1;
	}
	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Opens the calling thread's group for the set in `chosen`, completely or not at all. */
static void open_mine(uint64_t wanted)
{
	close_mine();
	mine.generation = wanted;
	pthread_once(&once, counters_make_key);
	if (!has_key || pthread_setspecific(exit_key, &mine) != 0)
		return;
	for (uint32_t i = 0; i < counters.count; i++) {
		int descriptor = open_event(chosen[i], i ? mine.descriptors[0] : -1);

		if (descriptor < 0) {
			close_mine();
			mine.generation = wanted;
			return;
		}
		mine.descriptors[mine.count++] = descriptor;
	}
}

static bool read_mine(int64_t *ret_values)
{
	uint64_t wanted = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	uint64_t values[1 + OPS_COUNTERS_MAX];
	size_t bytes;

	if (!wanted)
		return false;
	if (mine.generation != wanted)
		open_mine(wanted);
	bytes = (1 + (size_t)mine.count) * sizeof(values[0]);
	if (mine.count == 0 || read(mine.descriptors[0], values, bytes) != (ssize_t)bytes)
		return false;
	for (uint32_t i = 0; i < mine.count; i++)
		ret_values[i] = (int64_t)values[1 + i];
	return true;
}

static const struct event *counters_find_event(const char *name)
{
	for (size_t i = 0; i < EVENT_COUNT; i++)
		if (strcmp(events[i].name, name) == 0)
			return &events[i];
	return NULL;
}

static enum ops_code unknown_event(const char *name, struct ops_error *error)
{
	char known[512];
	size_t size = 0;

	for (size_t i = 0; i < EVENT_COUNT; i++) {
		size_t length = strlen(events[i].name);

		memcpy(known + size, i ? ", " : "", i ? 2 : 0);
		size += i ? 2 : 0;
		memcpy(known + size, events[i].name, length);
		size += length;
	}
	return ops_fault(error, OPS_INVALID, "unknown performance event '%s'; known are %.*s", name, (int)size, known);
}

/* Adds the event to the set if the kernel can count it together with the events added before. */
static bool try_event(const struct event *event)
{
	int descriptor = open_event(event, mine.count ? mine.descriptors[0] : -1);

	if (descriptor < 0)
		return false;
	mine.descriptors[mine.count++] = descriptor;
	chosen[counters.count] = event;
	counters.names[counters.count++] = event->name;
	return true;
}

enum ops_code ops_counters_open(const char *const *names, size_t count, const struct ops_counters **ret_counters,
                                uint32_t *ret_refused, int *ret_errno, struct ops_error *error)
{
	uint32_t refused = 0;

	ops_counters_close();
	if (count > OPS_COUNTERS_MAX)
		return ops_fault(error, OPS_INVALID, "%zu performance events; at most %d can be counted at once", count,
				 OPS_COUNTERS_MAX);
	for (size_t i = 0; i < count; i++)
		if (!counters_find_event(names[i]))
			return unknown_event(names[i], error);
	counters = (struct ops_counters){.read = read_mine};
	for (size_t i = 0; i < count; i++) {
		if (try_event(counters_find_event(names[i])))
			continue;
		if (!refused)
			*ret_errno = errno;
		refused |= 1u << i;
	}
	close_mine(); /* each thread opens its own group when it reads */
	__atomic_store_n(&generation, ++last_generation, __ATOMIC_RELEASE);
	*ret_refused = refused;
	*ret_counters = &counters;
	return OPS_OK;
}

void ops_counters_close(void)
{
	__atomic_store_n(&generation, 0, __ATOMIC_RELEASE);
	close_mine();
}

bool ops_counters_known(const char *name, size_t size)
{
	for (size_t i = 0; i < EVENT_COUNT; i++)
		if (strlen(events[i].name) == size && memcmp(events[i].name, name, size) == 0)
			return true;
	return false;
}

void ops_counters_refuse(int os_errno)
{
	refuse_with = os_errno;
}
