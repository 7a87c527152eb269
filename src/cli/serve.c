/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe serve`: serves the viewer for a browser.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/serve.h>

#include "diagnose.h"
#include "options.h"

#define PAGE_READ_S 60 /* a browser has read the page that leads it to the server */

static const char usage[] =
	"usage: opstrobe serve [options] TRACE|DIRECTORY|ARCHIVE...\n"
	"\n"
	"Shows traces in the browser: timeline, views, analyses, advice. Prints the address to\n"
	"open and serves until Ctrl-C. Directories are searched recursively; traces that appear\n"
	"later are added to the list. A trace is read when it is opened. Of a directory of\n"
	"incidents (see 'opstrobe incidents'), their list and reports are shown, too. Of an archive\n"
	"(see 'opstrobe archive'; a directory or URL), jobs, runs and trends are shown.\n"
	"\n"
	"The address contains a new random token. Requests without the token are refused.\n"
	"\n"
	"options:\n"
	"  --port N        port to listen on; default any free port\n"
	"  --open          open the address in the browser\n"
	"  --with-input    stop when standard input ends, as when the parent program ends\n"
	"  --embed ORIGIN  allow pages of ORIGIN (http://localhost:8888) to embed the viewer\n"
	"  --bind ADDRESS  listen on this address instead of 127.0.0.1; an address that other\n"
	"                  machines reach requires --remote\n"
	"  --remote        accept connections from other machines. Anyone with the token sees the\n"
	"                  traces and the source files that they name. Connections are not\n"
	"                  encrypted: prefer an SSH tunnel to a server without this option\n"
	"  --request-memory MB\n"
	"                  memory that one reply may allocate, without the traces; default half of\n"
	"                  the machine's memory\n"
	"  --request-time SECONDS\n"
	"                  CPU time that one reply may use; default 60\n"
	"  --help          print this\n"
	"\n"
	"example:\n"
	"  opstrobe serve --open worker0.pt.trace.json.gz\n";

/* Removes pages of this user that servers left because they were killed. */
static void serve_remove_old_pages(const char *folder)
{
	char pattern[PATH_MAX];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/opstrobe-open-??????.html", folder);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat status;

		if (!lstat(found.gl_pathv[i], &status) && S_ISREG(status.st_mode) && status.st_uid == getuid() &&
		    status.st_mtime < time(NULL) - PAGE_READ_S)
			unlink(found.gl_pathv[i]);
	}
	globfree(&found);
}

/* Writes a page that redirects to the address and that only this user can read, because the token would be visible to all users
 * on a command line. Returns false, after printing an error, if it cannot be written. */
static bool serve_write_page(const char *url, char path[PATH_MAX])
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	FILE *page;
	int fd;

	folder = folder && *folder ? folder : getenv("TMPDIR");
	folder = folder && *folder ? folder : "/tmp";
	serve_remove_old_pages(folder);
	snprintf(path, PATH_MAX, "%s/opstrobe-open-XXXXXX.html", folder);
	fd = mkostemps(path, (int)strlen(".html"), O_CLOEXEC);
	page = fd < 0 ? NULL : fdopen(fd, "w");
	if (!page) {
		cli_log("opstrobe serve: cannot write '%s': %s\n", path, strerror(errno));
		*path = '\0';
		return false;
	}
	fprintf(page, "<!doctype html><meta charset=\"utf-8\"><title>Opstrobe</title><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
	        url);
	return !fclose(page);
}

/* Opens the browser without showing its messages. It may not exist. */
static void open_browser(const char *page)
{
	char *words[] = {"xdg-open", (char *)page, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	errno = posix_spawnp(&child, words[0], &actions, &attributes, words, environ);
	if (errno)
		perror("opstrobe serve: cannot open a browser: xdg-open");
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
}

/* When the input ends, the program that provides it has ended. */
static void *follow_input(void *unused)
{
	char bytes[256];
	ssize_t size;

	(void)unused;
	do
		size = read(STDIN_FILENO, bytes, sizeof(bytes));
	while (size > 0 || (size < 0 && errno == EINTR));
	kill(getpid(), SIGTERM);
	return NULL;
}

/* Serves until one of the signals that end programs, which are blocked, or until the end of the input. Does not wait for a second
 * signal. */
static void wait_for_end(const sigset_t *ends, bool with_input)
{
	pthread_t thread;
	int signal_number;

	if (!with_input || !pthread_create(&thread, NULL, follow_input, NULL))
		sigwait(ends, &signal_number);
}

/* An archive is a URL, or a directory with the file that marks it. */
static bool is_archive(const char *path)
{
	char mark[PATH_MAX];

	if (strstr(path, "://"))
		return true;
	return snprintf(mark, sizeof(mark), "%s/_opstrobe.json", path) < (int)sizeof(mark) && !access(mark, F_OK);
}

/* Removes the archive from the paths and returns it; NULL if there is none. Returns false, after printing an error, if there are
 * several. */
static bool split_archive(char **paths, size_t *count, const char **ret_archive)
{
	size_t kept = 0;

	*ret_archive = NULL;
	for (size_t i = 0; i < *count; i++) {
		if (!is_archive(paths[i])) {
			paths[kept++] = paths[i];
		} else if (*ret_archive) {
			cli_log("opstrobe serve: '%s' and '%s' are archives: only one can be shown\n", *ret_archive, paths[i]);
			return false;
		} else {
			*ret_archive = paths[i];
		}
	}
	*count = kept;
	return true;
}

/* Returns the file of this command, in `path` if it is known. */
static const char *own_file(char path[PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (size <= 0)
		return "opstrobe";
	path[size] = '\0';
	return path;
}

/* `page` is the page to which the address leads, such as "#/incidents/"; "": the viewer chooses. */
static int serve(const struct ops_server_options *options, const char *page, bool open, bool with_input)
{
	struct ops_server *server;
	struct ops_error error;
	char path[PATH_MAX] = "", url[PATH_MAX];
	sigset_t ends;

	if (ops_server_start(options, &server, &error)) {
		cli_log("opstrobe: %s\n", error.text);
		return error.code == OPS_INVALID ? CLI_EXIT_USAGE : CLI_EXIT_FAILED;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before the address, because whoever reads it may end the server at once */
	snprintf(url, sizeof(url), "%s%s", ops_server_url(server), page);
	printf("%s\n", url);
	fflush(stdout);
	fputs("Ctrl-C ends it\n", stderr);
	if (open && serve_write_page(url, path))
		open_browser(path);
	wait_for_end(&ends, with_input);
	if (*path)
		unlink(path);
	pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
	ops_server_stop(server);
	return CLI_EXIT_OK;
}

/* Parses a number of at least 1; `*ret_number` is unchanged if the option is absent. Returns false after printing an error. */
static bool serve_read_limit(const char *option, const char *value, size_t *ret_number)
{
	if (!value)
		return true;
	if (!cli_number("serve", option, value, ret_number))
		return false;
	if (*ret_number)
		return true;
	cli_log("opstrobe serve: --%s must be at least 1\n", option);
	return false;
}

int cli_serve(char **arguments)
{
	return cli_serve_page(arguments, "");
}

int cli_serve_page(char **arguments, const char *page)
{
	struct ops_server_options server = {.size = sizeof(server), .api.watch = true, .api.on_diagnostic = cli_print_diagnostic};
	const char *port = "0", *memory = NULL, *seconds = NULL;
	bool open = false, with_input = false, help;
	const struct cli_option options[] = {
		{"--port", &port, NULL},           {"--embed", &server.frame_origin, NULL},
		{"--bind", &server.address, NULL}, {"--remote", NULL, &server.remote},
		{"--open", NULL, &open},           {"--with-input", NULL, &with_input},
		{"--request-memory", &memory, NULL}, {"--request-time", &seconds, NULL},
		{NULL, NULL, NULL},
	};
	const char *archive_command[] = {NULL, "archive", "answer", NULL, NULL};
	char own[PATH_MAX];
	size_t count, number, request_mb = 0, request_seconds = 0;
	int status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	if (!cli_number("serve", "port", port, &number) || !serve_read_limit("request-memory", memory, &request_mb) ||
	    !serve_read_limit("request-time", seconds, &request_seconds))
		return CLI_EXIT_USAGE;
	if (number > UINT16_MAX) {
		cli_log("opstrobe serve: invalid port %zu\n", number);
		return CLI_EXIT_USAGE;
	}
	if (!split_archive(arguments + 1, &count, &archive_command[3]))
		return CLI_EXIT_USAGE;
	archive_command[0] = own_file(own);
	server.port = (uint16_t)number;
	server.api.archive = archive_command[3] ? archive_command : NULL;
	server.api.paths = (const char *const *)arguments + 1;
	server.api.path_count = count;
	server.api.request_memory_bytes = request_mb < UINT64_MAX / 1000000 ? request_mb * 1000000 : UINT64_MAX;
	server.api.request_seconds = (double)request_seconds;
	return serve(&server, page, open, with_input);
}
