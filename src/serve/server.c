/* SPDX-License-Identifier: Apache-2.0
 *
 * The API and the viewer's files over HTTP, with libmicrohttpd. A single thread of the library transfers bytes; a request that
 * takes work is suspended until a worker has computed its reply, so that slow clients and slow replies do not delay others.
 */
#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/options.h"
#include "serve/api.h"
#include "serve/assets.h"
#include "serve/guard.h"

#define CONNECTIONS_MAX 512
#define CONNECTION_BYTES 32768 /* request line and headers */
#define CONNECTION_SECONDS 30  /* without a byte */
#define WAITING_MAX 384        /* connections that wait for a client; beyond this number, the one that has waited longest is closed */
#define BACKLOG 128
#define URL_SIZE 128

/* A connection. While it waits for its client (for the headers, for a reply to be received, for the next request), it is in the
 * server's list, longest waiting first. Used only by the daemon's thread. */
struct client {
	struct client *before, *behind;
	int fd;
	bool waits;
};

struct ops_server {
	struct client waiting; /* head of the ring */
	size_t waiting_count;
	struct ops_api *api;
	struct MHD_Daemon *daemon;
	struct guard guard;
	char url[URL_SIZE];
	char *policy; /* Content-Security-Policy */
	uint16_t port;
};

/* A request of a connection, from its first to its last byte. */
struct exchange {
	struct ops_server *server;
	struct MHD_Connection *connection;
	struct request *request;
	struct reply *reply; /* the reply that is sent */
	unsigned stage; /* number of calls of the handler: for its headers, its end, its reply */
	char target[];
};

/* --- sending -------------------------------------------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool accepts_gzip(struct MHD_Connection *connection)
{
	const char *accepted = header(connection, "Accept-Encoding");
	const char *gzip = accepted ? strcasestr(accepted, "gzip") : NULL;

	return gzip && strncmp(gzip + 4, ";q=0", 4) != 0;
}

/* Sends and releases the response. */
static enum MHD_Result send_response(const struct exchange *exchange, struct MHD_Response *response, int status)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Content-Security-Policy", exchange->server->policy);
	result = MHD_queue_response(exchange->connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return result;
}

/* Makes a response of bytes that outlive the exchange, compressed or not. */
static struct MHD_Response *make_response(const void *bytes, size_t size, const char *type, bool packed)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_PERSISTENT);

	if (response && type)
		MHD_add_response_header(response, "Content-Type", type);
	if (response && packed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	return response;
}

static void add_caching(struct MHD_Response *response, const char *etag, const char *control)
{
	if (!response)
		return;
	MHD_add_response_header(response, "Cache-Control", control);
	MHD_add_response_header(response, "Vary", "Accept-Encoding");
	if (etag)
		MHD_add_response_header(response, "ETag", etag);
}

/* The exchange keeps the reply until it has been sent. The reply is NULL if out of memory. */
static enum MHD_Result send_reply(struct exchange *exchange, struct reply *owned_reply, const char *etag)
{
	struct packed_body *packed = owned_reply ? atomic_load(&owned_reply->packed) : NULL;
	struct MHD_Response *response;

	if (!owned_reply)
		return MHD_NO;
	reply_unref(exchange->reply);
	exchange->reply = owned_reply;
	packed = packed && accepts_gzip(exchange->connection) ? packed : NULL;
	response = packed ? make_response(packed->bytes, packed->size, owned_reply->type, true)
	                  : make_response(owned_reply->body, owned_reply->size, owned_reply->type, false);
	add_caching(response, owned_reply->status == 200 ? etag : NULL, etag ? "private, no-cache" : "no-store");
	if (response && owned_reply->try_later)
		MHD_add_response_header(response, "Retry-After", "1");
	return send_response(exchange, response, owned_reply->status);
}

static enum MHD_Result send_error(struct exchange *exchange, int status, const char *message)
{
	return send_reply(exchange, reply_error(status, message), NULL);
}

