/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch file, and the handlers of fatal signals: see watch_page.h.
 */
#include "watch/watch_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>

struct ops_watch_page *watch_page_new(const char *path)
{
	int flags = path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, failure;
	int fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
	struct ops_watch_page *page = MAP_FAILED;

	if (path && fd < 0)
		return NULL;
	failure = path ? posix_fallocate(fd, 0, sizeof(*page)) : 0; /* otherwise a full disk would cause a SIGBUS later */
	if (failure)
		errno = failure;
	else
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, flags, fd, 0);
	failure = errno;
	if (fd >= 0)
		close(fd);
	if (page != MAP_FAILED)
		return page;
	if (path)
		unlink(path);
	errno = failure;
	return NULL;
}

void watch_page_free(struct ops_watch_page *page)
{
	if (page)
		munmap(page, sizeof(*page));
}

/* --- signals --------------------------------------------------------------------------------------------------------- */

/* Includes SIGTERM and SIGHUP, which end a program that does not handle them, so that a requested end is known afterwards. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGQUIT, SIGSYS, SIGTERM, SIGHUP};
#define FATAL_COUNT (sizeof(fatal) / sizeof(fatal[0]))

static struct {
	struct ops_watch_page *page; /* NULL: not watching */
	void (*read_own_stack)(struct ops_stack *ret_stack);
	void (*request)(void);
	struct sigaction previous[FATAL_COUNT], previous_request;
	bool installed[FATAL_COUNT];
} signals;

static void signal_mark(int number, const siginfo_t *info)
{
	struct ops_watch_page *page = signals.page;

	if (!page || page->pid != getpid() || page->signal)
		return;
	page->signal = number;
	page->signal_code = info->si_code;
	page->signal_address = info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0;
	page->signal_ns = ops_clock_read_ns(CLOCK_REALTIME);
	if (signals.read_own_stack)
		signals.read_own_stack(&page->end_stack);
}

/* Passes the signal to its earlier handler: a fault occurs again when the instruction is repeated, other signals are sent again. */
static void signal_handle(int number, siginfo_t *info, void *context)
{
	size_t i = 0;

	(void)context;
	signal_mark(number, info);
	while (fatal[i] != number)
		i++;
	sigaction(number, &signals.previous[i], NULL);
	if (info->si_code <= 0 || number == SIGABRT)
		raise(number); /* blocked until this function returns */
}

static void signal_request(int number, siginfo_t *info, void *context)
{
	const struct sigaction *before = &signals.previous_request;
	int error = errno;

	signals.request();
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(number, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(number);
	errno = error;
}

static void set_request(bool on)
{
	struct sigaction action = {.sa_sigaction = signal_request, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, present;

	sigemptyset(&action.sa_mask);
	if (on)
		sigaction(SIGUSR2, &action, &signals.previous_request);
	else if (!sigaction(SIGUSR2, NULL, &present) && (present.sa_flags & SA_SIGINFO) && present.sa_sigaction == signal_request)
		sigaction(SIGUSR2, &signals.previous_request, NULL);
}

void watch_signals_start(struct ops_watch_page *page, void (*read_own_stack)(struct ops_stack *ret_stack), void (*request)(void))
{
	signals.read_own_stack = read_own_stack;
	signals.request = request;
	set_request(true);
	signals.page = page;
	for (size_t i = 0; i < FATAL_COUNT; i++) {
		struct sigaction action = {.sa_sigaction = signal_handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
		struct sigaction present;
		bool asks_to_end = fatal[i] == SIGTERM || fatal[i] == SIGHUP || fatal[i] == SIGQUIT;

		sigemptyset(&action.sa_mask);
		/* A signal that the program ignores or handles, and that would only end it, is not fatal. */
		if (sigaction(fatal[i], NULL, &present) ||
		    (asks_to_end && ((present.sa_flags & SA_SIGINFO) || present.sa_handler != SIG_DFL)))
			continue;
		signals.installed[i] = sigaction(fatal[i], &action, &signals.previous[i]) == 0;
	}
}

void watch_signals_stop(void)
{
	signals.page = NULL;
	set_request(false);
	for (size_t i = 0; i < FATAL_COUNT; i++) {
		struct sigaction present;

		/* If another handler has been installed over ours, ours stays and passes signals on. */
		if (signals.installed[i] && !sigaction(fatal[i], NULL, &present) && (present.sa_flags & SA_SIGINFO) &&
		    present.sa_sigaction == signal_handle)
			sigaction(fatal[i], &signals.previous[i], NULL);
		signals.installed[i] = false;
	}
}
