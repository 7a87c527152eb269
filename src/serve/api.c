/* SPDX-License-Identifier: Apache-2.0
 *
 * Processing of requests; see api.h.
 */
#include "serve/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/host.h>
#include <opstrobe/internal/api.h>
#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/limit.h"
#include "serve/archive.h"
#include "serve/assets.h"

#define FIRST_SEGMENT 2 /* after "api" and "v1" */
#define TRACES_MAX 4096
#define UNDER_WAY_MAX 1024
#define REQUEST_SECONDS 60

const struct route *const route_tables[] = {trace_routes, view_routes, source_routes, tree_routes, timeline_routes,
                                            incident_routes, archive_routes, NULL};

/* --- errors --------------------------------------------------------------------------------------------------------- */

static int status_of(const struct request *request, enum ops_code code)
{
	if (request->status)
		return request->status;
	return code == OPS_INVALID ? 400 : 500;
}

enum ops_code request_fail(struct request *request, int status, struct ops_error *error, const char *format, ...)
{
	char text[256];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	request->status = status;
	return ops_fault(error, OPS_INVALID, "%s", text);
}

const struct ops_string *request_need(struct request *request, const char *name, struct ops_error *error)
{
	const struct ops_string *text = query_find(&request->query, name);

	if (!text)
		ops_fault(error, OPS_INVALID, "'%s' is missing", name);
	return text;
}

/* --- routing -------------------------------------------------------------------------------------------------------- */

/* Returns whether the segments of a path pattern match those of the request; "{…}" matches any. */
static bool api_matches(const struct route *route, const struct query *query)
{
	const char *at = route->path;
	size_t segment = FIRST_SEGMENT;

	while (*at) {
		size_t size = strcspn(at, "/");

		if (segment == query->segment_count)
			return false;
		if (*at != '{' && (strlen(query->segments[segment].bytes) != size ||
		                   memcmp(query->segments[segment].bytes, at, size) != 0))
			return false;
		segment++;
		at += size + (at[size] == '/');
	}
	return segment == query->segment_count;
}

static const struct route *find_route(const struct query *query)
{
	if (!query_segment_is(query, 0, "api") || !query_segment_is(query, 1, "v1"))
		return NULL;
	for (size_t table = 0; route_tables[table]; table++)
		for (const struct route *route = route_tables[table]; route->path; route++)
			if (api_matches(route, query))
				return route;
	return NULL;
}

static bool is_listed(const char *list, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == size && !memcmp(at, name, size))
			return true;
	return false;
}

static enum ops_code check_parameters(const struct request *request, struct ops_error *error)
{
	for (size_t i = 0; i < request->query.parameter_count; i++)
		if (!is_listed(request->route->parameters, request->query.parameters[i].name.bytes) &&
		    !(request->route->by_steps && !strcmp(request->query.parameters[i].name.bytes, "steps")))
			return ops_fault(error, OPS_INVALID, "unknown parameter '%.80s'", request->query.parameters[i].name.bytes);
	return OPS_OK;
}

/* --- traces --------------------------------------------------------------------------------------------------------- */

static enum ops_code add_trace(struct request *request, const char *id, size_t size, struct ops_error *error)
{
	char text[TRACE_ID_SIZE + 1] = "";
	struct served *served;
	size_t before = 0;

	if (request->trace_count == TRACES_MAX)
		return ops_fault(error, OPS_INVALID, "too many traces in one request");
	if (size == TRACE_ID_SIZE)
		memcpy(text, id, size);
	served = catalog_acquire(request->api->catalog, text);
	if (!served)
		return request_fail(request, 404, error, "trace '%.*s' does not exist", (int)(size < 80 ? size : 80), id);
	for (size_t i = 0; i < request->trace_count; i++)
		before += request->traces[i] == served;
	request->traces[request->trace_count++] = served;
	/* A trace may be given twice, as a pair. The work for a reply grows with their number, while naming one takes a few bytes. */
	return before < 2 ? OPS_OK : ops_fault(error, OPS_INVALID, "trace '%s' is given more than twice", text);
}

