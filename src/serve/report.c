/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces as one HTML file: the viewer, and the replies that it would request from a server, compressed and in base64. So no text
 * of a trace is in the page in plain form. The timeline is included down to the level of zoom that fits; several traces share the
 * space for it.
 *
 *     <script type="application/gzip" data-reply="traces/ID/info">…</script>
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/internal/timeline.h>
#include <opstrobe/serve.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/json_walk.h"
#include "base/sink.h"
#include "base/text.h"
#include "serve/assets.h"

#define TILES_A_REPLY 64u
#define STRINGS_A_REPLY 1000u
#define TILE_HEADER 32u
#define TILES_BYTES_MAX (4u << 20) /* for all timelines, before compression to about a third */
#define ID_MAX 64u

/* The initial requests of the views, with addresses as web/src/data/source.ts writes them: parameters by name, commas as %2C. */
static const char *const requests[] = {
	"info",
	"advice",
	"modules",
	"lines",
	"timeline/critical-path",
	"stacks?metric=self_cpu",
	"stacks?metric=self_device",
	"stacks?metric=sampled",
	"views?parts=trace_events%2Clost_events%2Cprofiler_start_ts%2Cflags%2Cdevices%2Cqueued_before%2Cgraph_work%2Csteps%2Cgpus%2Ctensor_cores",
	"views?parts=flags%2Csteps%2Coperators%2Coperators_by_input_shape%2Ccall_stacks",
	"views?parts=flags%2Csteps%2Ctensor_cores%2Ckernels%2Ckernels_by_op%2Ckernels_by_category",
	"roofline?by=operator",
	"roofline?by=shape",
	"roofline?by=kernel",
	"views?parts=memory",
	"analyses/idle_time_breakdown",
	"analyses/key_averages",
};

/* Those of views that open on the steps if these are only part of the trace: "steps=0%3A4" follows. */
static const char *const step_requests[] = {
	"modules",
	"lines",
	"stacks?metric=self_cpu",
	"stacks?metric=self_device",
	"stacks?metric=sampled",
	"views?parts=flags%2Csteps%2Coperators%2Coperators_by_input_shape%2Ccall_stacks",
	"views?parts=flags%2Csteps%2Ctensor_cores%2Ckernels%2Ckernels_by_op%2Ckernels_by_category",
	"roofline?by=operator",
	"roofline?by=shape",
	"roofline?by=kernel",
	"memory",
	"views?parts=memory",
};

/* The list of allocations of the memory view. */
#define BLOCKS_SHOWN "&limit=10000"

/* Requests for the traces of a run together. */
static const char *const run_requests[] = {"advice", "distributed", "analyses/idle_time_breakdown"};

struct report {
	struct ops_api *api;
	struct ops_sink *sink;
	struct ops_buffer target;  /* scratch */
	struct ops_buffer packed;  /* scratch */
	struct ops_reply list;     /* of the traces */
	size_t trace_count;
	/* The trace that is being written. */
	char id[ID_MAX];
	struct ops_intern names;   /* numbers of texts that tiles refer to, as bytes */
	struct ops_reply timeline;
	char opening[64];          /* "steps=5%3A10": the steps that views open on; "": the complete trace */
	size_t tile_bytes;         /* total so far */
};

/* --- elements ------------------------------------------------------------------------------------------------------- */

static bool report_pack(struct ops_buffer *packed, const char *bytes, size_t size)
{
	z_stream stream = {.next_in = (unsigned char *)bytes, .avail_in = (uInt)size};
	size_t most = compressBound((uLong)size) + 32;
	char *room;
	bool done;

	packed->size = 0;
	room = size < UINT32_MAX ? ops_buffer_room(packed, most) : NULL;
	if (!room || deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	stream.next_out = (unsigned char *)room;
	stream.avail_out = (uInt)most;
	done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
	packed->size = stream.total_out;
	deflateEnd(&stream);
	return done;
}

static void write_base64(struct ops_sink *sink, const unsigned char *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
		                 (left > 2 ? bytes[i + 2] : 0);
		char text[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
		                left > 2 ? digits[group & 63] : '='};

		ops_sink_write(sink, text, sizeof(text));
	}
}

static enum ops_code write_element(struct report *report, const char *address, const struct ops_reply *reply,
                                   struct ops_error *error)
{
	static const char open[] = "<script type=\"application/gzip\" data-reply=\"", close[] = "</script>\n";

