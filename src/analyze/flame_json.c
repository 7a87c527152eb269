/* SPDX-License-Identifier: Apache-2.0
 *
 * A flame graph as JSON: the tree of its frames as columns, for programs that draw it. With a limit, only the frames
 * with most time are included. A frame's callers have at least as much time, so the result is still a tree.
 */
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "analyze/flame.h"
#include "base/alloc.h"
#include "base/json_writer.h"
#include "base/sum.h"

struct flame_columns {
	const struct ops_flame *flame;
	int64_t *sums;    /* by chain: time including all callees */
	int64_t *base_sums; /* the same for the other trace of a difference; else 0 */
	uint32_t *places; /* by chain: its index in the columns; OPS_NONE: omitted */
	uint32_t *names;  /* by name: its index in the list */
	uint32_t *chains; /* written chains, in order */
	size_t count;
	size_t left_out;
};

static int64_t flame_json_self_of(const struct ops_flame *flame, size_t chain)
{
	return flame->self_ns.items[chain] > 0 ? flame->self_ns.items[chain] : 0;
}

static int64_t flame_json_base_of(const struct ops_flame *flame, size_t chain)
{
	return ops_flame_is_diff(flame) ? flame->base_ns.items[chain] : 0;
}

/* Returns the value by which frames are selected. A caller has at least as much in both traces. */
static int64_t flame_json_weight(const struct flame_columns *t, size_t chain)
{
	return t->sums[chain] > t->base_sums[chain] ? t->sums[chain] : t->base_sums[chain];
}

/* Callees have higher numbers than their callers. */
static void add_up(struct flame_columns *t)
{
	for (size_t i = t->flame->frames.frames.count; i-- > 1;) {
		uint32_t caller = t->flame->frames.frames.items[i].caller;

		t->sums[i] = ops_sum(t->sums[i], flame_json_self_of(t->flame, i));
		t->sums[caller] = ops_sum(t->sums[caller], t->sums[i]);
		t->base_sums[i] = ops_sum(t->base_sums[i], flame_json_base_of(t->flame, i));
		t->base_sums[caller] = ops_sum(t->base_sums[caller], t->base_sums[i]);
	}
}

static int flame_json_compare_sums(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a < b) - (a > b);
}

/* Finds the smallest sum that is kept, and how many frames with exactly that sum are kept. */
static bool find_least(const struct flame_columns *t, size_t limit, int64_t *ret_least, size_t *ret_room)
{
	size_t chains = t->flame->frames.frames.count;
	int64_t *sorted;

	*ret_least = 1;
	*ret_room = SIZE_MAX;
	if (chains <= limit + 1)
		return true;
	sorted = ops_realloc_array(NULL, chains, sizeof(*sorted));
	if (!sorted)
		return false;
	for (size_t i = 1; i < chains; i++)
		sorted[i - 1] = flame_json_weight(t, i);
	qsort(sorted, chains - 1, sizeof(*sorted), flame_json_compare_sums);
	if (sorted[limit - 1] > 0) {
		*ret_least = sorted[limit - 1];
		for (*ret_room = 0; *ret_room < limit && sorted[limit - 1 - *ret_room] == *ret_least;)
			++*ret_room;
	}
	ops_free(sorted);
	return true;
}

static void flame_json_choose(struct flame_columns *t, int64_t least, size_t room)
{
	size_t chains = t->flame->frames.frames.count;

	t->places[0] = OPS_NONE;
	for (size_t i = 1; i < chains; i++) {
		int64_t weight = flame_json_weight(t, i);

		t->places[i] = OPS_NONE;
		if (weight < least || (weight == least && !room)) {
			t->left_out += weight > 0;
			continue;
		}
		room -= weight == least;
		t->places[i] = (uint32_t)t->count;
		t->chains[t->count++] = (uint32_t)i;
	}
}

