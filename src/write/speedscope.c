/* SPDX-License-Identifier: Apache-2.0
 *
 * The file format of speedscope (speedscope.app, "evented" profile): a walk through all stacks that opens each frame at its first
 * stack and closes it after its last, so that the size of the file depends on the number of frames and not on their depth.
 *
 *     main 200 ns ─▶ step 90 ns      O main 0, O step 200, C step 290, C main 290
 */
#include "write/stack_files.h"

#include <inttypes.h>
#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/version.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/sum.h"

struct writer {
	const struct ops_flame *flame;
	struct ops_sink *sink;
	struct ops_buffer text;
	uint32_t *places; /* by name: its index in the list of frames; OPS_NONE until used */
	uint32_t *inner; /* by chain: the first chain that it calls, 0: none; without chains that took no time */
	uint32_t *next;  /* by chain: the next one with the same caller, 0: none */
	int64_t now_ns;
};

static void speedscope_write_text(struct writer *writer)
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

/* Writes every name that a chain has, once. */
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
		speedscope_write_text(writer);
	}
}

static int64_t speedscope_self_of(const struct writer *writer, size_t chain)
{
	int64_t self_ns = writer->flame->self_ns.items[chain];

	return self_ns > 0 ? self_ns : 0;
}

/* Links the chains to write, in order. */
static void speedscope_link_chains(struct writer *writer)
{
	const struct ops_frames *frames = &writer->flame->frames;

	for (size_t i = frames->frames.count; i-- > 1;) { /* callees have higher numbers than their callers */
		uint32_t caller = frames->frames.items[i].caller;

		if (!speedscope_self_of(writer, i) && !writer->inner[i])
			continue;
		writer->next[i] = writer->inner[caller];
		writer->inner[caller] = (uint32_t)i;
	}
}

static void speedscope_put_event(struct writer *writer, uint32_t chain, const char *type)
{
	uint32_t name = writer->flame->frames.frames.items[chain].name;

	ops_buffer_printf(&writer->text, "%s{\"type\":\"%s\",\"frame\":%" PRIu32 ",\"at\":%" PRId64 "}",
	                  chain == writer->inner[0] && *type == 'O' ? "\n" : ",\n", type, writer->places[name],
	                  writer->now_ns);
	speedscope_write_text(writer);
}

/* Closes a chain and the chains around it that end with it. Returns the one to open next, 0: none. */
static uint32_t close_chain(struct writer *writer, uint32_t chain)
{
	for (; chain; chain = writer->flame->frames.frames.items[chain].caller) {
		speedscope_put_event(writer, chain, "C");
		if (writer->next[chain])
			return writer->next[chain];
	}
	return 0;
}

static void put_events(struct writer *writer)
{
	uint32_t chain = writer->inner[0];

	while (chain) {
		speedscope_put_event(writer, chain, "O");
		writer->now_ns = ops_sum(writer->now_ns, speedscope_self_of(writer, chain));
		chain = writer->inner[chain] ? writer->inner[chain] : close_chain(writer, chain);
	}
}

static int64_t speedscope_sum_of(const struct writer *writer)
{
	int64_t sum = 0;

	for (size_t i = 1; i < writer->flame->self_ns.count; i++)
		sum = ops_sum(sum, speedscope_self_of(writer, i));
	return sum;
}

static void put_all(struct writer *writer)
{
	ops_buffer_append_text(&writer->text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	                                      "\"exporter\":\"opstrobe " OPS_VERSION "\",\n\"shared\":{\"frames\":[");
	put_frames(writer);
	ops_buffer_printf(
		&writer->text,
		"]},\n\"profiles\":[{\"type\":\"evented\",\"name\":\"stacks\",\"unit\":\"nanoseconds\",\"startValue\":0,"
		"\"endValue\":%" PRId64 ",\n\"events\":[",
		speedscope_sum_of(writer));
	speedscope_write_text(writer);
	put_events(writer);
	ops_buffer_append_text(&writer->text, "]}]}\n");
	speedscope_write_text(writer);
}

bool ops_put_speedscope(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut)
{
	struct writer writer = {.flame = flame, .sink = sink};
	size_t names = ops_frames_name_count(&flame->frames) + 1, chains = flame->frames.frames.count;
	bool ok;

	(void)cut;
	writer.places = ops_realloc_array(NULL, names, sizeof(*writer.places));
	writer.inner = ops_alloc_zeroed(chains, sizeof(*writer.inner));
	writer.next = ops_alloc_zeroed(chains, sizeof(*writer.next));
	ok = writer.places && writer.inner && writer.next;
	if (ok) {
		memset(writer.places, 0xff, names * sizeof(*writer.places));
		speedscope_link_chains(&writer);
		put_all(&writer);
		ok = !writer.text.failed;
	}
	ops_buffer_release(&writer.text);
	ops_free(writer.places);
	ops_free(writer.inner);
	ops_free(writer.next);
	return ok;
}