	if (!report_pack(&report->packed, reply->body, reply->size))
		return ops_fault_memory(error);
	ops_sink_write(report->sink, open, sizeof(open) - 1);
	for (const char *at = address; *at; at++)
		ops_sink_write(report->sink, *at == '&' ? "&amp;" : at, *at == '&' ? 5 : 1);
	ops_sink_write(report->sink, "\">", 2);
	write_base64(report->sink, (const unsigned char *)report->packed.bytes, report->packed.size);
	ops_sink_write(report->sink, close, sizeof(close) - 1);
	return OPS_OK;
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

/* Gets the reply to "/api/v1/" and an address, which has only plain characters. */
static enum ops_code report_get(struct report *report, const char *address, struct ops_reply *ret_reply,
                                struct ops_error *error)
{
	struct ops_buffer *target = &report->target;

	target->size = 0;
	ops_buffer_append_text(target, "/api/v1/");
	ops_buffer_append(target, address, strlen(address) + 1);
	return target->failed ? ops_fault_memory(error) : ops_api_get(report->api, target->bytes, ret_reply, error);
}

/* Adds a reply to the page. If the trace lacks the data, no reply is added, and the viewer says so. */
static enum ops_code embed(struct report *report, const char *address, struct ops_error *error)
{
	struct ops_reply reply;
	enum ops_code code = report_get(report, address, &reply, error);

	if (code)
		return code;
	if (reply.status == 200)
		code = write_element(report, address, &reply, error);
	ops_reply_release(&reply);
	return code;
}

static struct ops_json_walk walk_traces(const struct report *report)
{
	struct ops_string traces;

	if (!ops_json_find_member((struct ops_string){report->list.body, report->list.size}, "traces", &traces))
		return (struct ops_json_walk){0};
	return ops_json_walk(traces.bytes, traces.size);
}

static enum ops_code list_traces(struct report *report, const char *path, struct ops_error *error)
{
	enum ops_code code = report_get(report, "traces", &report->list, error);
	struct ops_json_walk list;
	struct ops_string entry;

	if (code)
		return code;
	list = walk_traces(report);
	while (ops_json_next_element(&list, &entry))
		report->trace_count++;
	return report->trace_count ? OPS_OK : ops_fault(error, OPS_INVALID, "'%s' holds no trace", path);
}

/* Returns the id of a trace, without quotes. */
static struct ops_string id_of(struct ops_string entry)
{
	struct ops_string id = {"\"\"", 2};

	ops_json_find_member(entry, "id", &id);
	return (struct ops_string){id.bytes + 1, id.size - 2};
}

/* Reads a trace of the list. If a file is not a trace, the error is that of its reader. */
static enum ops_code open_trace(struct report *report, struct ops_string entry, struct ops_error *error)
{
	struct ops_string id = id_of(entry), fault, message;
	char address[ID_MAX + 32];
	enum ops_code code;

	snprintf(report->id, sizeof(report->id), "%.*s", (int)id.size, id.bytes);
	snprintf(address, sizeof(address), "traces/%s/timeline", report->id);
	code = report_get(report, address, &report->timeline, error);
	if (code || report->timeline.status == 200)
		return code;
	if (ops_json_find_member((struct ops_string){report->timeline.body, report->timeline.size}, "error", &fault) &&
	    ops_json_find_member(fault, "message", &message))
		return ops_fault(error, OPS_CORRUPT, "%.*s", (int)message.size - 2, message.bytes + 1);
	return ops_fault(error, OPS_CORRUPT, "trace '%s' cannot be read", report->id);
}

/* Releases the trace before the next one. */
static void close_trace(struct report *report)
{
	ops_reply_release(&report->timeline);
	ops_intern_release(&report->names);
	report->opening[0] = '\0';
	report->tile_bytes = 0;
}

/* --- the timeline ----------------------------------------------------------------------------------------------------- */

/* A list of tiles: "TRACK.LEVEL.INDEX.BAND" joined by commas, as in an address. */
struct tile_list {
	struct ops_buffer address;
	const char *route; /* "counters?counters=" */
	unsigned count;
};

struct level {
	OPS_ARRAY(struct ops_reply) replies;
	OPS_ARRAY(char *) addresses;
	size_t bytes;
};

/* Returns the limit for one timeline. */
static size_t tile_bytes_max(const struct report *report)
{
	return TILES_BYTES_MAX / report->trace_count;
}

static void level_release(struct level *level)
{
	for (size_t i = 0; i < level->replies.count; i++)
		ops_reply_release(&level->replies.items[i]);
	for (size_t i = 0; i < level->addresses.count; i++)
		ops_free(level->addresses.items[i]);
	OPS_ARRAY_RELEASE(&level->replies);
	OPS_ARRAY_RELEASE(&level->addresses);
}

/* Fetches the tiles of the list and empties it. */
static enum ops_code fetch_list(struct report *report, struct tile_list *list, struct level *level, struct ops_error *error)
{
	struct ops_reply reply;
	enum ops_code code = OPS_OK;

