/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of the timeline.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "serve/api.h"

#define TILES_MAX 64
#define STRINGS_MAX 4096
#define TRACKS_MAX 4096
#define LIMIT_MAX 10000
#define BINS_MAX 4096

static enum ops_code answer_timeline(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return ops_timeline_json(request->traces[0]->timeline, ret_text, ret_size, error);
}

/* --- tiles ---------------------------------------------------------------------------------------------------------- */

/* "TRACK.LEVEL.INDEX[.BAND]" */
static bool parse_tile(const char **at, struct ops_tile *tile)
{
	uint64_t track, level, index, band = 0;

	if (!query_parse_number(at, UINT32_MAX, &track) || *(*at)++ != '.' || !query_parse_number(at, UINT32_MAX, &level) ||
	    *(*at)++ != '.' || !query_parse_number(at, INT64_MAX, &index))
		return false;
	if (**at == '.') {
		(*at)++;
		if (!query_parse_number(at, UINT32_MAX, &band))
			return false;
	}
	*tile = (struct ops_tile){.track = (uint32_t)track, .level = (uint32_t)level, .index = index, .band = (uint32_t)band};
	return true;
}

static enum ops_code read_tiles(struct request *request, const char *name, struct ops_tile *tiles, size_t *ret_count,
                                struct ops_error *error)
{
	const struct ops_string *text = request_need(request, name, error);
	const char *at = text ? text->bytes : NULL;
	size_t count = 0;

	if (!text)
		return OPS_INVALID;
	do {
		at += count ? 1 : 0;
		if (count == TILES_MAX)
			return ops_fault(error, OPS_INVALID, "'%s' has more than %d", name, TILES_MAX);
		if (!parse_tile(&at, &tiles[count++]))
			return ops_fault(error, OPS_INVALID, "'%s' is not a list of tiles", name);
	} while (*at == ',');
	*ret_count = count;
	return *at ? ops_fault(error, OPS_INVALID, "'%s' is not a list of tiles", name) : OPS_OK;
}

/* Reads "true" or "false"; false if the parameter is absent. */
static enum ops_code read_switch(const struct request *request, const char *name, bool *ret_on, struct ops_error *error)
{
	const struct ops_string *text = query_find(&request->query, name);

	if (text && strcmp(text->bytes, "true") != 0 && strcmp(text->bytes, "false") != 0)
		return ops_fault(error, OPS_INVALID, "'%s' is true or false", name);
	*ret_on = text && !strcmp(text->bytes, "true");
	return OPS_OK;
}

static enum ops_code answer_tiles(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_tile tiles[TILES_MAX];
	size_t count;
	bool fold = false;
	enum ops_code code = read_tiles(request, "tiles", tiles, &count, error);

	if (!code)
		code = read_switch(request, "fold", &fold, error);
	for (size_t i = 0; !code && i < count; i++)
		tiles[i].fold = fold;
	return code ? code
	            : ops_timeline_tiles(request->traces[0]->timeline, tiles, count, ret_text, ret_size, error);
}

static enum ops_code answer_counters(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_tile tiles[TILES_MAX];
	size_t count;
	enum ops_code code = read_tiles(request, "counters", tiles, &count, error);

	return code ? code
	            : ops_timeline_counters(request->traces[0]->timeline, tiles, count, ret_text, ret_size, error);
}

/* --- rows and strings ----------------------------------------------------------------------------------------------- */

static enum ops_code answer_event(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const char *at = request->query.segments[6].bytes;
	struct served *served = request->traces[0];
	uint64_t row;

	if (!query_parse_number(&at, UINT32_MAX - 1, &row) || *at)
		return ops_fault(error, OPS_INVALID, "a row is a number");
	if (row >= ops_trace_events(served->trace)->count)
		return request_fail(request, 404, error, "row %u does not exist", (unsigned)row);
	return ops_timeline_event(served->timeline, (uint32_t)row, ret_text, ret_size, error);
}

/* Selects calls by name, or by the name and kind of a row. */
static enum ops_code answer_calls(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *name = query_find(&request->query, "name");
	struct served *served = request->traces[0];
	int64_t row = OPS_NONE;
	enum ops_code code = query_integer(&request->query, "row", 0, OPS_NONE - 1, &row, error);

	if (!code && !name == (row == OPS_NONE))
		code = ops_fault(error, OPS_INVALID, "either 'name' or 'row' is required");
	if (!code && row != OPS_NONE && row >= (int64_t)ops_trace_events(served->trace)->count)
		code = request_fail(request, 404, error, "row %lld does not exist", (long long)row);
	return code ? code
	            : ops_timeline_calls(served->timeline, name ? *name : (struct ops_string){"", 0}, (uint32_t)row, ret_text,
	                                 ret_size, error);
}