static enum MHD_Result send_unchanged(struct exchange *exchange, const char *etag, const char *control)
{
	struct MHD_Response *response = make_response("", 0, NULL, false);

	add_caching(response, etag, control);
	return send_response(exchange, response, MHD_HTTP_NOT_MODIFIED);
}

/* --- caching by clients --------------------------------------------------------------------------------------------- */

#define ETAG_SIZE 64

static void make_etag(const char *target, char etag[ETAG_SIZE])
{
	snprintf(etag, ETAG_SIZE, "\"%s-%016llx\"", assets_build_id(), (unsigned long long)ops_hash(target, strlen(target)));
}

/* Returns whether the client has this version: a weak comparison with a list. */
static bool has_etag(struct MHD_Connection *connection, const char *etag)
{
	const char *had = header(connection, "If-None-Match");

	return had && strstr(had, etag);
}

/* --- files of the viewer -------------------------------------------------------------------------------------------- */

static enum MHD_Result send_asset(struct exchange *exchange, const struct asset *asset, bool has_version)
{
	const char *control = has_version ? "private, max-age=31536000, immutable" : "private, no-cache";
	struct MHD_Response *response;
	char etag[ETAG_SIZE];

	make_etag(asset->name, etag);
	if (has_etag(exchange->connection, etag))
		return send_unchanged(exchange, etag, control);
	if (accepts_gzip(exchange->connection)) {
		response = make_response(asset->packed, asset->packed_size, asset->type, true);
	} else {
		char *bytes = asset_unpack(asset);

		reply_unref(exchange->reply);
		exchange->reply = bytes ? reply_new(200, asset->type, bytes, asset->size) : NULL;
		if (!exchange->reply)
			return MHD_NO;
		response = make_response(exchange->reply->body, asset->size, asset->type, false);
	}
	add_caching(response, etag, control);
	return send_response(exchange, response, 200);
}

/* Moves the token of "/?token=…" to a cookie, so that it is not visible. */
static enum MHD_Result send_cookie(struct exchange *exchange)
{
	const struct guard *guard = &exchange->server->guard;
	struct MHD_Response *response = make_response("", 0, NULL, false);
	char cookie[sizeof(guard->cookie) + TOKEN_SIZE + 64];

	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", guard->cookie, guard->token);
	add_caching(response, NULL, "no-store");
	if (response) {
		MHD_add_response_header(response, "Set-Cookie", cookie);
		MHD_add_response_header(response, "Location", "./");
	}
	return send_response(exchange, response, MHD_HTTP_SEE_OTHER);
}

static enum MHD_Result send_file(struct exchange *exchange, const char *target)
{
	struct query query;
	struct ops_error error;
	enum ops_code code = query_parse(&query, target, &error);
	const struct ops_string *token = code ? NULL : query_find(&query, "token");
	const struct asset *asset = NULL;
	enum MHD_Result result;

	if (!code && query.segment_count <= 1)
		asset = assets_find(query.segment_count ? query.segments[0].bytes : "index.html");
	if (code)
		result = send_error(exchange, code == OPS_INVALID ? 400 : 500, error.text);
	else if (token && !guard_token_is(&exchange->server->guard, token->bytes, token->size))
		result = send_error(exchange, 401, "wrong token; the server printed the address to open");
	else if (token && !query.segment_count)
		result = send_cookie(exchange);
	else if (asset)
		result = send_asset(exchange, asset, query_find(&query, "v"));
	else
		result = send_error(exchange, 404, "there is nothing here");
	query_release(&query);
	return result;
}

/* --- slow clients --------------------------------------------------------------------------------------------------- */

static void stop_waiting(struct ops_server *server, struct client *client)
{
	if (!client || !client->waits)
		return;
	client->before->behind = client->behind;
	client->behind->before = client->before;
	client->waits = false;
	server->waiting_count--;
}