	if (!list->count)
		return OPS_OK;
	ops_buffer_append(&list->address, "", 1);
	if (list->address.failed || !OPS_ARRAY_RESERVE(&level->replies, 1) || !OPS_ARRAY_RESERVE(&level->addresses, 1))
		return ops_fault_memory(error);
	code = report_get(report, list->address.bytes, &reply, error);
	if (code)
		return code;
	level->bytes += reply.size;
	level->replies.items[level->replies.count++] = reply;
	level->addresses.items[level->addresses.count++] = list->address.bytes;
	list->address = (struct ops_buffer){0};
	list->count = 0;
	return OPS_OK;
}

static enum ops_code add_tile(struct report *report, struct tile_list *list, struct level *level, int64_t track,
                              unsigned zoom, int64_t index, int64_t band, struct ops_error *error)
{
	if (!list->count)
		ops_buffer_printf(&list->address, "traces/%s/timeline/%s", report->id, list->route);
	ops_buffer_printf(&list->address, "%s%" PRId64 ".%u.%" PRId64, list->count ? "%2C" : "", track, zoom, index);
	if (band)
		ops_buffer_printf(&list->address, ".%" PRId64, band);
	return ++list->count == TILES_A_REPLY ? fetch_list(report, list, level, error) : OPS_OK;
}

/* Fetches all tiles of one level for the entries of a list, tracks or counters. Stops early if they are too large. */
static enum ops_code fetch_level(struct report *report, const char *member, const char *route, unsigned zoom,
                                 struct level *level, struct ops_error *error)
{
	struct ops_string timeline = {report->timeline.body, report->timeline.size}, list, entry;
	struct tile_list tiles = {.route = route};
	struct ops_json_walk entries = {0};
	int64_t duration_ns = ops_json_integer_of(timeline, "duration_ns", 0);
	enum ops_code code = OPS_OK;

	if (ops_json_find_member(timeline, member, &list))
		entries = ops_json_walk(list.bytes, list.size);
	while (!code && entries.at && ops_json_next_element(&entries, &entry)) {
		bool is_track = ops_json_integer_of(entry, "folded_depths", 0) > 0;
		int64_t bands = is_track ? (ops_json_integer_of(entry, "folded_depths", 0) - 1) / OPS_TILE_BAND_DEPTHS + 1 : 1;
		int64_t from = is_track ? ops_json_integer_of(entry, "start_ns", 0) >> zoom : 0;
		int64_t to = (is_track ? ops_json_integer_of(entry, "end_ns", 0) : duration_ns) >> zoom;

		for (int64_t index = from; !code && index <= to && level->bytes <= tile_bytes_max(report); index++)
			for (int64_t band = 0; !code && band < bands; band++)
				code = add_tile(report, &tiles, level, ops_json_integer_of(entry, "id", 0), zoom, index, band, error);
	}
	if (!code)
		code = fetch_list(report, &tiles, level, error);
	ops_buffer_release(&tiles.address);
	return code;
}

/* Collects the numbers of the texts in a reply with tiles. */
static bool note_names(struct report *report, const struct ops_reply *reply)
{
	for (size_t offset = 0; offset + TILE_HEADER <= reply->size;) {
		uint32_t size, count, name;

		memcpy(&size, reply->body + offset + 4, sizeof(size));
		memcpy(&count, reply->body + offset + 28, sizeof(count));
		for (uint32_t i = 0; i < count; i++) {
			memcpy(&name, reply->body + offset + TILE_HEADER + (size_t)24 * count + (size_t)4 * i, sizeof(name));
			if (ops_intern_add(&report->names, &name, sizeof(name)) == OPS_INTERN_NONE)
				return false;
		}
		offset += size;
	}
	return true;
}

static enum ops_code write_level(struct report *report, const struct level *level, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < level->replies.count; i++) {
		const struct ops_reply *reply = &level->replies.items[i];

