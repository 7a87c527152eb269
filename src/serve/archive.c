/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that answers questions about an archive; see archive.h.
 */
#include "serve/archive.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/json_walk.h"

#define REPLY_MAX ((size_t)256 << 20)

struct archive {
	pthread_mutex_t lock; /* one question at a time */
	pid_t process;
	int line; /* a socket: the input and output of the process */
	struct ops_buffer folder;
	bool ended; /* the process does not reply any more */
};

/* Starts the process with the socket as its input and output, and with no signal blocked. Signals of the terminal do not reach it:
 * it ends when its input ends. */
static int spawn(const char *const *command, int line, pid_t *ret_process)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int failed;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, line, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, line, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	failed = posix_spawnp(ret_process, command[0], &actions, &attributes, (char *const *)command, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static bool send_line(int line, struct ops_string text)
{
	struct ops_string parts[] = {text, {"\n", 1}};

	for (size_t i = 0; i < 2; i++) {
		while (parts[i].size) {
			ssize_t sent = send(line, parts[i].bytes, parts[i].size, MSG_NOSIGNAL);

			if (sent < 0 && errno != EINTR)
				return false;
			if (sent > 0) {
				parts[i].bytes += sent;
				parts[i].size -= (size_t)sent;
			}
		}
	}
	return true;
}

/* Replaces the contents of the buffer by a line without its end. */
static bool receive_line(int line, struct ops_buffer *reply)
{
	reply->size = 0;
	while (reply->size < REPLY_MAX) {
		char *to = ops_buffer_room(reply, 65536);
		ssize_t got = to ? recv(line, to, 65536, 0) : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		reply->size += (size_t)got;
		if (to[got - 1] == '\n') {
			reply->size--;
			return true;
		}
	}
	return false;
}

static enum ops_code exchange_lines(struct archive *archive, const struct ops_string *question, struct ops_buffer *reply,
                                    struct ops_error *error)
{
	struct ops_buffer text = {0};
	struct ops_string value;
	enum ops_code code = OPS_OK;

	if (archive->ended || (question && !send_line(archive->line, *question)) || !receive_line(archive->line, reply)) {
		archive->ended = true;
		return ops_fault(error, OPS_IO, "the process that reads the archive has ended");
	}
	if (ops_json_find_member((struct ops_string){reply->bytes, reply->size}, "error", &value)) {
		ops_json_decode_value(&text, value);
		code = ops_fault(error, OPS_INVALID, "%.*s", (int)text.size, text.size ? text.bytes : "");
	}
	ops_buffer_release(&text);
	return code;
}

enum ops_code archive_start(const char *const *command, struct archive **ret_archive, struct ops_error *error)
{
	struct archive *archive = ops_alloc_zeroed(1, sizeof(*archive));
	struct ops_buffer reply = {0};
	struct ops_string value;
	enum ops_code code = OPS_OK;
	int ends[2], failed;

	if (!archive)
		return ops_fault_memory(error);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		ops_free(archive);
		return ops_fault_errno(error, errno, "cannot make a socket");
	}
	pthread_mutex_init(&archive->lock, NULL);
	archive->line = ends[0];
	failed = spawn(command, ends[1], &archive->process);
	close(ends[1]);
	if (failed) {
		archive->process = 0;
		code = ops_fault_errno(error, failed, "cannot start '%s'", command[0]);
	} else {
		code = exchange_lines(archive, NULL, &reply, error);
	}
	if (!code && ops_json_find_member((struct ops_string){reply.bytes, reply.size}, "folder", &value))
		ops_json_decode_value(&archive->folder, value);
	ops_buffer_append(&archive->folder, "", 1);
	if (code)
		code = error->code = OPS_IO; /* no request is invalid */
	if (!code && archive->folder.failed)
		code = ops_fault_memory(error);
	ops_buffer_release(&reply);
	if (code)
		archive_stop(archive);
	else
		*ret_archive = archive;
	return code;
}

const char *archive_folder(const struct archive *archive)
{
	return archive->folder.bytes;
}

enum ops_code archive_request(struct archive *archive, struct ops_string question, struct ops_buffer *reply, struct ops_error *error)
{
	enum ops_code code;

	pthread_mutex_lock(&archive->lock);
	code = exchange_lines(archive, &question, reply, error);
	pthread_mutex_unlock(&archive->lock);
	return code;
}

void archive_cancel(struct archive *archive)
{
	if (archive)
		shutdown(archive->line, SHUT_RDWR);
}

void archive_stop(struct archive *archive)
{
	if (!archive)
		return;
	close(archive->line);
	while (archive->process && waitpid(archive->process, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_mutex_destroy(&archive->lock);
	ops_buffer_release(&archive->folder);
	ops_free(archive);
}