/* Clients that never finish a request or never receive a reply occupy connections; these are closed when others need them. */
static void start_waiting(struct ops_server *server, struct client *client)
{
	struct client *oldest, *last;

	if (!client)
		return;
	stop_waiting(server, client);
	if (server->waiting_count == WAITING_MAX) {
		oldest = server->waiting.behind;
		shutdown(oldest->fd, SHUT_RDWR);
		stop_waiting(server, oldest);
	}
	last = server->waiting.before;
	*client = (struct client){.before = last, .behind = &server->waiting, .fd = client->fd, .waits = true};
	last->behind = server->waiting.before = client;
	server->waiting_count++;
}

static struct client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **client_slot,
                          enum MHD_ConnectionNotificationCode code)
{
	struct client *client = *client_slot;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		client = *client_slot = ops_alloc_zeroed(1, sizeof(*client));
		if (client)
			client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		start_waiting(context, client);
	} else {
		stop_waiting(context, client);
		ops_free(client);
		*client_slot = NULL;
	}
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

/* Converts "/t/TOKEN/…" to "/…" with the token: pages in a frame have no cookies. */
static const char *without_token(const struct guard *guard, const char *target)
{
	if (strncmp(target, "/t/", 3) != 0 || strlen(target) < 3 + TOKEN_SIZE + 1 || target[3 + TOKEN_SIZE] != '/')
		return target;
	return guard_token_is(guard, target + 3, TOKEN_SIZE) ? target + 3 + TOKEN_SIZE : target;
}

static bool is_authorized(const struct exchange *exchange, const char *target)
{
	const struct guard *guard = &exchange->server->guard;

	return target != exchange->target || guard_cookie_is(guard, header(exchange->connection, "Cookie")) ||
	       guard_authorization_is(guard, header(exchange->connection, "Authorization"));
}

static void server_on_done(void *context)
{
	struct exchange *exchange = context;

	MHD_resume_connection(exchange->connection);
}

static bool is_api(const char *target)
{
	return !strncmp(target, "/api/", 5);
}

static enum MHD_Result send_answer(struct exchange *exchange, const char *target)
{
	struct request *request = exchange->request;
	char etag[ETAG_SIZE];

	make_etag(target, etag);
	return send_reply(exchange, request->reply ? reply_ref(request->reply) : reply_error(500, "out of memory"),
	                  request_is_stable(request) ? etag : NULL);
}

static enum MHD_Result start_request(struct exchange *exchange, const char *target)
{
	char etag[ETAG_SIZE];

	exchange->request = request_new(exchange->server->api, target, accepts_gzip(exchange->connection));
	if (!exchange->request)
		return MHD_NO;
	if (exchange->request->reply)
		return send_answer(exchange, target);
	make_etag(target, etag);
	if (request_is_stable(exchange->request) && has_etag(exchange->connection, etag))
		return send_unchanged(exchange, etag, "private, no-cache");
	stop_waiting(exchange->server, client_of(exchange->connection));
	MHD_suspend_connection(exchange->connection);
	request_submit(exchange->request, server_on_done, exchange);
	return MHD_YES;
}

struct repeated {
	unsigned hosts, lengths;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct repeated *repeated = context;

	(void)kind;
	(void)value;
	repeated->hosts += !strcasecmp(name, "Host");
	repeated->lengths += !strcasecmp(name, "Content-Length");
	return MHD_YES;
}

/* If a header is repeated, a proxy in front of this server may use the other one. */
static bool has_repeated_headers(struct MHD_Connection *connection)
{
	struct repeated repeated = {0, 0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &repeated);
	return repeated.hosts > 1 || repeated.lengths > 1;
}

/* Called with the headers only. A request that is answered at this point is not read any further. */
static enum MHD_Result server_begin(struct exchange *exchange, const char *method)
{
	const char *length = header(exchange->connection, "Content-Length");

	if (has_repeated_headers(exchange->connection))
		return send_error(exchange, 400, "more than one Host or Content-Length header");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_error(exchange, 405, "the server supports only GET and HEAD");
	if ((length && strcmp(length, "0") != 0) || header(exchange->connection, "Transfer-Encoding"))
		return send_error(exchange, 413, "a body is not taken");
	return MHD_YES;
}