static enum ops_code answer_strings(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	uint32_t *ids;
	size_t count = 0;
	enum ops_code code;

	if (!request_need(request, "ids", error))
		return OPS_INVALID;
	ids = ops_realloc_array(NULL, STRINGS_MAX, sizeof(*ids));
	code = ids ? query_numbers(&request->query, "ids", ids, STRINGS_MAX, &count, error) : ops_fault_memory(error);
	if (!code)
		code = ops_timeline_strings(request->traces[0]->timeline, ids, count, ret_text, ret_size, error);
	ops_free(ids);
	return code;
}

/* --- windows -------------------------------------------------------------------------------------------------------- */

/* Reads from, to, limit and tracks; `tracks` has room for TRACKS_MAX. */
static enum ops_code read_window(const struct request *request, uint32_t *tracks, struct ops_window *ret_window,
                                 struct ops_error *error)
{
	struct ops_window window = OPS_WINDOW_ALL;
	int64_t limit = (int64_t)window.limit;
	enum ops_code code = query_integer(&request->query, "from", INT64_MIN + 1, INT64_MAX, &window.from_ns, error);

	if (!code)
		code = query_integer(&request->query, "to", INT64_MIN + 1, INT64_MAX, &window.to_ns, error);
	if (!code)
		code = query_integer(&request->query, "limit", 1, LIMIT_MAX, &limit, error);
	if (!code)
		code = query_numbers(&request->query, "tracks", tracks, TRACKS_MAX, &window.track_count, error);
	window.from_ns = window.from_ns < 0 ? 0 : window.from_ns;
	window.to_ns = window.to_ns < 0 ? 0 : window.to_ns;
	window.limit = (size_t)limit;
	window.tracks = window.track_count ? tracks : NULL;
	*ret_window = window;
	return code;
}

typedef enum ops_code window_function(const struct request *request, const struct ops_window *window, char **ret_text,
                                      size_t *ret_size, struct ops_error *error);

static enum ops_code timeline_routes_answer_window(const struct request *request, window_function *answer, char **ret_text,
                                                   size_t *ret_size, struct ops_error *error)
{
	uint32_t *tracks = ops_realloc_array(NULL, TRACKS_MAX, sizeof(*tracks));
	struct ops_window window = OPS_WINDOW_ALL;
	enum ops_code code = tracks ? read_window(request, tracks, &window, error) : ops_fault_memory(error);

	if (!code)
		code = answer(request, &window, ret_text, ret_size, error);
	ops_free(tracks);
	return code;
}

static enum ops_code sum_window(const struct request *request, const struct ops_window *window, char **ret_text,
                                size_t *ret_size, struct ops_error *error)
{
	return ops_timeline_range(request->traces[0]->timeline, window, ret_text, ret_size, error);
}

static enum ops_code answer_range(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return timeline_routes_answer_window(request, sum_window, ret_text, ret_size, error);
}

static enum ops_code search_window(const struct request *request, const struct ops_window *window, char **ret_text,
                                   size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *text = query_find(&request->query, "q");
	int64_t after = OPS_NONE, before = OPS_NONE, bins = 0;
	bool arguments = false;
	enum ops_code code = query_integer(&request->query, "after", 0, OPS_NONE - 1, &after, error);
	struct ops_search search;

	if (!code)
		code = query_integer(&request->query, "before", 0, OPS_NONE - 1, &before, error);
	if (!code)
		code = query_integer(&request->query, "bins", 1, BINS_MAX, &bins, error);
	if (!code && (!text || !text->size))
		code = ops_fault(error, OPS_INVALID, "'q' is missing");
	if (!code)
		code = read_switch(request, "arguments", &arguments, error);
	if (code)
		return code;
	search = (struct ops_search){*window, text->bytes, text->size, (uint32_t)after, (uint32_t)before, (uint32_t)bins,
	                             arguments};
	return ops_timeline_search(request->traces[0]->timeline, &search, ret_text, ret_size, error);
}

static enum ops_code answer_search(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return timeline_routes_answer_window(request, search_window, ret_text, ret_size, error);
}

/* --- flows ---------------------------------------------------------------------------------------------------------- */