/* Adds the traces in the path, and the one of the parameter `base`. */
static enum ops_code add_traces(struct request *request, struct ops_error *error)
{
	const struct ops_string *base = query_find(&request->query, "base");
	const char *at, *mark = strchr(request->route->path, '{');
	enum ops_code code = OPS_OK;
	size_t count = 2;

	if (!mark || strncmp(mark, "{id", 3) != 0)
		return OPS_OK;
	at = request->query.segments[FIRST_SEGMENT + 1].bytes;
	for (const char *comma = strchr(at, ','); comma; comma = strchr(comma + 1, ','))
		count++;
	if (count > 2 && !strncmp(mark, "{id}", 4))
		return request_fail(request, 404, error, "this path accepts one trace");
	request->traces = ops_alloc_zeroed(count, sizeof(*request->traces));
	if (!request->traces)
		return ops_fault_memory(error);
	for (; !code && count > 1; count--, at += strcspn(at, ",") + 1)
		code = add_trace(request, at, strcspn(at, ","), error);
	if (!code && base)
		code = add_trace(request, base->bytes, base->size, error);
	return code;
}

/* --- computing the reply -------------------------------------------------------------------------------------------- */

static void api_finish(struct request *request, struct reply *reply)
{
	struct ops_api *api = request->api;

	request_free_parts(request);
	reply_unref(request->reply);
	request->reply = reply;
	if (reply && request->wants_packed)
		reply_pack(reply);
	pthread_mutex_lock(&api->lock);
	api->under_way--;
	pthread_mutex_unlock(&api->lock);
	request->done(request->context); /* may free the request */
}

/* Adds the diagnostics of all traces of the request, each once. */
static enum ops_code add_diagnostics(const struct request *request, char **text, size_t *size, struct ops_error *error)
{
	OPS_ARRAY(struct ops_diagnostic) items = {0};
	enum ops_code code = OPS_OK;
	char *made = *text;

	for (size_t i = 0; !code && i < request->trace_count; i++) {
		const struct served *served = request->traces[i];
		bool again = false;

		for (size_t j = 0; j < items.count && !again; j++)
			again = items.items[j].source == served->path;
		if (again || !served->diagnostic_count)
			continue;
		if (!OPS_ARRAY_RESERVE(&items, served->diagnostic_count)) {
			code = ops_fault_memory(error);
			break;
		}
		memcpy(items.items + items.count, served->diagnostics, served->diagnostic_count * sizeof(*items.items));
		items.count += served->diagnostic_count;
	}
	if (!code)
		code = ops_diagnostics_add(items.items, items.count, text, size, error);
	if (code)
		ops_free(made);
	OPS_ARRAY_RELEASE(&items);
	return code;
}

/* Beyond a limit allocations fail. Some functions tolerate that, but no reply is sent, because it might be incomplete. */
static struct reply *reply_limit(const struct ops_limit *limit)
{
	char text[256];

	if (limit->reached == OPS_LIMIT_MEMORY)
		snprintf(text, sizeof(text),
		         "the reply takes more than %s of memory; 'opstrobe serve --request-memory' or OPSTROBE_REQUEST_MB allows more",
		         ops_figure_of_bytes((int64_t)limit->bytes_max).text);
	else
		snprintf(text, sizeof(text),
		         "the reply takes more than %s of CPU time; 'opstrobe serve --request-time' or OPSTROBE_REQUEST_SECONDS allows more",
		         ops_figure_of_duration((double)limit->cpu_ns_max).text);
	return reply_error(503, text);
}

static struct reply *make_reply(struct request *request, answer_function *answer)
{
	struct ops_limit limit = {.bytes_max = request->api->request_bytes, .cpu_ns_max = request->api->request_cpu_ns};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	bool is_part = answer == request->route->select, is_kept_whole = request->route->select && !is_part;
	enum ops_code code = OPS_OK;