static bool flame_columns_init(struct flame_columns *t, size_t limit)
{
	size_t chains = t->flame->frames.frames.count, names = ops_frames_name_count(&t->flame->frames), room;
	int64_t least;

	t->sums = ops_alloc_zeroed(chains + 1, sizeof(*t->sums));
	t->base_sums = ops_alloc_zeroed(chains + 1, sizeof(*t->base_sums));
	t->places = ops_realloc_array(NULL, chains + 1, sizeof(*t->places));
	t->chains = ops_realloc_array(NULL, chains + 1, sizeof(*t->chains));
	t->names = ops_alloc_none(names + 1);
	if (!t->sums || !t->base_sums || !t->places || !t->chains || !t->names)
		return false;
	add_up(t);
	if (!find_least(t, limit ? limit : chains, &least, &room))
		return false;
	flame_json_choose(t, least, room);
	return true;
}

static void flame_columns_release(struct flame_columns *t)
{
	ops_free(t->sums);
	ops_free(t->base_sums);
	ops_free(t->places);
	ops_free(t->chains);
	ops_free(t->names);
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

static uint32_t flame_json_name_of(const struct flame_columns *t, size_t i)
{
	return t->flame->frames.frames.items[t->chains[i]].name;
}

static void flame_json_write_name(const struct flame_columns *t, uint32_t name, struct ops_json_writer *json)
{
	struct ops_string text = ops_frames_text(&t->flame->frames, name);
	struct ops_function_text function = {.name = text};
	bool is_python = ops_function_parse(text, &function);

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", function.name);
	ops_json_key(json, "file");
	if (is_python)
		ops_json_text(json, function.file.bytes, function.file.size);
	else
		ops_json_null(json);
	ops_json_member_or_null(json, "line", is_python ? (int64_t)function.line : -1);
	ops_json_close(json, '}');
}

static void flame_json_write_names(struct flame_columns *t, struct ops_json_writer *json)
{
	uint32_t count = 0;

	ops_json_member_open(json, "names", '[');
	for (size_t i = 0; i < t->count; i++) {
		uint32_t name = flame_json_name_of(t, i);

		if (t->names[name] != OPS_NONE)
			continue;
		t->names[name] = count++;
		flame_json_write_name(t, name, json);
	}
	ops_json_close(json, ']');
}

static int64_t parent_of(const struct flame_columns *t, size_t i)
{
	uint32_t place = t->places[t->flame->frames.frames.items[t->chains[i]].caller];

	return place == OPS_NONE ? -1 : (int64_t)place;
}

static void write_frames(struct flame_columns *t, const char *metric, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_member_text(json, "metric", metric);
	ops_json_member(json, "total_ns", t->sums[0]);
	if (ops_flame_is_diff(t->flame))
		ops_json_member(json, "base_total_ns", t->base_sums[0]);
	ops_json_member(json, "left_out", (int64_t)t->left_out);
	ops_json_member(json, "waits_ns", t->flame->waits_ns);
	flame_json_write_names(t, json);
	OPS_JSON_LIST(json, "parent", i, t->count, ops_json_integer(json, parent_of(t, i)));
	OPS_JSON_LIST(json, "name", i, t->count, ops_json_integer(json, t->names[flame_json_name_of(t, i)]));
	OPS_JSON_LIST(json, "self_ns", i, t->count, ops_json_integer(json, flame_json_self_of(t->flame, t->chains[i])));
	OPS_JSON_LIST(json, "sum_ns", i, t->count, ops_json_integer(json, t->sums[t->chains[i]]));
	if (ops_flame_is_diff(t->flame)) {
		OPS_JSON_LIST(json, "base_self_ns", i, t->count, ops_json_integer(json, flame_json_base_of(t->flame, t->chains[i])));
		OPS_JSON_LIST(json, "base_sum_ns", i, t->count, ops_json_integer(json, t->base_sums[t->chains[i]]));
	}
	ops_json_close(json, '}');
}

enum ops_code ops_flame_json(const struct ops_flame *flame, enum ops_stack_metric metric, size_t limit, char **ret_text,
                             size_t *ret_size, struct ops_error *error)
{
	static const char *const metrics[] = {
		[OPS_STACKS_SELF_CPU] = "self_cpu", [OPS_STACKS_SELF_DEVICE] = "self_device", [OPS_STACKS_SAMPLED] = "sampled"};
	struct flame_columns drawing = {.flame = flame};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	bool done = flame_columns_init(&drawing, limit);

	if (done)
		write_frames(&drawing, metrics[metric], &json);
	flame_columns_release(&drawing);
	out.failed |= !done;
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
