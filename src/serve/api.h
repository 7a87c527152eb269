/* SPDX-License-Identifier: Apache-2.0
 *
 * The routes of the API, and a request on its way through them: its traces are read, then a worker makes the reply, or
 * finds it made. docs/openapi.yaml says what each route answers.
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
	uint64_t request_bytes;    /* limits of what one reply takes */
	uint64_t request_cpu_ns;
	pthread_mutex_t lock; /* of what follows */
	bool stopping;
	unsigned under_way; /* requests */
};

struct request {
	struct ops_api *api;
	struct query query;
	const struct route *route;
	struct served **traces;
	size_t trace_count;
	size_t traces_ready;
	struct ops_trace **parts; /* their requested steps; NULL: all of each */
	bool wants_packed;
	int status; /* of an error's reply; 0: derived from its code */
	struct job job;
	struct reply *reply;
	void (*done)(void *context);
	void *context;
};

/* Makes the text of a 200, which is freed by ops_free. */
typedef enum ops_code answer_function(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error);

struct route {
	const char *path;       /* below /api/v1: "traces/{id}/views"; {id} and {ids} are traces */
	const char *parameters; /* that it takes, joined by commas */
	answer_function *answer;
	/* Replies of slow routes are kept. With `select` one is kept whatever the parameters, and each request takes its part. */
	bool slow;
	answer_function *select; /* finds the whole in request->reply */
	bool by_steps;           /* takes the parameter "steps", too, and answers of what request_trace gives */
	bool unstable;           /* the same URL may answer something else */
	bool binary;
};

/* Returns NULL when memory is out, else a request, which may be answered already (then `reply` is set): an invalid URL is
 * answered at once. */
struct request *request_new(struct ops_api *api, const char *target, bool wants_packed);
/* Has it answered; `done` is called by some thread, or before this returns. */
void request_submit(struct request *request, void (*done)(void *context), void *context);
void request_free(struct request *request); /* NULL is allowed */
/* Whether the reply follows from the URL. */
bool request_is_stable(const struct request *request);

/* Ends what is under way soon, waits for it, and takes no more. */
void api_stop(struct ops_api *api);

/* --- routes, by what they are about --------------------------------------------------------------------------------- */

extern const struct route *const route_tables[]; /* each ended by a NULL path; ended by NULL */
extern const struct route trace_routes[], view_routes[], source_routes[], tree_routes[], timeline_routes[],
	incident_routes[];

/* Sets the status of an error. */
__attribute__((format(printf, 4, 5))) enum ops_code request_fail(struct request *request, int status, struct ops_error *error,
                                                                 const char *format, ...);
/* A trace of the request, or its requested steps. */
struct ops_trace *request_trace(const struct request *request, size_t i);
/* The time range of the requested steps; unchanged if there are none. */
enum ops_code request_stretch(struct request *request, const struct ops_trace *trace, int64_t *ret_from_ns,
                              int64_t *ret_to_ns, struct ops_error *error);
/* Makes what request_trace gives, unless it is there; for the request itself. */
enum ops_code request_cut(struct request *request, struct ops_error *error);
void request_free_parts(struct request *request);

/* A parameter that must be there. NULL, with an error, when it is not. */
const struct ops_string *request_need(struct request *request, const char *name, struct ops_error *error);

#endif
