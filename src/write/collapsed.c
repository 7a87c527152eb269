/* SPDX-License-Identifier: Apache-2.0
 *
 * Brendan Gregg's collapsed stacks, what flamegraph.pl and many viewers read: a line a stack, its frames from the outermost
 * on, and its time in nanoseconds. The format's numbers are whole ones, of which microseconds would drop too much.
 *
 *     train.py(3):_main;train.py(9):_step;aten::mm 25130
 *
 * Of a difference, a line has two times, that of the base and that of the other trace, as difffolded.pl writes it.
 *
 * What would break a line up is spelled as torch does it: '_' for a space, a semicolon, a control character. Bytes that are
 * no UTF-8 become \xff.
 *
 * A line has all frames of its stack, so those of a deep recursion would take the square of its depth: 20,000 frames 7 GB.
 * Beyond OPS_COLLAPSED_DEPTH, what stands between is replaced:
 *
 *     main;walk;walk;…;walk;[truncated];aten::mm 25130
 *
 * A recursion's calls become one line that way. Frames of different names do not: 300,000 modules, each within another, are
 * 300,000 lines of 2,000 frames, 10 GB. The depth is therefore halved until the lines have OPS_COLLAPSED_FRAMES together at
 * most, but not below OPS_COLLAPSED_LEAST, more than stacks without recursion have as a rule.
 */
#include "write/stack_files.h"

#include <opstrobe/internal/write.h>

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
	int64_t *self_ns;     /* by chain */
	int64_t *base_ns;     /* likewise; all 0 unless the flame is a difference */
	uint32_t *names;      /* by name of the flame: the spelled one, OPS_NONE before it is met */
	uint32_t *chains;     /* by chain of the flame */
	uint32_t *depths;     /* by chain of the flame: its frames */
	uint32_t truncated;   /* the name that represents dropped frames */
	uint32_t limit;       /* of depths */
	size_t cut;           /* chains of the flame with self time that are deeper */
	struct ops_buffer text; /* scratch */
};

static void spelled_release(struct spelled *s)
{
	ops_frames_release(&s->frames);
	ops_buffer_release(&s->text);
	ops_free(s->self_ns);
	ops_free(s->base_ns);
	ops_free(s->names);
	ops_free(s->chains);
	ops_free(s->depths);
}

/* Whether a chain has self time. */
static bool collapsed_is_line(const struct spelled *s, size_t chain)
{
	return s->self_ns[chain] > 0 || s->base_ns[chain] > 0;
}

/* OPS_NONE when memory is out. */
static uint32_t spelled_name(struct spelled *s, const struct ops_flame *flame, uint32_t name)
{
	if (s->names[name] == OPS_NONE) {
		spell(&s->text, ops_frames_text(&flame->frames, name));
		if (!s->text.failed)
			s->names[name] = ops_frames_name(&s->frames, (struct ops_string){s->text.bytes, s->text.size});
	}
	return s->names[name];
}

/* The caller of a chain of the flame; one frame replaces all that are too deep. */
static uint32_t spelled_caller(struct spelled *s, const struct ops_flame *flame, uint32_t chain)
{
	uint32_t caller = flame->frames.frames.items[chain].caller;
	uint32_t below = s->chains[caller];

	s->depths[chain] = s->depths[caller] + 1;
	if (s->depths[chain] <= s->limit + 1)
		return below;
	below = s->frames.frames.items[below].caller; /* of the outermost frames, or the one that represents the others */
	return s->depths[caller] > s->limit + 1 ? below : ops_frames_add(&s->frames, below, s->truncated);
}