		if (reply->status != 200)
			continue;
		if (strcmp(reply->type, "application/json") != 0 && !note_names(report, reply))
			return ops_fault_memory(error);
		code = write_element(report, level->addresses.items[i], reply, error);
	}
	return code;
}

/* Embeds one level if it fits into the remaining space. */
static enum ops_code embed_level(struct report *report, unsigned zoom, bool *ret_fits, struct ops_error *error)
{
	struct level level = {0};
	enum ops_code code = fetch_level(report, "tracks", "tiles?fold=true&tiles=", zoom, &level, error);

	if (!code)
		code = fetch_level(report, "counters", "counters?counters=", zoom, &level, error);
	*ret_fits = report->tile_bytes + level.bytes <= tile_bytes_max(report);
	if (!code && *ret_fits) {
		code = write_level(report, &level, error);
		report->tile_bytes += level.bytes;
	}
	level_release(&level);
	return code;
}

static enum ops_code embed_names(struct report *report, struct ops_error *error)
{
	struct ops_buffer address = {0};
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < report->names.count; i++) {
		uint32_t name;

		if (i % STRINGS_A_REPLY == 0) {
			address.size = 0;
			ops_buffer_printf(&address, "traces/%s/strings?ids=", report->id);
		}
		memcpy(&name, report->names.entries[i].bytes, sizeof(name));
		ops_buffer_printf(&address, "%s%" PRIu32, i % STRINGS_A_REPLY ? "%2C" : "", name);
		if (i + 1 < report->names.count && (i + 1) % STRINGS_A_REPLY)
			continue;
		ops_buffer_append(&address, "", 1);
		code = address.failed ? ops_fault_memory(error) : embed(report, address.bytes, error);
	}
	ops_buffer_release(&address);
	return code;
}

/* Embeds levels from the complete trace down, as far as they fit. The first level is always included. */
static enum ops_code embed_timeline(struct report *report, struct ops_error *error)
{
	unsigned zoom = (unsigned)ops_json_integer_of((struct ops_string){report->timeline.body, report->timeline.size},
	                                         "level_max", 0);
	enum ops_code code = OPS_OK;
	bool fits = true;

	for (; !code && fits && zoom >= OPS_TILE_LEVEL_MIN; zoom--)
		code = embed_level(report, zoom, &fits, error);
	return code ? code : embed_names(report, error);
}

/* --- the steps -------------------------------------------------------------------------------------------------------- */

static enum ops_code embed_range(struct report *report, int64_t from_ns, int64_t to_ns, struct ops_error *error)
{
	char address[ID_MAX + 128];

	snprintf(address, sizeof(address), "traces/%s/timeline/range?from=%" PRId64 "&limit=1000&to=%" PRId64, report->id, from_ns, to_ns);
	return embed(report, address, error);
}

/* Embeds what the views show that open on the steps, if these are only part of the trace. */
static enum ops_code embed_steps(struct report *report, struct ops_error *error)
{
	struct ops_string opening, steps;
	char address[ID_MAX + 256];
	enum ops_code code;
	const char *colon;
	int first;

	if (!ops_json_find_typed((struct ops_string){report->timeline.body, report->timeline.size}, "opening", '{', &opening) ||
	    !ops_json_find_typed(opening, "steps", '"', &steps))
		return OPS_OK;
	steps = (struct ops_string){steps.bytes + 1, steps.size - 2};
	colon = memchr(steps.bytes, ':', steps.size);
	first = (int)(colon ? (size_t)(colon - steps.bytes) : steps.size);
	snprintf(report->opening, sizeof(report->opening), "steps=%.*s%s%.*s", first, steps.bytes, colon ? "%3A" : "",
	         colon ? (int)steps.size - first - 1 : 0, colon ? colon + 1 : "");
	code = embed_range(report, ops_json_integer_of(opening, "from_ns", 0), ops_json_integer_of(opening, "to_ns", 0), error);
	for (size_t i = 0; !code && i < sizeof(step_requests) / sizeof(step_requests[0]); i++) {
		snprintf(address, sizeof(address), "traces/%s/%s%c%s", report->id, step_requests[i], strchr(step_requests[i], '?') ? '&' : '?', report->opening);
		code = embed(report, address, error);
	}
	return code;
}

