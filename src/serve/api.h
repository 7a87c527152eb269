/* SPDX-License-Identifier: Apache-2.0
 *
 * The routes of the API, and the processing of a request: its traces are read, then a worker computes the reply or finds it in
 * the cache. docs/openapi.yaml describes the replies of the routes.
 *
 *     request_new ─▶ traces read ─▶ cache ─▶ route's function ─▶ done
 */
#ifndef OPS_SERVE_API_H
#define OPS_SERVE_API_H

#include <opstrobe/serve.h>

#include "serve/cache.h"
#include "serve/catalog.h"
#include "serve/query.h"
#include "serve/reply.h"

struct ops_api {
	struct workers *workers;
	struct catalog *catalog;
	struct cache *cache;
	struct archive *archive; /* NULL: none is served */
	uint64_t request_bytes;    /* limits of one reply */
	uint64_t request_cpu_ns;
	pthread_mutex_t lock; /* protects the following members */
	bool stopping;
	unsigned under_way; /* number of requests in progress */
};

struct request {
	struct ops_api *api;
	struct query query;
	const struct route *route;
	struct served **traces;
	size_t trace_count;
	size_t traces_ready;
	struct ops_trace **parts; /* the requested steps of each trace; NULL: complete traces */
	bool wants_packed;
	int status; /* status of an error reply; 0: derived from its code */
	struct job job;
	struct reply *reply;
	void (*done)(void *context);
	void *context;
};

/* Computes the body of a 200 reply, which is freed by ops_free. */
typedef enum ops_code answer_function(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error);

struct route {
	const char *path;       /* below /api/v1: "traces/{id}/views"; {id} and {ids} are placeholders for traces */
	const char *parameters; /* accepted parameters, joined by commas */
	answer_function *answer;
	/* Replies of slow routes are cached. With `select`, one reply is cached for all values of the parameter "parts", and each
	 * request selects its part. */
	bool slow;
	answer_function *select; /* finds the complete reply in request->reply */
	bool by_steps;           /* also accepts the parameter "steps", and uses what request_trace returns */
	bool unstable;           /* the reply to the same URL may change */
	bool binary;
};

/* Returns NULL if out of memory, else a request. It may already be answered, with `reply` set: an invalid URL is answered at once. */
struct request *request_new(struct ops_api *api, const char *target, bool wants_packed);
/* Starts the request. `done` is called on some thread, perhaps before this returns. */
void request_submit(struct request *request, void (*done)(void *context), void *context);
void request_free(struct request *request); /* NULL is allowed */
/* Returns whether the reply depends only on the URL. */
bool request_is_stable(const struct request *request);

/* Makes requests in progress end soon, waits for them, and accepts no more. */
void api_stop(struct ops_api *api);

/* --- routes by topic ------------------------------------------------------------------------------------------------ */

extern const struct route *const route_tables[]; /* each ends with a NULL path; the list ends with NULL */
extern const struct route trace_routes[], view_routes[], source_routes[], tree_routes[], timeline_routes[],
	incident_routes[], archive_routes[];

/* Sets the status of an error. */
__attribute__((format(printf, 4, 5))) enum ops_code request_fail(struct request *request, int status, struct ops_error *error,
                                                                 const char *format, ...);
/* Returns a trace of the request, or the requested steps of it. */
struct ops_trace *request_trace(const struct request *request, size_t i);
/* Computes the time range of the requested steps; unchanged if there are none. */
enum ops_code request_stretch(struct request *request, const struct ops_trace *trace, int64_t *ret_from_ns,
                              int64_t *ret_to_ns, struct ops_error *error);
/* Computes what request_trace returns, if necessary; only for the request itself. */
enum ops_code request_cut(struct request *request, struct ops_error *error);
void request_free_parts(struct request *request);

/* Returns a required parameter. Returns NULL, with an error, if it is missing. */
const struct ops_string *request_need(struct request *request, const char *name, struct ops_error *error);

#endif