/* False when memory is out. */
static bool spelled_init(struct spelled *s, const struct ops_flame *flame)
{
	size_t count = flame->frames.frames.count, names = ops_frames_name_count(&flame->frames);
	bool ok;

	s->self_ns = ops_alloc_zeroed(2 * count + 1, sizeof(*s->self_ns)); /* a chain of the flame adds two at most */
	s->base_ns = ops_alloc_zeroed(2 * count + 1, sizeof(*s->base_ns));
	s->names = ops_realloc_array(NULL, names + 1, sizeof(*s->names));
	s->chains = ops_alloc_zeroed(count, sizeof(*s->chains));
	s->depths = ops_alloc_zeroed(count, sizeof(*s->depths));
	ok = ops_frames_init(&s->frames, flame->frames.trace) && s->self_ns && s->base_ns && s->names && s->chains && s->depths;
	if (ok) {
		memset(s->names, 0xff, (names + 1) * sizeof(*s->names));
		s->truncated = ops_frames_name(&s->frames, (struct ops_string){"[truncated]", 11});
		ok = s->truncated != OPS_NONE;
	}
	for (size_t i = 1; ok && i < count; i++) {
		uint32_t name = spelled_name(s, flame, flame->frames.frames.items[i].name);
		uint32_t caller = name == OPS_NONE ? OPS_NONE : spelled_caller(s, flame, (uint32_t)i);

		s->chains[i] = ops_frames_add(&s->frames, caller, name);
		ok = s->chains[i] != OPS_NONE;
		if (ok)
			s->self_ns[s->chains[i]] = ops_sum(s->self_ns[s->chains[i]], flame->self_ns.items[i]);
		if (ok && ops_flame_is_diff(flame))
			s->base_ns[s->chains[i]] = ops_sum(s->base_ns[s->chains[i]], flame->base_ns.items[i]);
		s->cut += ok && collapsed_is_line(s, s->chains[i]) && s->depths[i] > s->limit + 1;
	}
	return ok;
}

/* How many frames the lines have together. `depths` has room for a number a chain. */
static uint64_t frames_of_lines(const struct spelled *s, uint32_t *depths)
{
	const struct ops_frame *frames = s->frames.frames.items;
	uint64_t sum = 0;

	depths[0] = 0;
	for (size_t i = 1; i < s->frames.frames.count; i++) {
		depths[i] = depths[frames[i].caller] + 1;
		sum += collapsed_is_line(s, i) ? depths[i] : 0;
	}
	return sum;
}

/* Takes the greatest depth with which the lines are few enough. False when memory is out. */
static bool spelled_fit(struct spelled *s, const struct ops_flame *flame)
{
	for (uint32_t limit = OPS_COLLAPSED_DEPTH;; limit /= 2) {
		uint32_t *depths;
		bool fits;

		s->limit = limit;
		if (!spelled_init(s, flame))
			return false;
		depths = ops_realloc_array(NULL, s->frames.frames.count, sizeof(*depths));
		if (!depths)
			return false;
		fits = limit / 2 < OPS_COLLAPSED_LEAST || frames_of_lines(s, depths) <= OPS_COLLAPSED_FRAMES;
		ops_free(depths);
		if (fits)
			return true;
		spelled_release(s);
		*s = (struct spelled){0};
	}
}

/* The names of a chain's frames, outermost first. False when memory is out. */
typedef OPS_ARRAY(uint32_t) name_list;
static bool list_names(const struct ops_frames *frames, uint32_t chain, name_list *names)
{
	names->count = 0;
	for (; chain != 0; chain = frames->frames.items[chain].caller) {
		uint32_t *name = OPS_ARRAY_PUSH(names);

		if (!name)
			return false;
		*name = frames->frames.items[chain].name;
	}
	for (size_t i = 0; i < names->count / 2; i++) {
		uint32_t name = names->items[i];

		names->items[i] = names->items[names->count - 1 - i];
		names->items[names->count - 1 - i] = name;
	}
	return true;
}

bool ops_put_collapsed(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut)
{
	struct spelled s = {0};
	name_list names = {0};
	bool ok = spelled_fit(&s, flame);

	*cut = (struct ops_flame_cut){s.cut, s.limit};
	for (size_t i = 1; ok && i < s.frames.frames.count; i++) {
		char numbers[48] = " ", *end = numbers + 1;

		if (!collapsed_is_line(&s, i))
			continue;
		ok = list_names(&s.frames, (uint32_t)i, &names);
		for (size_t n = 0; ok && n < names.count; n++) {
			struct ops_string text = ops_frames_text(&s.frames, names.items[n]);

			ops_sink_write(sink, ";", n > 0);
			ops_sink_write(sink, text.bytes, text.size);
		}
		if (ops_flame_is_diff(flame)) {
			end = ops_json_int_to(end, s.base_ns[i]);
			*end++ = ' ';
		}
		end = ops_json_int_to(end, s.self_ns[i] > 0 ? s.self_ns[i] : 0);
		*end++ = '\n';
		ops_sink_write(sink, numbers, (size_t)(end - numbers));
	}
	OPS_ARRAY_RELEASE(&names);
	spelled_release(&s);
	return ok;
}
