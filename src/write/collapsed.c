/* SPDX-License-Identifier: Apache-2.0
 *
 * Brendan Gregg's collapsed stacks, what flamegraph.pl and many viewers read: a line a stack, its frames from the outermost
 * on, and its time in nanoseconds. The format's numbers are whole ones, of which microseconds would drop too much.
 *
 *     train.py(3):_main;train.py(9):_step;aten::mm 25130
 *
 * What would break a line up is spelled as torch does it: '_' for a space, a semicolon, a control character. Bytes that are
 * no UTF-8 become \xff.
 */
#include "write/stack_files.h"

#include <string.h>

#include "analyze/sum.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/utf8.h"

static void spell(struct ops_buffer *out, struct ops_string name)
{
	const char *at = name.bytes, *end = name.bytes + name.size;

	out->size = 0;
	while (at < end) {
		size_t length = ops_utf8_length(at, end);

		if (length == 0)
			ops_buffer_printf(out, "\\x%02x", (uint8_t)*at);
		else if (length == 1 && ((uint8_t)*at <= ' ' || *at == ';' || *at == 0x7f))
			ops_buffer_append(out, "_", 1);
		else
			ops_buffer_append(out, at, length);
		at += length ? length : 1;
	}
	if (out->size == 0)
		ops_buffer_append(out, "_", 1);
}

/* The flame's chains with spelled names, and their sums: names that are spelled the same are the same. */
struct spelled {
	struct ops_frames frames;
	int64_t *self_ns; /* by chain */
	uint32_t *names;  /* by name of the flame: the spelled one, OPS_NONE before it is met */
	uint32_t *chains; /* by chain of the flame */
};

static void spelled_release(struct spelled *s)
{
	ops_frames_release(&s->frames);
	ops_free(s->self_ns);
	ops_free(s->names);
	ops_free(s->chains);
}

/* False when memory is out. */
static bool spelled_init(struct spelled *s, const struct ops_flame *flame)
{
	size_t count = flame->frames.frames.count, names = ops_frames_name_count(&flame->frames);
	struct ops_buffer text = {0};
	bool ok;

	s->self_ns = ops_alloc_zeroed(count, sizeof(*s->self_ns));
	s->names = ops_realloc_array(NULL, names + 1, sizeof(*s->names));
	s->chains = ops_alloc_zeroed(count, sizeof(*s->chains));
	ok = ops_frames_init(&s->frames, flame->frames.trace) && s->self_ns && s->names && s->chains;
	if (ok)
		memset(s->names, 0xff, (names + 1) * sizeof(*s->names));
	for (size_t i = 1; ok && i < count; i++) {
		const struct ops_frame *frame = &flame->frames.frames.items[i];
		uint32_t *name = &s->names[frame->name];

		if (*name == OPS_NONE) {
			spell(&text, ops_frames_text(&flame->frames, frame->name));
			if (!text.failed)
				*name = ops_frames_name(&s->frames, (struct ops_string){text.bytes, text.size});
		}
		s->chains[i] = ops_frames_add(&s->frames, s->chains[frame->caller], *name);
		ok = s->chains[i] != OPS_NONE;
		if (ok)
			s->self_ns[s->chains[i]] = ops_sum(s->self_ns[s->chains[i]], flame->self_ns.items[i]);
	}
	ops_buffer_release(&text);
	return ok;
}

bool ops_put_collapsed(const struct ops_flame *flame, struct ops_sink *sink)
{
	struct spelled s = {0};
	ops_name_list names = {0};
	bool ok = spelled_init(&s, flame);

	for (size_t i = 1; ok && i < s.frames.frames.count; i++) {
		char number[24] = " ", *end;

		if (s.self_ns[i] <= 0)
			continue;
		ok = ops_list_names(&s.frames, (uint32_t)i, &names);
		for (size_t n = 0; ok && n < names.count; n++) {
			struct ops_string text = ops_frames_text(&s.frames, names.items[n]);

			ops_sink_write(sink, ";", n > 0);
			ops_sink_write(sink, text.bytes, text.size);
		}
		end = ops_json_int_to(number + 1, s.self_ns[i]);
		*end++ = '\n';
		ops_sink_write(sink, number, (size_t)(end - number));
	}
	OPS_ARRAY_RELEASE(&names);
	spelled_release(&s);
	return ok;
}
