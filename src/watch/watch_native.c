/* SPDX-License-Identifier: Apache-2.0
 *
 * Native stacks of this process; see watch_native.h.
 */
#include "watch/watch_native.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/error.h>
#include <opstrobe/internal/clock.h>

#include "base/json.h"

#define NATIVE_NS_MAX (10 * OPS_SECOND_NS)
#define NATIVE_BYTES_MAX (1u << 20)

/* Starts the program, which waits until `*ret_permission` is closed. Returns its process id; -1: it cannot be started. */
static pid_t native_start(const char *program, int output, int *ret_permission)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char text[16];
	char *words[] = {(char *)program, text, NULL};
	sigset_t none;
	int input[2];
	pid_t process;
	int failed;

	if (pipe2(input, O_CLOEXEC) < 0)
		return -1;
	snprintf(text, sizeof(text), "%d", (int)getpid());
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	failed = posix_spawn(&process, program, &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(input[0]);
	*ret_permission = input[1];
	if (failed)
		close(input[1]);
	return failed ? -1 : process;
}

/* Reads until the end of the output. Returns false if that takes too long. */
static bool native_collect(int input, struct ops_buffer *out)
{
	int64_t until_ns = ops_clock_read_ns(CLOCK_MONOTONIC) + NATIVE_NS_MAX, left_ns;
	struct pollfd ready = {.fd = input, .events = POLLIN};
	char bytes[4096];
	ssize_t size;

	while ((left_ns = until_ns - ops_clock_read_ns(CLOCK_MONOTONIC)) > 0 && out->size < NATIVE_BYTES_MAX) {
		if (poll(&ready, 1, (int)(left_ns / 1000000) + 1) <= 0)
			continue;
		size = read(input, bytes, sizeof(bytes));
		if (size == 0)
			return true;
		if (size > 0)
			ops_buffer_append(out, bytes, (size_t)size);
		else if (errno != EINTR)
			return false;
	}
	return false;
}

void watch_native_read(const char *program, struct ops_buffer *out)
{
	size_t start = out->size;
	int output[2], permission, status = -1;
	struct ops_error error;
	pid_t process;
	bool complete;

	if (pipe2(output, O_CLOEXEC) < 0)
		return;
	process = native_start(program, output[1], &permission);
	close(output[1]);
	if (process > 0) {
		prctl(PR_SET_PTRACER, (unsigned long)process, 0, 0, 0); /* where Yama forbids children to read their parents */
		close(permission);
		complete = native_collect(output[0], out);
		if (!complete)
			kill(process, SIGKILL);
		while (waitpid(process, &status, 0) < 0 && errno == EINTR)
			;
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
		if (!complete || status != 0 || out->failed || ops_json_validate(out->bytes + start, out->size - start, &error))
			out->size = start;
	}
	close(output[0]);
}