static enum MHD_Result server_answer(struct exchange *exchange)
{
	const char *host = header(exchange->connection, "Host");
	const char *target = without_token(&exchange->server->guard, exchange->target);

	if (!guard_host_is(&exchange->server->guard, host))
		return send_error(exchange, 403, "the Host header does not name this server");
	if (!guard_origin_is(header(exchange->connection, "Origin"), host))
		return send_error(exchange, 403, "requests from other web pages are refused");
	if (!is_api(target))
		return send_file(exchange, target);
	if (!is_authorized(exchange, target))
		return send_error(exchange, 401, "the token is missing; the server printed the address to open");
	return start_request(exchange, target);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **exchange_slot)
{
	struct exchange *exchange = *exchange_slot;

	(void)context;
	(void)url;
	(void)version;
	(void)upload;
	if (!exchange)
		return MHD_NO;
	exchange->connection = connection;
	start_waiting(exchange->server, client_of(connection)); /* it has sent something, or there is something for it to receive */
	*upload_size = 0; /* of a rejected request */
	switch (exchange->stage++) {
	case 0:
		return server_begin(exchange, method);
	case 1:
		return server_answer(exchange);
	default:
		return send_answer(exchange, without_token(&exchange->server->guard, exchange->target));
	}
}

/* Called first for each request, with its target as sent. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
	size_t size = strlen(target) + 1;
	struct exchange *exchange = ops_alloc_zeroed(1, sizeof(*exchange) + size);

	(void)connection;
	if (exchange) {
		exchange->server = context;
		memcpy(exchange->target, target, size);
	}
	return exchange;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **exchange_slot,
                         enum MHD_RequestTerminationCode reason)
{
	struct exchange *exchange = *exchange_slot;

	(void)context;
	(void)connection;
	(void)reason;
	if (!exchange)
		return;
	request_free(exchange->request);
	reply_unref(exchange->reply);
	ops_free(exchange);
	*exchange_slot = NULL;
}

/* --- listening ------------------------------------------------------------------------------------------------------ */

struct listening {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t size;
	bool is_loopback;
};

static bool read_address(const char *text, uint16_t port, struct listening *ret_listening)
{
	struct listening listening = {0};

	if (inet_pton(AF_INET, text, &listening.address.v4.sin_addr) == 1) {
		listening.address.v4.sin_family = AF_INET;
		listening.address.v4.sin_port = htons(port);
		listening.size = sizeof(listening.address.v4);
		listening.is_loopback = ntohl(listening.address.v4.sin_addr.s_addr) >> 24 == 127;
	} else if (inet_pton(AF_INET6, text, &listening.address.v6.sin6_addr) == 1) {
		listening.address.v6.sin6_family = AF_INET6;
		listening.address.v6.sin6_port = htons(port);
		listening.size = sizeof(listening.address.v6);
		listening.is_loopback = IN6_IS_ADDR_LOOPBACK(&listening.address.v6.sin6_addr);
	} else {
		return false;
	}
	*ret_listening = listening;
	return true;
}

static enum ops_code listen_at(struct listening *listening, const char *text, int *ret_socket, struct ops_error *error)
{
	int one = 1, fd = socket(listening->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return ops_fault_errno(error, errno, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &listening->address.any, listening->size) || listen(fd, BACKLOG) ||
	    getsockname(fd, &listening->address.any, &listening->size)) {
		enum ops_code code = ops_fault_errno(error, errno, "cannot listen at %s, port %u", text,
		                                     ntohs(listening->address.v4.sin_port));

		close(fd);
		return code;
	}
	*ret_socket = fd;
	return OPS_OK;
}

/* The daemon's thread blocks all signals. */
static struct MHD_Daemon *start_daemon(struct ops_server *server, int socket)
{
	struct MHD_Daemon *daemon;
	sigset_t all, before;

