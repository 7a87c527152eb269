/* SPDX-License-Identifier: Apache-2.0
 *
 * The file format of speedscope (speedscope.app, "sampled" profile): each stack once, with its time as the weight, in order
 * of first occurrence.
 */
#include "write/stack_files.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/sum.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"

struct writer {
	const struct ops_flame *flame;
	struct ops_sink *sink;
	struct ops_buffer text;
	uint32_t *places; /* by name: where it stands in the list of frames, OPS_NONE before it is met */
	ops_name_list names;
};

static void write_text(struct writer *writer)
{
	ops_sink_write(writer->sink, writer->text.bytes, writer->text.size);
	writer->text.size = 0;
}

static void put_frame(struct writer *writer, uint32_t name)
{
	struct ops_function_text function = {.name = ops_frames_text(&writer->flame->frames, name)};
	bool is_python = ops_function_parse(function.name, &function);

	ops_buffer_append_text(&writer->text, "{\"name\":");
	ops_json_string(&writer->text, function.name.bytes, function.name.size);
	if (is_python) {
		ops_buffer_append_text(&writer->text, ",\"file\":");
		ops_json_string(&writer->text, function.file.bytes, function.file.size);
	}
	if (function.line)
		ops_buffer_printf(&writer->text, ",\"line\":%" PRIu32, function.line);
	ops_buffer_append_text(&writer->text, "}");
}

/* Every name that some chain has, once. */
static void put_frames(struct writer *writer)
{
	const struct ops_frames *frames = &writer->flame->frames;
	uint32_t count = 0;

	for (size_t i = 1; i < frames->frames.count; i++) {
		uint32_t name = frames->frames.items[i].name;

		if (writer->places[name] != OPS_NONE)
			continue;
		ops_buffer_append_text(&writer->text, count ? ",\n" : "\n");
		put_frame(writer, name);
		writer->places[name] = count++;
		write_text(writer);
	}
}

static bool put_samples(struct writer *writer)
{
	bool first = true, ok = true;

	for (size_t i = 1; ok && i < writer->flame->self_ns.count; i++) {
		if (writer->flame->self_ns.items[i] <= 0)
			continue;
		ok = ops_list_names(&writer->flame->frames, (uint32_t)i, &writer->names);
		ops_buffer_append_text(&writer->text, first ? "\n[" : ",\n[");
		for (size_t n = 0; ok && n < writer->names.count; n++) {
			ops_buffer_append(&writer->text, ",", n > 0);
			ops_buffer_append_int(&writer->text, writer->places[writer->names.items[n]]);
		}
		ops_buffer_append_text(&writer->text, "]");
		first = false;
		write_text(writer);
	}
	return ok;
}

static void put_weights(struct writer *writer)
{
	bool first = true;

	for (size_t i = 1; i < writer->flame->self_ns.count; i++) {
		if (writer->flame->self_ns.items[i] <= 0)
			continue;
		ops_buffer_append(&writer->text, ",", !first);
		ops_buffer_append_int(&writer->text, writer->flame->self_ns.items[i]);
		first = false;
		write_text(writer);
	}
}

static int64_t sum_of(const struct ops_flame *flame)
{
	int64_t sum = 0;

	for (size_t i = 1; i < flame->self_ns.count; i++)
		if (flame->self_ns.items[i] > 0)
			sum = ops_sum(sum, flame->self_ns.items[i]);
	return sum;
}

bool ops_put_speedscope(const struct ops_flame *flame, struct ops_sink *sink)
{
	struct writer writer = {.flame = flame, .sink = sink};
	size_t count = ops_frames_name_count(&flame->frames) + 1;
	bool ok;

	writer.places = ops_realloc_array(NULL, count, sizeof(*writer.places));
	if (!writer.places)
		return false;
	memset(writer.places, 0xff, count * sizeof(*writer.places));
	ops_buffer_append_text(&writer.text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	                                     "\"exporter\":\"opstrobe " OPS_VERSION "\",\n\"shared\":{\"frames\":[");
	put_frames(&writer);
	ops_buffer_printf(&writer.text,
	                  "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"stacks\",\"unit\":\"nanoseconds\",\"startValue\":0,"
	                  "\"endValue\":%" PRId64 ",\n\"samples\":[",
	                  sum_of(flame));
	write_text(&writer);
	ok = put_samples(&writer);
	ops_buffer_append_text(&writer.text, "],\n\"weights\":[");
	write_text(&writer);
	put_weights(&writer);
	ops_buffer_append_text(&writer.text, "]}]}\n");
	write_text(&writer);
	ok = ok && !writer.text.failed;
	ops_buffer_release(&writer.text);
	OPS_ARRAY_RELEASE(&writer.names);
	ops_free(writer.places);
	return ok;
}
