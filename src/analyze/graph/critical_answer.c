/* SPDX-License-Identifier: Apache-2.0
 *
 * `critical_path`: the longest path through a region of a rank, what it is bound by, its edges, and its length if parts
 * took another time.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/graph/critical_overlay.h"
#include "analyze/graph/critical_path.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/sum.h"
#include "base/text.h"

/* --- options --------------------------------------------------------------------------------------------------------- */

struct request {
	size_t rank;
	struct ops_string annotation;
	int64_t first, last; /* range of its instances */
	struct critical_options options;
	struct ops_string directory; /* directory of the overlay; empty: none */
	struct critical_overlay overlay;
	bool edges;
};

/* Parses null (the first instance), a number, or the first and the last number of a range. */
static enum ops_code read_instances(struct analysis_run *run, struct request *request)
{
	struct ops_string value = analysis_arg(run, "instance_id"), item;
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	int64_t pair[2];

	if (ops_string_is(value, "null"))
		return OPS_OK;
	if (value.bytes[0] != '[') {
		request->first = request->last = analysis_integer(run, "instance_id");
		return run->code;
	}
	for (size_t i = 0; i < 2; i++)
		if (!ops_json_next_element(&walk, &item) || !ops_json_parse_integer(item, &pair[i]))
			return ops_fault(run->error, OPS_INVALID, "option 'instance_id' must be a number or a pair of numbers");
	request->first = pair[0];
	request->last = pair[1];
	return request->first <= request->last
	               ? OPS_OK : ops_fault(run->error, OPS_INVALID, "option 'instance_id' must be FIRST,LAST with FIRST <= LAST");
}

static enum ops_code read_request(struct analysis_run *run, struct request *request)
{
	enum ops_code code;

	*request = (struct request){
		.rank = analysis_rank(run),
		.annotation = analysis_text(run, "annotation"),
		.options = {.zero_weight_launches = analysis_bool(run, "add_zero_weight_launch_edges")},
		.edges = analysis_bool(run, "edges"),
		.directory = analysis_text(run, "output_dir"),
		.overlay = {.only_critical = analysis_bool(run, "only_show_critical_events"), .all_edges = analysis_bool(run, "show_all_edges")},
	};
	request->options.loaders = analysis_texts(run, "data_load_events", &request->options.loader_count);
	code = run->code ? run->code : read_instances(run, request);
	if (!code && !request->annotation.size && !ops_string_is(analysis_arg(run, "instance_id"), "null"))
		code = ops_fault(run->error, OPS_INVALID, "option 'instance_id' requires option 'annotation'");
	return code;
}

static bool is_part_of(const struct request *request, struct ops_string name)
{
	return ops_string_has_part(name, request->annotation);
}

/* Finds the time range from the first to the last selected instance. Returns false if there are none. */
static bool critical_answer_find_region(const struct event_table *table, const struct request *request, int64_t *ret_start_ns,
                                        int64_t *ret_end_ns)
{
	bool named = request->annotation.size > 0;
	int64_t instance = 0;

	*ret_start_ns = named ? INT64_MAX : INT64_MIN;
	*ret_end_ns = named ? INT64_MIN : INT64_MAX;
	for (size_t i = 0; named && i < table->kept_count && instance <= request->last; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (!is_part_of(request, event_name(table, row)))
			continue;
		if (instance++ < request->first || request->first < 0)
			continue;
		if (row->ts_ns < *ret_start_ns)
			*ret_start_ns = row->ts_ns;
		if (event_end(row) > *ret_end_ns)
			*ret_end_ns = event_end(row);
	}
	return !named || *ret_start_ns <= *ret_end_ns;
}

#define NAMES_LISTED 8

/* Writes each annotation name once, up to a limit. */
static void list_annotations(const struct event_table *table, struct ops_buffer *list)
{
	uint32_t listed[NAMES_LISTED];
	size_t count = 0;

	for (size_t i = 0; i < table->kept_count && count < NAMES_LISTED; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];
		struct ops_string name = event_name(table, row);
		bool known = row->kind != OPS_EVENT_USER_ANNOTATION;

		for (size_t k = 0; k < count && !known; k++)
			known = listed[k] == row->name;
		if (known)
			continue;
		ops_buffer_append_text(list, count ? ", '" : "'");
		listed[count++] = row->name;
		ops_buffer_append(list, name.bytes, name.size);
		ops_buffer_append(list, "'", 1);
	}
	if (count == NAMES_LISTED)
		ops_buffer_append(list, ", ...", 5);
}

/* Reports that no range, or too few ranges, have the name. */
static enum ops_code fail_region(struct analysis_run *run, const struct event_table *table, const struct request *request)
{
	struct ops_buffer list = {0};
	size_t found = 0;
	enum ops_code code;

