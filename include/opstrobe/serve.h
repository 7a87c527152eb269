/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/serve.h: serves traces and the viewer over HTTP (docs/http-api.md), or writes both to one HTML file.
 *
 *     struct ops_server_options options = {.size = sizeof(options), .api = {.paths = paths, .path_count = count}};
 *     ops_server_start(&options, &server, &error);
 *     puts(ops_server_url(server));
 *     …
 *     ops_server_stop(server);
 *
 * Traces are read on first request and kept while there is memory for them. The server's own threads do all work and block all
 * signals; the functions may be called from any thread.
 *
 * These functions are in libopstrobe-serve (pkg-config opstrobe-serve), so that a program that only records does not load an HTTP
 * server.
 */
#ifndef OPSTROBE_SERVE_H
#define OPSTROBE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The traces to serve. Zero values select the defaults. Everything is copied. */
struct ops_api_options {
	const char *const *paths; /* trace files, and directories, which are searched recursively */
	size_t path_count;
	bool watch;            /* also list traces that appear in the directories later */
	uint64_t memory_bytes; /* limit beyond which the least recently used traces are dropped; default: half of the machine's
	                        * memory */
	/* What one reply may use: memory in addition to that of the traces, by default half of that of the machine or control
	 * group, and CPU time, by default 60 seconds. Beyond these limits the reply is an error, status 503. OPSTROBE_REQUEST_MB
	 * and OPSTROBE_REQUEST_SECONDS in the environment set other defaults. Reading a trace does not count. */
	uint64_t request_memory_bytes;
	double request_seconds;
	/* The command, ending with NULL, of a process that answers questions about an archive of traces: {"opstrobe", "archive",
	 * "answer", LOCATION, NULL}. NULL: no archive. */
	const char *const *archive;
	/* Called for each diagnostic of a trace that was read, on any thread; may be NULL. Must not send requests to the server. */
	void (*on_diagnostic)(const struct ops_diagnostic *diagnostic);
};

/* --- HTML file ------------------------------------------------------------------------------------------------------ */

/* Writes one HTML file that shows a trace, or all traces of a directory, without a server. On failure an existing file is left
 * unchanged: OPS_IO, OPS_CORRUPT, OPS_UNSUPPORTED in a build without the viewer. `on_diagnostic` as in ops_api_options. */
enum ops_code ops_report_write(const char *traces, const char *path,
                               void (*on_diagnostic)(const struct ops_diagnostic *diagnostic), struct ops_error *error);

/* --- HTTP server ---------------------------------------------------------------------------------------------------- */

struct ops_server;

/* Zero values select the defaults, except for `size`. */
struct ops_server_options {
	size_t size;         /* sizeof(struct ops_server_options) */
	const char *address; /* numeric address to listen on; NULL: 127.0.0.1 */
	uint16_t port;       /* 0: any free port */
	bool remote;         /* allow an address that other machines can reach */
	const char *frame_origin; /* origin ("http://localhost:8888") whose pages may show the viewer in a frame; NULL: none */
	struct ops_api_options api;
};

/* OPS_IO if the address is not available; OPS_INVALID if it is not an address, if other machines can reach it and `remote` is not
 * set, or if a path is neither a regular file nor a directory; OPS_UNSUPPORTED if the library was built without libmicrohttpd. */
enum ops_code ops_server_start(const struct ops_server_options *options, struct ops_server **ret_server,
                               struct ops_error *error);
/* Returns the URL of the server with the token of this run: "http://127.0.0.1:8080/?token=…". Owned by the server. */
const char *ops_server_url(const struct ops_server *server);
const char *ops_server_token(const struct ops_server *server);
uint16_t ops_server_port(const struct ops_server *server);
/* Answers pending requests with an error, waits until they have ended, and frees the server. NULL is allowed. */
void ops_server_stop(struct ops_server *server);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
