/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe run`: runs a Python program under the profiler. Implemented in Python, because the program needs its own Python.
 *
 * A process cannot report its own SIGKILL, so a small process watches it:
 *
 *     opstrobe run ──exec──▶ Python ──▶ the program
 *          └─fork─fork─▶ watcher ◀──socket── "a" and what to print, "d": nothing
 *
 * The watcher is not a child of the program, which may wait for all of its children.
 */
#include "cli.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCHER_VARIABLE "OPSTROBE_WATCHER" /* descriptor of the socket, which Python removes from the environment */
#define WATCHER_EXIT_MS 1000                /* a process that ends closes its files before it counts as ended */

static void ignore_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		signal(numbers[i], SIG_IGN);
}

/* Waits until the program has ended, and keeps its last message. Returns false if the program closed its end of the socket before. */
static bool watch_program(int process, int end, char *message, size_t room)
{
	struct pollfd watched[] = {{.fd = process, .events = POLLIN}, {.fd = end, .events = POLLIN}};

	for (;;) {
		ssize_t size;

		if (poll(watched, 2, -1) < 0)
			continue;
		size = watched[1].revents ? recv(end, message, room - 1, MSG_DONTWAIT) : -1;
		if (size > 0)
			message[size] = '\0';
		else if (watched[0].revents)
			return true;
		else if (size == 0)
			return poll(watched, 1, WATCHER_EXIT_MS) > 0;
	}
}

static void run_watcher(int process, int end)
{
	char message[4096] = "";

	prctl(PR_SET_NAME, "opstrobe-watch");
	ignore_signals();
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	if (watch_program(process, end, message, sizeof(message)) && message[0] == 'a')
		fprintf(stderr, "%s\n", message + 1);
	_exit(0);
}

/* The program is recorded without a watcher if there can be none. */
static void start_watcher(void)
{
	int ends[2];
	int process = getpid() == 1 ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0); /* with process 1 all others end */
	char number[16];
	pid_t child;

	if (process < 0)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) {
		close(process);
		return;
	}
	child = fork();
	if (child == 0) {
		close(ends[0]);
		if (fork() == 0)
			run_watcher(process, ends[1]);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	close(process);
	close(ends[1]);
	snprintf(number, sizeof(number), "%d", ends[0]);
	setenv(WATCHER_VARIABLE, number, 1);
}

int cli_run(char **arguments)
{
	start_watcher();
	return cli_hand_over("opstrobe.run", arguments);
}