static enum ops_code read_kinds(const struct request *request, uint32_t *ret_kinds, struct ops_error *error)
{
	static const struct {
		const char *name;
		enum ops_link_kind kind;
	} names[] = {{"launch", OPS_LINK_LAUNCH}, {"forward_backward", OPS_LINK_FORWARD_BACKWARD}, {"other", OPS_LINK_OTHER},
	           {"dependency", OPS_LINK_DEPENDENCY}};
	size_t known = sizeof(names) / sizeof(names[0]);
	const struct ops_string *kinds = query_find(&request->query, "kinds");

	*ret_kinds = kinds ? 0 : UINT32_MAX;
	for (const char *at = kinds ? kinds->bytes : ""; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t size = strcspn(at, ","), i = 0;

		while (i < known && !(strlen(names[i].name) == size && !memcmp(names[i].name, at, size)))
			i++;
		if (i == known)
			return ops_fault(error, OPS_INVALID, "unknown kind of link '%.*s'", (int)(size < 80 ? size : 80), at);
		*ret_kinds |= 1u << names[i].kind;
	}
	return OPS_OK;
}

static enum ops_code find_flows(const struct request *request, const struct ops_window *window, char **ret_text,
                                size_t *ret_size, struct ops_error *error)
{
	int64_t row = OPS_NONE;
	uint32_t kinds;
	enum ops_code code = query_integer(&request->query, "row", 0, OPS_NONE - 1, &row, error);

	if (!code)
		code = read_kinds(request, &kinds, error);
	return code ? code
	            : ops_timeline_flows(request->traces[0]->timeline, window, (uint32_t)row, kinds, ret_text, ret_size, error);
}

static enum ops_code answer_flows(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return timeline_routes_answer_window(request, find_flows, ret_text, ret_size, error);
}

static enum ops_code answer_critical_path(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *annotation = query_find(&request->query, "annotation");
	struct ops_string part = {annotation ? annotation->bytes : "", annotation ? annotation->size : 0};
	int64_t instance = 0;
	enum ops_code code = query_integer(&request->query, "instance", 0, UINT32_MAX, &instance, error);

	return code ? code
	            : ops_timeline_critical_path(request->traces[0]->timeline, part, (uint32_t)instance, ret_text, ret_size,
	                                         error);
}

/* --- several ranks -------------------------------------------------------------------------------------------------- */

static enum ops_code answer_collective(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_timeline **timelines = ops_realloc_array(NULL, request->trace_count, sizeof(*timelines));
	int64_t row = OPS_NONE;
	enum ops_code code = timelines ? query_integer(&request->query, "row", 0, OPS_NONE - 1, &row, error)
	                               : ops_fault_memory(error);

	if (!code && row != OPS_NONE && row >= (int64_t)ops_trace_events(request->traces[0]->trace)->count)
		code = request_fail(request, 404, error, "row %lld does not exist", (long long)row);
	for (size_t i = 0; !code && i < request->trace_count; i++)
		timelines[i] = request->traces[i]->timeline;
	if (!code)
		code = ops_timelines_collective(timelines, request->trace_count, (uint32_t)row, ret_text, ret_size, error);
	ops_free(timelines);
	return code;
}

const struct route timeline_routes[] = {
	{.path = "traces/{id}/timeline", .parameters = "", .answer = answer_timeline},
	{.path = "traces/{id}/timeline/tiles", .parameters = "tiles,fold", .answer = answer_tiles, .binary = true},
	{.path = "traces/{id}/timeline/counters", .parameters = "counters", .answer = answer_counters},
	{.path = "traces/{id}/timeline/events/{row}", .parameters = "", .answer = answer_event},
	{.path = "traces/{id}/timeline/calls", .parameters = "name,row", .answer = answer_calls, .slow = true},
	{.path = "traces/{id}/timeline/search", .parameters = "q,arguments,tracks,after,before,limit,from,to,bins", .answer = answer_search},
	{.path = "traces/{id}/timeline/range", .parameters = "from,to,tracks,limit", .answer = answer_range},
	{.path = "traces/{id}/timeline/flows", .parameters = "row,from,to,kinds,tracks,limit", .answer = answer_flows},
	{.path = "traces/{id}/timeline/critical-path", .parameters = "annotation,instance", .answer = answer_critical_path,
	 .slow = true},
	{.path = "traces/{ids}/timeline/collective", .parameters = "row", .answer = answer_collective, .slow = true},
	{.path = "traces/{id}/strings", .parameters = "ids", .answer = answer_strings},
	{0},
};