	ops_limit_begin(&limit);
	if (!is_part)
		code = request_cut(request, &error);
	if (!code)
		code = answer(request, &text, &size, &error);
	if (!code && !request->route->binary && !is_kept_whole)
		code = add_diagnostics(request, &text, &size, &error);
	ops_limit_end();
	if (limit.reached) {
		if (!code)
			ops_free(text);
		return reply_limit(&limit);
	}
	if (code)
		return reply_error(status_of(request, code), error.text);
	return reply_new(200, request->route->binary ? REPLY_BYTES : REPLY_JSON, text, size);
}

/* Makes the key of a cached reply: the path, and the parameters unless one only selects from it. */
static enum ops_code api_make_key(const struct request *request, struct ops_buffer *key, struct ops_error *error)
{
	for (size_t i = FIRST_SEGMENT; i < request->query.segment_count; i++) {
		ops_buffer_append(key, request->query.segments[i].bytes, request->query.segments[i].size);
		ops_buffer_append_text(key, "/");
	}
	for (size_t i = 0; i < request->query.parameter_count; i++) {
		if (request->route->select && !strcmp(request->query.parameters[i].name.bytes, "parts"))
			continue;
		ops_buffer_append_text(key, "\n");
		ops_buffer_append(key, request->query.parameters[i].name.bytes, request->query.parameters[i].name.size);
		ops_buffer_append_text(key, "=");
		ops_buffer_append(key, request->query.parameters[i].value.bytes, request->query.parameters[i].value.size);
	}
	ops_buffer_append(key, "", 1);
	return key->failed ? ops_fault_memory(error) : OPS_OK;
}

/* Returns false if the reply is being computed for another request; this one continues when it is ready. */
static bool find_or_make(struct request *request, struct reply **ret_reply)
{
	struct ops_buffer key = {0};
	struct ops_error error;
	enum cache_found found = CACHE_MAKE;

	*ret_reply = NULL;
	if (api_make_key(request, &key, &error)) {
		ops_buffer_release(&key);
		return true;
	}
	found = cache_find(request->api->cache, key.bytes, &request->job, ret_reply);
	if (found == CACHE_MAKE) {
		*ret_reply = make_reply(request, request->route->answer);
		cache_put(request->api->cache, key.bytes, *ret_reply);
	}
	ops_buffer_release(&key);
	return found != CACHE_WAIT;
}

static bool is_stopping(struct ops_api *api)
{
	bool stopping;

	pthread_mutex_lock(&api->lock);
	stopping = api->stopping;
	pthread_mutex_unlock(&api->lock);
	return stopping;
}

static void api_work(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));
	const struct route *route = request->route;
	struct reply *reply = NULL;

	if (is_stopping(request->api)) {
		api_finish(request, reply_busy("the server is stopping"));
		return;
	}
	if (!route->slow)
		reply = make_reply(request, route->answer);
	else if (!find_or_make(request, &reply))
		return;
	if (route->select && reply && reply->status == 200) {
		struct reply *part;

		request->reply = reply;
		part = make_reply(request, route->select);
		api_finish(request, part);
		return;
	}
	api_finish(request, reply);
}

/* Continues when all traces of the request have been read. */
static void api_advance(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));

	for (size_t i = request->traces_ready; i < request->trace_count; i++)
		catalog_await(request->traces[i], NULL); /* reads all traces concurrently */
	while (request->traces_ready < request->trace_count) {
		struct served *served = request->traces[request->traces_ready];
		enum served_state state = catalog_await(served, &request->job);

		if (state == SERVED_READING)
			return;
		if (state == SERVED_FAILED) {
			api_finish(request, reply_error(422, served->error.text));
			return;
		}
		request->traces_ready++;
	}
	request->job.run = api_work;
	workers_submit(request->api->workers, &request->job, !request->route->slow);
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

