/* SPDX-License-Identifier: Apache-2.0
 *
 * Brendan Gregg's collapsed stacks, the format of flamegraph.pl and many viewers: a line for each stack, with its frames from the
 * outermost on and its time. The format requires integers, so times are in nanoseconds to keep their precision.
 *
 *     train.py(3):_main;train.py(9):_step;aten::mm 25130
 *
 * For a difference, a line has two times, that of the base and that of the other trace, like the output of difffolded.pl.
 *
 * Characters that would split a line (space, semicolon, control characters) are replaced by '_', as torch does. Bytes that are
 * not UTF-8 become \xff.
 *
 * A line has all frames of its stack, so the lines of a deep recursion take space proportional to the square of its depth: 7 GB
 * for 20,000 frames. Beyond OPS_COLLAPSED_DEPTH, the frames in the middle are replaced:
 *
 *     main;walk;walk;…;walk;[truncated];aten::mm 25130
 *
 * This makes the calls of a recursion one line, but not frames with different names: 300,000 nested modules are 300,000 lines of
 * 2,000 frames, 10 GB. Therefore the depth is halved until the lines have at most OPS_COLLAPSED_FRAMES frames together, but not
 * below OPS_COLLAPSED_LEAST, which is more than stacks without recursion usually have.
 */
#include "write/stack_files.h"

#include <opstrobe/internal/write.h>

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/sum.h"
#include "base/text.h"
#include "base/utf8.h"

static void spell(struct ops_buffer *out, struct ops_string name)
{
	const char *at = name.bytes, *end = ops_string_end(name);

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

/* The flame's chains with escaped names, and their sums. Names that are equal after escaping are the same. */
struct spelled {
	struct ops_frames frames;
	int64_t *self_ns;     /* by chain */
	int64_t *base_ns;     /* by chain; all 0 unless the flame is a difference */
	uint32_t *names;      /* by name of the flame: the escaped name, OPS_NONE until needed */
	uint32_t *chains;     /* by chain of the flame */
	uint32_t *depths;     /* by chain of the flame: number of frames */
	uint32_t truncated;   /* the name that represents dropped frames */
	uint32_t limit;       /* maximum depth */
	size_t cut;           /* deeper chains of the flame with self time */
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

/* Returns whether a chain has self time. */
static bool collapsed_is_line(const struct spelled *s, size_t chain)
{
	return s->self_ns[chain] > 0 || s->base_ns[chain] > 0;
}

/* Returns OPS_NONE if out of memory. */
static uint32_t spelled_name(struct spelled *s, const struct ops_flame *flame, uint32_t name)
{
	if (s->names[name] == OPS_NONE) {
		spell(&s->text, ops_frames_text(&flame->frames, name));
		if (!s->text.failed)
			s->names[name] = ops_frames_name(&s->frames, (struct ops_string){s->text.bytes, s->text.size});
	}
	return s->names[name];
}

/* Returns the caller of a chain of the flame; one frame replaces all those that are too deep. */
static uint32_t spelled_caller(struct spelled *s, const struct ops_flame *flame, uint32_t chain)
{
	uint32_t caller = flame->frames.frames.items[chain].caller;
	uint32_t below = s->chains[caller];

	s->depths[chain] = s->depths[caller] + 1;
	if (s->depths[chain] <= s->limit + 1)
		return below;
	below = s->frames.frames.items[below].caller; /* one of the outermost frames, or the frame that replaces the others */
	return s->depths[caller] > s->limit + 1 ? below : ops_frames_add(&s->frames, below, s->truncated);
}

/* Returns false if out of memory. */
static bool spelled_init(struct spelled *s, const struct ops_flame *flame)
{
	size_t count = flame->frames.frames.count, names = ops_frames_name_count(&flame->frames);
	bool ok;

	s->self_ns = ops_alloc_zeroed(2 * count + 1, sizeof(*s->self_ns)); /* a chain of the flame adds at most two */
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

/* Returns the total number of frames in the lines. `depths` is scratch memory for a number for each chain. */
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

/* Chooses the greatest depth with which the lines are short enough. Returns false if out of memory. */
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

/* The names of a chain's frames, outermost first. Returns false if out of memory. */
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

	*cut = (struct ops_flame_cut){.stacks = s.cut, .depth = s.limit};
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