	server->waiting.before = server->waiting.behind = &server->waiting;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
	                          MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
	                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
	                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_SECONDS, MHD_OPTION_URI_LOG_CALLBACK,
	                          on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
	                          on_connection, server, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

static bool make_policy(struct ops_server *server, const char *frame_origin)
{
	struct ops_buffer policy = {0};

	ops_buffer_printf(&policy,
	                  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
	                  "base-uri 'none'; form-action 'none'; frame-ancestors %s",
	                  frame_origin ? frame_origin : "'none'");
	ops_buffer_append(&policy, "", 1);
	server->policy = policy.bytes;
	return !policy.failed;
}

/* Returns whether a text is one or several origins, separated by spaces, with nothing that would end the policy. */
static bool is_origin(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]*' ") == strlen(text);
}

static void make_url(struct ops_server *server, const char *address)
{
	bool is_v6 = strchr(address, ':');

	if (!strcmp(address, "0.0.0.0") || !strcmp(address, "::"))
		address = server->guard.host_name;
	snprintf(server->url, sizeof(server->url), is_v6 ? "http://[%s]:%u/?token=%s" : "http://%s:%u/?token=%s", address,
	         server->port, server->guard.token);
}

/* A trace may be read several times, which is impossible for a pipe; and opening one might wait for its writer forever. */
static enum ops_code check_paths(const struct ops_api_options *options, struct ops_error *error)
{
	for (size_t i = 0; i < options->path_count; i++) {
		struct stat about;

		if (!stat(options->paths[i], &about) && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
			return ops_fault(error, OPS_INVALID, "cannot serve '%s': not a regular file or directory; write the trace to a file",
			                 options->paths[i]);
	}
	return OPS_OK;
}

static enum ops_code server_start(struct ops_server *server, const struct ops_server_options *options, struct ops_error *error)
{
	const char *address = options->address ? options->address : "127.0.0.1";
	struct listening listening;
	enum ops_code code;
	int socket = -1;

	if (!read_address(address, options->port, &listening))
		return ops_fault(error, OPS_INVALID, "'%s' is not a numeric address", address);
	if (!listening.is_loopback && !options->remote)
		return ops_fault(error, OPS_INVALID, "other machines can reach %s; allow it explicitly", address);
	if (options->frame_origin && !is_origin(options->frame_origin))
		return ops_fault(error, OPS_INVALID, "'%s' is not an origin", options->frame_origin);
	code = check_paths(&options->api, error);
	if (code)
		return code;
	if (!make_policy(server, options->frame_origin))
		return ops_fault_memory(error);
	code = listen_at(&listening, address, &socket, error);
	if (code)
		return code;
	server->port = ntohs(listening.address.v4.sin_port); /* at the same offset in both address families */
	if (!guard_init(&server->guard, server->port, !listening.is_loopback)) {
		close(socket);
		return ops_fault_errno(error, errno, "cannot make a token");
	}
	make_url(server, address);
	code = ops_api_new(&options->api, &server->api, error);
	if (!code) {
		server->daemon = start_daemon(server, socket); /* closes the socket eventually */
		code = server->daemon ? OPS_OK : ops_fault_memory(error);
	}
	if (!server->daemon)
		close(socket);
	return code;
}

enum ops_code ops_server_start(const struct ops_server_options *options, struct ops_server **ret_server,
                               struct ops_error *error)
{
	struct ops_server *server = ops_alloc_zeroed(1, sizeof(*server));
	struct ops_server_options given;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);

	if (!code)
		code = server ? server_start(server, &given, error) : ops_fault_memory(error);
	if (code) {
		ops_server_stop(server);
		return code;
	}
	catalog_read_only(server->api->catalog);
	*ret_server = server;
	return OPS_OK;
}

const char *ops_server_url(const struct ops_server *server)
{
	return server->url;
}

const char *ops_server_token(const struct ops_server *server)
{
	return server->guard.token;
}

uint16_t ops_server_port(const struct ops_server *server)
{
	return server->port;
}

/* Suspended connections must be resumed before the daemon can stop. */
void ops_server_stop(struct ops_server *server)
{
	if (!server)
		return;
	if (server->api)
		api_stop(server->api);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	ops_api_free(server->api);
	ops_free(server->policy);
	ops_free(server);
}
