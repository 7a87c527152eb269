/* SPDX-License-Identifier: Apache-2.0
 *
 * Rescans a directory when the system reports a change, and also at an interval, because network file systems
 * report none.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "serve/catalog.h"

#define UNTOLD_MS 10000
#define SETTLE_MS 100 /* changes often come in groups */

struct watch {
	struct catalog *catalog;
	pthread_t thread;
	bool started;
	int changes; /* inotify */
	int stop;    /* eventfd */
};

/* Waits for a change and discards the notifications. Returns false if the watch is to end. */
static bool wait_for_change(struct watch *watch)
{
	struct pollfd fds[] = {{.fd = watch->stop, .events = POLLIN}, {.fd = watch->changes, .events = POLLIN}};
	struct pollfd stop = fds[0];
	char notifications[4096];

	poll(fds, 2, UNTOLD_MS);
	if (fds[0].revents || poll(&stop, 1, SETTLE_MS) > 0)
		return false;
	while (read(watch->changes, notifications, sizeof(notifications)) > 0)
		;
	return true;
}

static void *rescan_on_changes(void *context)
{
	struct watch *watch = context;

	while (wait_for_change(watch))
		catalog_rescan(watch->catalog);
	return NULL;
}

struct watch *watch_new(struct catalog *catalog)
{
	struct watch *watch = ops_alloc_zeroed(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->catalog = catalog;
	watch->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC); /* if it fails, no changes are reported */
	watch->stop = eventfd(0, EFD_CLOEXEC);
	if (watch->stop >= 0)
		return watch;
	watch_free(watch);
	return NULL;
}

bool watch_start(struct watch *watch)
{
	watch->started = ops_thread_start(&watch->thread, rescan_on_changes, watch);
	return watch->started;
}

void watch_add(struct watch *watch, const path_list *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		if (folders->items[i])
			inotify_add_watch(watch->changes, folders->items[i],
			                  IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR);
}

void watch_free(struct watch *watch)
{
	uint64_t one = 1;

	if (!watch)
		return;
	if (watch->started) {
		while (write(watch->stop, &one, sizeof(one)) < 0)
			;
		pthread_join(watch->thread, NULL);
	}
	if (watch->changes >= 0)
		close(watch->changes);
	if (watch->stop >= 0)
		close(watch->stop);
	ops_free(watch);
}