	for (size_t i = 0; i < table->kept_count; i++)
		found += is_part_of(request, event_name(table, &table->rows[table->kept[i]]));
	if (found)
		return ops_fault(run->error, OPS_INVALID, "invalid instance_id %" PRId64 ": %zu ranges match '%.*s' (choose from 0 to %zu)",
		                 request->first, found, (int)request->annotation.size, request->annotation.bytes, found - 1);
	list_annotations(table, &list);
	code = list.failed ? ops_fault_memory(run->error)
	                   : ops_fault(run->error, OPS_INVALID, "no event's name contains '%.*s'; the annotations are: %.*s",
	                               (int)request->annotation.size, request->annotation.bytes,
	                               list.size ? (int)list.size : 4, list.size ? list.bytes : "none");
	ops_buffer_release(&list);
	return code;
}

/* --- edges ----------------------------------------------------------------------------------------------------------- */

struct edge_row {
	int64_t index, dur_ns, pid, tid, stream;
	const char *type, *bound;
	struct ops_string name, category;
};

static const struct result_column edge_columns[] = {
	{.name = "event_idx", .type = RESULT_INTEGER, .title = "Index", .about = "Index of the event in the file; null between events",
	 RESULT_FIELD(struct edge_row, index)},
	{.name = "duration", .type = RESULT_TIME, .title = "Duration", .about = "Time that the edge adds to the path",
	 RESULT_FIELD(struct edge_row, dur_ns)},
	{.name = "type", .type = RESULT_TEXT, .title = "Type", .about = "Type of the edge", RESULT_FIELD(struct edge_row, type)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the event", RESULT_FIELD(struct edge_row, name)},
	{.name = "cat", .type = RESULT_TEXT, .title = "Kind", .about = "Kind of the event",
	 RESULT_FIELD(struct edge_row, category)},
	{.name = "pid", .type = RESULT_INTEGER, .title = "Process", .about = "Process of the event; -1: not a number",
	 RESULT_FIELD(struct edge_row, pid)},
	{.name = "tid", .type = RESULT_INTEGER, .title = "Thread", .about = "Thread of the event; -1: not a number",
	 RESULT_FIELD(struct edge_row, tid)},
	{.name = "stream", .type = RESULT_INTEGER, .title = "Stream", .about = "Stream of the event; -1: none",
	 RESULT_FIELD(struct edge_row, stream)},
	{.name = "bound_by", .type = RESULT_TEXT, .title = "Bound by", .about = "What the time is spent on",
	 RESULT_FIELD(struct edge_row, bound)},
};
const struct result_declaration table_critical_edges =
	RESULT_DECLARATION("critical_path", "An edge of the path, with the option edges", edge_columns);

static void critical_answer_add_edge(struct result_table *out, const struct critical_path *path,
                                     const struct critical_edge *edge)
{
	const struct event_table *table = path->table;

	struct edge_row added = {.index = RESULT_NULL, .dur_ns = edge->weight_ns, .pid = RESULT_NULL, .tid = RESULT_NULL,
	                         .stream = RESULT_NULL, .type = critical_edge_type_name(edge->type),
	                         .bound = critical_bound_name(critical_bound_of(path, edge))};
	size_t count;

	if (edge->event != OPS_NONE) {
		const struct event_row *row = critical_row(path, edge->event);
		const struct ops_track *track = &ops_trace_tracks(table->trace, &count)[row->track];

		added.index = row->index;
		added.name = event_name(table, row);
		added.category = ops_event_category(table->trace, row->source);
		added.pid = track->flags & OPS_TRACK_PID_TEXT ? -1 : track->pid;
		added.tid = track->flags & OPS_TRACK_TID_TEXT ? -1 : track->tid;
		added.stream = row->stream;
	}
	result_add(out, &added);
}

static void critical_answer_add_edges(struct result_table *out, const struct critical_path *path)
{
	result_declare(out, &table_critical_edges, 0);
	for (size_t i = 0; i < path->path.count; i++)
		critical_answer_add_edge(out, path, &path->edges.items[path->path.items[i]]);
}

/* --- figures --------------------------------------------------------------------------------------------------------- */

struct bound_sum {
	int64_t ns;
	uint64_t edges;
};

static void write_types(struct ops_json_writer *json, const char *key, const uint64_t *counts)
{
	ops_json_member_open(json, key, '{');
	for (int type = 0; type < CRITICAL_EDGE_TYPE_COUNT; type++)
		if (counts[type])
			ops_json_member(json, critical_edge_type_name(type), (int64_t)counts[type]);
	ops_json_close(json, '}');
}

/* Uses weights as they are: edges with a negative weight, which count as 0 in the search, contribute it (as in HTA). */
static void critical_answer_write_bounds(struct ops_json_writer *json, const struct critical_path *path,
                                         const int64_t *weights_ns)
{
	struct bound_sum sums[CRITICAL_BOUND_COUNT] = {{0}};

	for (size_t i = 0; i < path->path.count; i++) {
		uint32_t edge = path->path.items[i];
		struct bound_sum *sum = &sums[critical_bound_of(path, &path->edges.items[edge])];

		sum->ns = ops_sum(sum->ns, weights_ns ? weights_ns[edge] : path->edges.items[edge].weight_ns);
		sum->edges++;
	}
	ops_json_member_open(json, "path_duration_by_bound", '{');
	for (int bound = 0; bound < CRITICAL_BOUND_COUNT; bound++) {
		if (!sums[bound].edges)
			continue;
		ops_json_member_open(json, critical_bound_name(bound), '[');
		ops_json_us(json, sums[bound].ns);
		ops_json_integer(json, (int64_t)sums[bound].edges);
		ops_json_close(json, ']');
	}
	ops_json_close(json, '}');
}

static bool critical_answer_write_path(struct ops_json_writer *json, const struct critical_path *path, int64_t first_ns)
{
	uint8_t *met = ops_alloc_zeroed(path->events.count + 1, 1);
	int64_t events = 0;
	uint64_t types[CRITICAL_EDGE_TYPE_COUNT] = {0};

	if (!met)
		return false;
	if (path->path_start != OPS_NONE)
		met[path->path_start / 2] = 1;
	for (size_t i = 0; i < path->path.count; i++) {
		const struct critical_edge *edge = &path->edges.items[path->path.items[i]];

		types[edge->type]++;
		met[edge->to / 2] = 1;
	}
	for (size_t e = 0; e < path->events.count; e++)
		events += met[e];
	ops_free(met);
	ops_json_member(json, "path_nodes", (int64_t)path->path.count + (path->path_start != OPS_NONE));
	ops_json_member(json, "path_events", events);
	ops_json_member_us(json, "path_weight", path->path_weight_ns);
	write_types(json, "path_edges_by_type", types);
	critical_answer_write_bounds(json, path, NULL);
	if (path->path_start != OPS_NONE) {
		ops_json_member_us(json, "path_start_ts", critical_node_ns(path, path->path_start) - first_ns);
		ops_json_member_us(json, "path_end_ts", critical_node_ns(path, path->path_end) - first_ns);
	}
	return true;
}

/* Edges of synchronisation belong to the call that waits, not to the synchronisation event's own nodes. */
static bool write_graph(struct ops_json_writer *json, const struct critical_path *path)
{
	uint64_t types[CRITICAL_EDGE_TYPE_COUNT] = {0};
	uint8_t *joined = ops_alloc_zeroed(path->events.count * 2 + 1, 1);
	int64_t negative = 0, isolated = 0;

	if (!joined)
		return false;
	for (size_t i = 0; i < path->edges.count; i++) {
		const struct critical_edge *edge = &path->edges.items[i];

		types[edge->type]++;
		negative += edge->weight_ns < 0;
		joined[edge->from] = joined[edge->to] = 1;
	}
	for (size_t i = 0; i < path->events.count * 2; i++)
		isolated += !joined[i] && critical_row(path, (uint32_t)i / 2)->kind != OPS_EVENT_SYNC;
	ops_free(joined);
	ops_json_member_bool(json, "success", path->acyclic);
	ops_json_member(json, "clipped_events", (int64_t)path->clipped.count);
	ops_json_member(json, "nodes", (int64_t)path->events.count * 2);
	ops_json_member(json, "edges", (int64_t)path->edges.count);
	write_types(json, "edges_by_type", types);
	ops_json_member(json, "negative_weight_edges", negative);
	ops_json_member(json, "isolated_nodes", isolated);
	return true;
}

/* --- what if --------------------------------------------------------------------------------------------------------- */

/* Returns true if a key of `what_if` matches an edge: by what bounds the edge, its type, or part of its event's
 * name. */
static bool matches_what_if(const struct critical_path *path, const struct critical_edge *edge, struct ops_string key)
{
	struct ops_string name;

	if (ops_string_is(key, critical_bound_name(critical_bound_of(path, edge))) ||
	    ops_string_is(key, critical_edge_type_name(edge->type)))
		return key.size > 0;
	if (edge->event == OPS_NONE)
		return false;
	name = event_name(path->table, critical_row(path, edge->event));
	return ops_string_has_part(name, key);
}

static enum ops_code change_weights(struct analysis_run *run, const struct critical_path *path, struct ops_string changes,
                                    int64_t *weights_ns)
{
	struct ops_json_walk walk = ops_json_walk(changes.bytes, changes.size);
	struct ops_string key, value;
	struct ops_buffer text = {0};
	enum ops_code code = OPS_OK;

	for (size_t e = 0; e < path->edges.count; e++)
		weights_ns[e] = path->edges.items[e].weight_ns;
	while (!code && ops_json_next_member(&walk, &key, &value)) {
		double factor;

		if (!ops_json_parse_number(value, &factor) || !(factor >= 0 && factor <= 1e6)) {
			code = ops_fault(run->error, OPS_INVALID, "'what_if' maps names to factors from 0 on");
			break;
		}
		text.size = 0;
		ops_json_decode(&text, key.bytes, key.size);
		if (text.failed)
			code = ops_fault_memory(run->error);
		for (size_t e = 0; !code && e < path->edges.count; e++)
			if (matches_what_if(path, &path->edges.items[e], (struct ops_string){text.bytes, text.size}) &&
			    weights_ns[e] < INT64_C(1) << 40)
				weights_ns[e] = (int64_t)((double)weights_ns[e] * factor);
	}
	ops_buffer_release(&text);
	return code;
}

/* Writes the longest path with changed weights next to the original. */
static enum ops_code write_what_if(struct analysis_run *run, struct critical_path *path)
{
	struct ops_string changes = analysis_arg(run, "what_if");
	struct ops_json_writer *json = &run->result.json;
	int64_t before_ns = path->path_weight_ns;
	int64_t *weights_ns;
	enum ops_code code;

	if (ops_string_is(changes, "null") || !path->acyclic)
		return OPS_OK;
	if (changes.bytes[0] != '{')
		return ops_fault(run->error, OPS_INVALID, "option 'what_if' must be an object of factors by name");
	weights_ns = ops_realloc_array(NULL, path->edges.count + 1, sizeof(*weights_ns));
	if (!weights_ns)
		return ops_fault_memory(run->error);
	code = change_weights(run, path, changes, weights_ns);
	if (!code && !critical_path_search(path, weights_ns))
		code = ops_fault_memory(run->error);
	if (!code) {
		ops_json_member_open(json, "what_if", '{');
		ops_json_member_us(json, "path_weight", path->path_weight_ns);
		ops_json_member_us(json, "saved", before_ns - path->path_weight_ns);
		critical_answer_write_bounds(json, path, weights_ns);
		ops_json_close(json, '}');
	}
	ops_free(weights_ns);
	return code;
}

/* --- overlay --------------------------------------------------------------------------------------------------------- */

static enum ops_code critical_answer_write_overlay(struct analysis_run *run, const struct request *request,
                                                   const struct critical_path *path)
{
	struct critical_overlay overlay = request->overlay;
	struct ops_buffer written = {0};
	enum ops_code code;

	if (!request->directory.size)
		return OPS_OK;
	overlay.rank = &run->ranks[request->rank];
	overlay.directory = request->directory.bytes;
	code = critical_overlay_write(path, &overlay, &written, run->error);
	if (!code && !request->edges) {
		ops_json_key(&run->result.json, "overlay");
		ops_json_text(&run->result.json, written.bytes, written.size - 1);
	}
	ops_buffer_release(&written);
	return code;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

static enum ops_code critical_answer_answer(struct analysis_run *run, const struct request *request, struct critical_path *path)
{
	struct ops_json_writer *json = &run->result.json;
	enum ops_code code;

	if (request->edges) {
		critical_answer_add_edges(&run->result.table, path);
		return critical_answer_write_overlay(run, request, path);
	}
	ops_json_open(json, '{');
	if (!write_graph(json, path) || !critical_answer_write_path(json, path, run->events.first_ns))
		return ops_fault_memory(run->error);
	code = critical_answer_write_overlay(run, request, path);
	if (!code)
		code = write_what_if(run, path);
	ops_json_close(json, '}');
	return code;
}

enum ops_code analysis_critical_path(struct analysis_run *run)
{
	struct request request;
	struct critical_path path;
	int64_t start_ns, end_ns;
	enum ops_code code = read_request(run, &request);
	const struct event_table *table = code ? NULL : analysis_table(run, request.rank);

	if (!code && !table)
		code = analysis_failed(run);
	if (!code && !critical_answer_find_region(table, &request, &start_ns, &end_ns)) {
		code = fail_region(run, table, &request);
	} else if (!code) {
		code = critical_path_init(&path, table, start_ns, end_ns, &request.options)
		               ? critical_answer_answer(run, &request, &path)
		               : ops_fault_memory(run->error);
		critical_path_release(&path);
	}
	return code;
}
