/* SPDX-License-Identifier: Apache-2.0
 *
 * See transcode.h.
 */
#include "read/transcode.h"

#include <string.h>

#include "base/fault.h"
#include "base/json.h"

struct made_source {
	struct ops_source source; /* the first member of every source */
	struct ops_reading *reading;
	struct ops_transcoder *transcoder;
	struct ops_buffer text;
	size_t given; /* number of bytes of the text that were returned */
};

static enum ops_code made_source_read(struct ops_source *source, char *out, size_t room, size_t *ret_size, struct ops_error *error)
{
	struct made_source *made = (struct made_source *)(void *)source;
	enum ops_code code = OPS_OK;

	if (made->given == made->text.size) {
		made->given = made->text.size = 0;
		code = made->transcoder->next(made->transcoder, &made->text);
		if (!code && made->text.failed)
			code = ops_fault_memory(error);
	}
	source->done = __atomic_load_n(&made->reading->source->done, __ATOMIC_RELAXED);
	source->total = made->reading->source->total;
	source->flags = made->reading->source->flags;
	*ret_size = made->text.size - made->given < room ? made->text.size - made->given : room;
	if (code)
		*ret_size = 0;
	if (*ret_size)
		memcpy(out, made->text.bytes + made->given, *ret_size);
	made->given += *ret_size;
	return code;
}

/* The source is not on the heap. */
static void made_source_close(struct ops_source *source)
{
	(void)source;
}

static void put_key(struct ops_buffer *out, const char *key)
{
	ops_buffer_printf(out, "%s\"%s\":", out->size && out->bytes[out->size - 1] != '{' ? "," : "", key);
}

void ops_put_text_member(struct ops_buffer *out, const char *key, struct ops_string text)
{
	put_key(out, key);
	ops_json_string(out, text.bytes, text.size);
}

void ops_put_time_member(struct ops_buffer *out, const char *key, int64_t ns)
{
	char text[32];

	put_key(out, key);
	ops_buffer_append(out, text, (size_t)(ops_json_us_to(text, ns) - text));
}

enum ops_code ops_read_transcoded(struct ops_reading *reading, struct ops_transcoder *transcoder, struct ops_trace **ret_trace)
{
	static const struct ops_source_type type = {made_source_read, made_source_close};
	struct made_source made = {.source = {.type = &type}, .reading = reading, .transcoder = transcoder};
	struct ops_reading text = {.source = &made.source, .builder = reading->builder, .options = reading->options,
	                           .error = reading->error};
	enum ops_code code = ops_window_open(&text.window, &text.source, reading->error);

	if (!code)
		code = ops_reading_more(&text);
	if (!code)
		code = ops_read_kineto(&text, ret_trace);
	reading->builder = text.builder;
	ops_window_release(&text.window);
	ops_buffer_release(&made.text);
	return code;
}