/* --- page ----------------------------------------------------------------------------------------------------------- */

/* Adds a reply about the memory of a device, whose name ("cpu", "cuda:0") is in quotes. In an address the colon is %3A. */
static enum ops_code embed_device(struct report *report, const char *route, struct ops_string name, const char *rest,
                                  struct ops_error *error)
{
	const char *colon = memchr(name.bytes, ':', name.size);
	const char *end = name.bytes + name.size - 1;
	char address[ID_MAX + 128];

	snprintf(address, sizeof(address), "traces/%s/memory/%s?device=%.*s%s%.*s%s", report->id, route,
	         (int)((colon ? colon : end) - name.bytes) - 1, name.bytes + 1, colon ? "%3A" : "",
	         colon ? (int)(end - colon) - 1 : 0, colon ? colon + 1 : "", rest);
	return embed(report, address, error);
}

/* Embeds the devices, and for each its curve and its allocations, of the complete trace and of the steps that views open on. */
static enum ops_code embed_memory(struct report *report, struct ops_error *error)
{
	struct ops_string devices, entry, name;
	struct ops_json_walk list;
	struct ops_reply reply;
	char address[ID_MAX + 128], curve[96], blocks[96];
	enum ops_code code;

	snprintf(curve, sizeof(curve), "&%s", report->opening);
	snprintf(blocks, sizeof(blocks), BLOCKS_SHOWN "&%s", report->opening);
	snprintf(address, sizeof(address), "traces/%s/memory", report->id);
	code = report_get(report, address, &reply, error);
	if (code)
		return code;
	if (reply.status == 200 && ops_json_find_member((struct ops_string){reply.body, reply.size}, "devices", &devices)) {
		code = write_element(report, address, &reply, error);
		list = ops_json_walk(devices.bytes, devices.size);
		while (!code && ops_json_next_element(&list, &entry) && ops_json_find_member(entry, "device", &name)) {
			code = embed_device(report, "curve", name, "", error);
			if (!code)
				code = embed_device(report, "blocks", name, BLOCKS_SHOWN, error);
			if (!code && report->opening[0])
				code = embed_device(report, "curve", name, curve, error);
			if (!code && report->opening[0])
				code = embed_device(report, "blocks", name, blocks, error);
		}
	}
	ops_reply_release(&reply);
	return code;
}

static enum ops_code embed_trace(struct report *report, struct ops_string entry, struct ops_error *error)
{
	char address[ID_MAX + 256];
	enum ops_code code = open_trace(report, entry, error);

	snprintf(address, sizeof(address), "traces/%s/timeline", report->id);
	if (!code)
		code = write_element(report, address, &report->timeline, error);
	if (!code)
		code = embed_range(report, 0, ops_json_integer_of((struct ops_string){report->timeline.body, report->timeline.size}, "duration_ns", 0), error);
	if (!code)
		code = embed_steps(report, error);
	for (size_t i = 0; !code && i < sizeof(requests) / sizeof(requests[0]); i++) {
		snprintf(address, sizeof(address), "traces/%s/%s", report->id, requests[i]);
		code = embed(report, address, error);
	}
	if (!code && report->trace_count > 1) { /* for the list of traces; a single trace is opened at once */
		struct ops_reply summary;

		snprintf(address, sizeof(address), "traces/%s/summary", report->id);
		code = report_get(report, address, &summary, error);
		if (!code)
			ops_reply_release(&summary);
	}
	if (!code)
		code = embed_memory(report, error);
	if (!code)
		code = embed_timeline(report, error);
	close_trace(report);
	return code;
}

static bool same_member(struct ops_string left, struct ops_string right, const char *name)
{
	struct ops_string a, b;

	return ops_json_find_member(left, name, &a) && ops_json_find_member(right, name, &b) && ops_string_equals(a, b);
}

/* Writes the ids of the traces that ran together with a trace, as web/src/views/runs.ts does: those of its job, including itself.
 * Returns their number, or 0 if the trace is not the first of them. */