struct request *request_new(struct ops_api *api, const char *target, bool wants_packed)
{
	struct request *request = ops_alloc_zeroed(1, sizeof(*request));
	struct ops_error error;
	enum ops_code code;

	if (!request)
		return NULL;
	request->api = api;
	request->wants_packed = wants_packed;
	code = query_parse(&request->query, target, &error);
	if (!code)
		request->route = find_route(&request->query);
	if (!code && !request->route)
		code = request_fail(request, 404, &error, "there is nothing here");
	if (!code)
		code = check_parameters(request, &error);
	if (!code)
		code = add_traces(request, &error);
	if (code)
		request->reply = reply_error(status_of(request, code), error.text);
	if (code && !request->reply) {
		request_free(request);
		return NULL;
	}
	return request;
}

void request_submit(struct request *request, void (*done)(void *context), void *context)
{
	struct ops_api *api = request->api;
	const char *refused = NULL;

	request->done = done;
	request->context = context;
	request->job.run = api_advance;
	pthread_mutex_lock(&api->lock);
	if (api->stopping)
		refused = "the server is stopping";
	else if (api->under_way >= UNDER_WAY_MAX)
		refused = "the request needs too much data at once";
	api->under_way++;
	if (!refused)
		workers_submit(api->workers, &request->job, true);
	pthread_mutex_unlock(&api->lock);
	if (refused)
		api_finish(request, reply_busy(refused));
}

void request_free(struct request *request)
{
	if (!request)
		return;
	request_free_parts(request);
	for (size_t i = 0; i < request->trace_count; i++)
		catalog_release(request->traces[i]);
	ops_free(request->traces);
	query_release(&request->query);
	reply_unref(request->reply);
	ops_free(request);
}

bool request_is_stable(const struct request *request)
{
	return request->route && !request->route->unstable;
}

/* Returns a positive number from the environment; 0: none. */
static double environment_number(const char *name)
{
	const char *text = getenv(name);
	double number = text ? strtod(text, NULL) : 0;

	return number > 0 ? number : 0;
}

/* Rounds down; saturates at the largest number. */
static uint64_t api_whole(double number)
{
	return number < 0x1p63 ? (uint64_t)number : UINT64_MAX;
}

static void set_limits(struct ops_api *api, const struct ops_api_options *options)
{
	double mb = environment_number("OPSTROBE_REQUEST_MB"), seconds = options->request_seconds;

	if (!(seconds > 0))
		seconds = environment_number("OPSTROBE_REQUEST_SECONDS");
	api->request_cpu_ns = api_whole((seconds > 0 ? seconds : REQUEST_SECONDS) * 1e9);
	api->request_bytes = options->request_memory_bytes ? options->request_memory_bytes
	                     : mb > 0                      ? api_whole(mb * 1e6)
	                                                   : ops_usable_memory() / 2;
}

/* Lists the traces of the paths, and those in the folder of the archive. */
static enum ops_code make_catalog(struct ops_api *api, const struct ops_api_options *options, struct ops_error *error)
{
	struct ops_api_options with_folder = *options;
	const char **paths;
	enum ops_code code;

	if (!api->archive)
		return catalog_new(options, api->workers, &api->catalog, error);
	paths = ops_alloc_zeroed(options->path_count + 1, sizeof(*paths));
	if (!paths)
		return ops_fault_memory(error);
	for (size_t i = 0; i < options->path_count; i++)
		paths[i] = options->paths[i];
	paths[options->path_count] = archive_folder(api->archive);
	with_folder.paths = paths;
	with_folder.path_count++;
	code = catalog_new(&with_folder, api->workers, &api->catalog, error);
	ops_free((void *)paths);
	return code;
}

enum ops_code ops_api_new(const struct ops_api_options *options, struct ops_api **ret_api, struct ops_error *error)
{
	struct ops_api *api = ops_alloc_zeroed(1, sizeof(*api));
	enum ops_code code;