static size_t report_write_run(const struct report *report, struct ops_string of, struct ops_buffer *ids)
{
	struct ops_json_walk list = walk_traces(report);
	struct ops_string entry;
	size_t count = 0;

	while (ops_json_next_element(&list, &entry)) {
		if (!same_member(entry, of, "job"))
			continue;
		if (!count && entry.bytes != of.bytes)
			return 0;
		ops_buffer_printf(ids, "%s%.*s", count++ ? "," : "", (int)id_of(entry).size, id_of(entry).bytes);
	}
	return count;
}

/* Embeds the common replies for the traces of each run. */
static enum ops_code embed_runs(struct report *report, struct ops_error *error)
{
	struct ops_json_walk list = walk_traces(report);
	struct ops_buffer ids = {0}, address = {0};
	struct ops_string entry;
	enum ops_code code = OPS_OK;

	while (!code && ops_json_next_element(&list, &entry)) {
		size_t count;

		ids.size = 0;
		count = report_write_run(report, entry, &ids);
		for (size_t i = 0; !code && count > 1 && i < sizeof(run_requests) / sizeof(run_requests[0]); i++) {
			address.size = 0;
			ops_buffer_printf(&address, "traces/%.*s/%s", (int)ids.size, ids.bytes, run_requests[i]);
			ops_buffer_append(&address, "", 1);
			code = ids.failed || address.failed ? ops_fault_memory(error) : embed(report, address.bytes, error);
		}
	}
	ops_buffer_release(&ids);
	ops_buffer_release(&address);
	return code;
}

static enum ops_code embed_all(struct report *report, struct ops_error *error)
{
	struct ops_json_walk list = walk_traces(report);
	struct ops_string entry;
	enum ops_code code = OPS_OK;

	while (!code && ops_json_next_element(&list, &entry))
		code = embed_trace(report, entry, error);
	if (code)
		return code;
	ops_reply_release(&report->list); /* their jobs are known after they have been read */
	code = report_get(report, "traces?summaries=known", &report->list, error);
	if (!code)
		code = write_element(report, "traces", &report->list, error);
	if (!code)
		code = embed_runs(report, error);
	return code ? code : embed(report, "analyses", error);
}

/* The page from the build has one mark for the replies. */
static enum ops_code report_write_page(struct report *report, struct ops_error *error)
{
	static const char mark[] = "<!--replies-->";
	const struct asset *asset = assets_find("report.html");
	char *page = asset ? asset_unpack(asset) : NULL;
	const char *at = page ? strstr(page, mark) : NULL;
	enum ops_code code;

	if (asset && !page)
		return ops_fault_memory(error);
	if (!at) { /* if the build could not create the viewer, the page is empty or missing */
		ops_free(page);
		return ops_fault(error, OPS_UNSUPPORTED, "this opstrobe was built without its viewer");
	}
	ops_sink_write(report->sink, page, (size_t)(at - page));
	code = embed_all(report, error);
	at += sizeof(mark) - 1;
	ops_sink_write(report->sink, at, strlen(at));
	ops_free(page);
	return code;
}

static void report_release(struct report *report)
{
	close_trace(report);
	ops_reply_release(&report->list);
	ops_buffer_release(&report->target);
	ops_buffer_release(&report->packed);
	ops_api_free(report->api);
}

enum ops_code ops_report_write(const char *traces, const char *path,
                               void (*on_diagnostic)(const struct ops_diagnostic *diagnostic), struct ops_error *error)
{
	struct ops_api_options options = {.paths = &traces, .path_count = 1, .on_diagnostic = on_diagnostic,
	                                  .request_memory_bytes = UINT64_MAX, .request_seconds = INFINITY};
	struct report report = {0};
	enum ops_code code = ops_api_new(&options, &report.api, error);

	if (!code)
		code = list_traces(&report, traces, error);
	if (!code)
		code = ops_sink_open_file(path, 0, &report.sink, error);
	if (!code) {
		code = report_write_page(&report, error);
		if (code)
			ops_sink_abandon(report.sink);
		else
			code = ops_sink_close(report.sink, error);
	}
	report_release(&report);
	return code ? ops_fault_context(error, code, "cannot write the report '%s'", path) : OPS_OK;
}