	if (!api)
		return ops_fault_memory(error);
	pthread_mutex_init(&api->lock, NULL);
	set_limits(api, options);
	api->workers = workers_new();
	api->cache = api->workers ? cache_new(api->workers) : NULL;
	code = api->cache ? OPS_OK : ops_fault_memory(error);
	if (!code && options->archive)
		code = archive_start(options->archive, &api->archive, error);
	if (!code)
		code = make_catalog(api, options, error);
	if (code) {
		ops_api_free(api);
		return code;
	}
	api->catalog->summary_limit = (struct ops_limit){.bytes_max = api->request_bytes, .cpu_ns_max = api->request_cpu_ns};
	*ret_api = api;
	return OPS_OK;
}

void api_stop(struct ops_api *api)
{
	pthread_mutex_lock(&api->lock);
	api->stopping = true;
	pthread_mutex_unlock(&api->lock);
	if (api->catalog)
		catalog_stop(api->catalog);
	archive_cancel(api->archive);
	workers_free(api->workers);
	api->workers = NULL;
}

void ops_api_free(struct ops_api *api)
{
	if (!api)
		return;
	api_stop(api);
	catalog_free(api->catalog);
	cache_free(api->cache);
	archive_stop(api->archive);
	pthread_mutex_destroy(&api->lock);
	ops_free(api);
}

/* --- requests within the process ------------------------------------------------------------------------------------ */

struct waiting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void api_on_done(void *context)
{
	struct waiting *waiting = context;

	pthread_mutex_lock(&waiting->lock);
	waiting->done = true;
	pthread_cond_signal(&waiting->changed);
	pthread_mutex_unlock(&waiting->lock);
}

/* Copies a reply, because it may be shared. */
static enum ops_code copy_reply(const struct reply *reply, struct ops_reply *ret_reply, struct ops_error *error)
{
	char *body = ops_realloc_array(NULL, reply->size + 1, 1);

	if (!body)
		return ops_fault_memory(error);
	memcpy(body, reply->body, reply->size + 1);
	*ret_reply = (struct ops_reply){reply->status, reply->type, body, reply->size};
	return OPS_OK;
}

/* Returns a file of the viewer. Returns NULL if out of memory. */
static struct reply *get_file(const char *target)
{
	struct query query;
	struct ops_error error;
	enum ops_code code = query_parse(&query, target, &error);
	const struct asset *asset = NULL;
	struct reply *reply = NULL;
	char *bytes;

	if (!code && query.segment_count <= 1)
		asset = assets_find(query.segment_count ? query.segments[0].bytes : "index.html");
	query_release(&query);
	if (asset) {
		bytes = asset_unpack(asset);
		reply = bytes ? reply_new(200, asset->type, bytes, asset->size) : NULL;
	} else if (code != OPS_NO_MEMORY) {
		reply = reply_error(code ? 400 : 404, code ? error.text : "there is nothing here");
	}
	return reply;
}

static struct reply *get_answer(struct ops_api *api, const char *target)
{
	struct waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	struct request *request = request_new(api, target, false);
	struct reply *reply;

	if (request && !request->reply) {
		request_submit(request, api_on_done, &waiting);
		pthread_mutex_lock(&waiting.lock);
		while (!waiting.done)
			pthread_cond_wait(&waiting.changed, &waiting.lock);
		pthread_mutex_unlock(&waiting.lock);
	}
	reply = request && request->reply ? reply_ref(request->reply) : NULL;
	request_free(request);
	return reply;
}

enum ops_code ops_api_get(struct ops_api *api, const char *target, struct ops_reply *ret_reply, struct ops_error *error)
{
	struct reply *reply = strncmp(target, "/api/", 5) ? get_file(target) : get_answer(api, target);
	enum ops_code code = reply ? copy_reply(reply, ret_reply, error) : ops_fault_memory(error);

	reply_unref(reply);
	return code;
}

void ops_reply_release(struct ops_reply *reply)
{
	ops_free(reply->body);
	*reply = (struct ops_reply){0};
}
