/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges traces, or some events of one trace: every part is copied into a builder, which sorts and links the events again.
 */
#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "trace/diagnostics.h"
#include "trace/merge_part.h"
#include "trace/merge_places.h"

#define PLACE "distributedInfo"

/* --- common facts of all parts -------------------------------------------------------------------------------------- */

static void merge_add_facts(struct merge *merge, const struct ops_trace_part *part, size_t index)
{
	const struct ops_trace_info *info = ops_trace_info(part->trace);
	const struct ops_events *events = ops_trace_events(part->trace);
	int64_t start_ns = merge_shifted(info->start_ns, part->shift_ns);
	int64_t stop_ns = merge_shifted(info->stop_ns, part->shift_ns);
	size_t memory;

	ops_trace_memory(part->trace, &memory);
	merge->links_given |= events->index != NULL;
	merge->events_expected += part->whole ? events->count : part->ref_count;
	merge->memory_expected += part->whole ? memory : 0;
	if (index == 0) {
		merge->info = *info;
		merge->info.start_ns = start_ns;
		merge->info.stop_ns = stop_ns;
		return;
	}
	merge->info.start_ns = start_ns < merge->info.start_ns ? start_ns : merge->info.start_ns;
	merge->info.stop_ns = stop_ns > merge->info.stop_ns ? stop_ns : merge->info.stop_ns;
	merge->info.lost += info->lost;
}

/* --- building ------------------------------------------------------------------------------------------------------- */

/* Called when all facts are known. Returns false if out of memory. */
static bool merge_begin(struct merge *merge)
{
	merge->builder = ops_builder_new();
	if (!merge->builder)
		return false;
	if (merge->links_given)
		ops_builder_links_given(merge->builder);
	ops_builder_expect(merge->builder, merge->events_expected, merge->memory_expected);
	return !ops_builder_failed(merge->builder);
}

static bool merge_copy_text(struct merge *merge, struct ops_string text, struct ops_string *ret_copy)
{
	*ret_copy = (struct ops_string){ops_arena_copy(&merge->texts, text.bytes, text.size), text.size};
	return ret_copy->bytes != NULL;
}

/* Returns whether an object has this member with this value. */
static bool has_member(struct ops_string object, struct ops_string key, struct ops_string value)
{
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	struct ops_string other_key, other;

	while (ops_json_next_member(&walk, &other_key, &other))
		if (ops_string_equals(other_key, key))
			return ops_string_equals(other, value);
	return false;
}

/* For merged ranks: keeps the members on which all ranks agree about their position in the run (such as the backend, but not the
 * rank). */
static bool keep_place(struct merge *merge, const struct ops_trace *trace, size_t index)
{
	struct ops_string own = {"", 0};
	struct ops_json_walk walk;
	struct ops_string key, value;
	struct ops_buffer common = {0};
	bool done, found = ops_trace_find_metadata(trace, PLACE, &own);

	if (index == 0)
		return !found || merge_copy_text(merge, own, &merge->place);
	walk = ops_json_walk(merge->place.bytes, merge->place.size);
	while (ops_json_next_member(&walk, &key, &value)) {
		if (!has_member(own, key, value))
			continue;
		ops_buffer_append_text(&common, common.size ? ",\"" : "{\"");
		ops_buffer_append(&common, key.bytes, key.size);
		ops_buffer_append_text(&common, "\":");
		ops_buffer_append(&common, value.bytes, value.size);
	}
	ops_buffer_append_text(&common, common.size ? "}" : "");
	done = !common.failed &&
	       merge_copy_text(merge, (struct ops_string){common.size ? common.bytes : "", common.size}, &merge->place);
	ops_buffer_release(&common);
	return done;
}

/* Returns the objects of samples, which are one object, or a list of them if several processes have some (derive/python_samples.h). */
static struct ops_string objects_of_samples(struct ops_string json)
{
	return json.bytes[0] == '[' ? (struct ops_string){json.bytes + 1, json.size - 2} : json;
}

static bool merge_keep_samples(struct merge *merge, const struct ops_trace *trace)
{
	struct ops_string json;

	if (!ops_trace_find_metadata(trace, OPS_PYTHON_SAMPLES, &json))
		return true;
	json = objects_of_samples(json);
	ops_buffer_append_text(&merge->samples, ",");
	ops_buffer_append(&merge->samples, json.bytes, json.size);
	return !merge->samples.failed;
}

/* Joins the samples of the processes with those of the trace that they become part of. */
static enum ops_code merge_set_samples(const struct merge *merge, struct ops_trace *trace, struct ops_error *error)
{
	struct ops_string first = {"", 0}, rest = {merge->samples.bytes, merge->samples.size};
	struct ops_buffer joined = {0};
	enum ops_code code;

	if (!merge->samples.size)
		return OPS_OK;
	if (ops_trace_find_metadata(trace, OPS_PYTHON_SAMPLES, &first))
		first = objects_of_samples(first);
	else
		rest = (struct ops_string){rest.bytes + 1, rest.size - 1};
	ops_buffer_append_text(&joined, "[");
	ops_buffer_append(&joined, first.bytes, first.size);
	ops_buffer_append(&joined, rest.bytes, rest.size);
	ops_buffer_append_text(&joined, "]");
	code = joined.failed ? ops_fault_memory(error) : ops_trace_set_metadata(trace, OPS_PYTHON_SAMPLES, strlen(OPS_PYTHON_SAMPLES), joined.bytes, joined.size, error);
	ops_buffer_release(&joined);
	return code;
}

static bool merge_keep_metadata(struct merge *merge, const struct ops_trace_part *part, size_t index)
{
	const struct ops_trace *trace = part->trace;

	if (part->process_name)
		return merge_keep_samples(merge, trace);
	if (part->rank_name && !keep_place(merge, trace, index))
		return false;
	for (size_t i = 0; i < ops_trace_metadata_count(trace); i++) {
		struct merge_member *member;
		struct ops_string key, json;

		ops_trace_metadata(trace, i, &key, &json);
		if (part->rank_name && key.size == strlen(PLACE) && !memcmp(key.bytes, PLACE, key.size))
			continue;
		member = OPS_ARRAY_PUSH(&merge->metadata);
		if (!member || !merge_copy_text(merge, key, &member->key) || !merge_copy_text(merge, json, &member->json))
			return false;
	}
	return true;
}

/* Problems that make figures of a part wrong make those of the merged trace wrong. Problems that were repaired without loss are
 * not kept. */
static void keep_notes(struct merge *merge, const struct ops_trace *trace)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (ops_note_name(notes[i].kind))
			ops_builder_notes(merge->builder, notes[i].kind, notes[i].count, notes[i].byte);
}

static bool merge_add(struct merge *merge, const struct ops_trace_part *part, size_t index, bool own_tracks, uint32_t *places)
{
	keep_notes(merge, part->trace);
	return merge_add_part(merge, part, index, own_tracks, places) && merge_keep_metadata(merge, part, index);
}

static enum ops_code merge_end(struct merge *merge, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_trace *trace = NULL;
	enum ops_code code;

	ops_builder_info(merge->builder, &merge->info);
	code = ops_builder_finish(merge->builder, &trace, error);
	merge->builder = NULL;
	for (size_t i = 0; !code && i < merge->metadata.count; i++) {
		const struct merge_member *member = &merge->metadata.items[i];

		code = ops_trace_set_metadata(trace, member->key.bytes, member->key.size, member->json.bytes, member->json.size, error);
	}
	if (!code && merge->place.size)
		code = ops_trace_set_metadata(trace, PLACE, strlen(PLACE), merge->place.bytes, merge->place.size, error);
	if (!code)
		code = merge_set_samples(merge, trace, error);
	if (code)
		ops_trace_unref(trace);
	else
		*ret_trace = trace;
	return code;
}

static void merge_release(struct merge *merge)
{
	ops_builder_free(merge->builder);
	ops_intern_release(&merge->modules);
	merge_tracks_release(&merge->tracks);
	ops_arena_release(&merge->texts);
	OPS_ARRAY_RELEASE(&merge->metadata);
	ops_buffer_release(&merge->samples);
}

/* --- parts in memory ------------------------------------------------------------------------------------------------ */

static bool overlaps_earlier(const struct ops_trace_part *parts, size_t part)
{
	const struct ops_trace_info *info = ops_trace_info(parts[part].trace);

	for (size_t p = 0; p < part; p++) {
		const struct ops_trace_info *earlier = ops_trace_info(parts[p].trace);
		if (earlier->start_ns < info->stop_ns && info->start_ns < earlier->stop_ns)
			return true;
	}
	return false;
}

/* Names the processes of all parts if one of them was started by the first. Otherwise readers name the only process. */
static void name_processes(struct merge *merge, const struct ops_trace_part *parts, size_t count)
{
	bool named = false;

	for (size_t p = 0; p < count; p++)
		named |= parts[p].process_name != NULL;
	for (size_t p = 0; named && p < count; p++) {
		const struct ops_trace_info *info = ops_trace_info(parts[p].trace);
		const char *name = parts[p].process_name ? parts[p].process_name : info->process_name;
		const struct ops_process process = {.name = ops_builder_string(merge->builder, name, strlen(name)),
		                                    .labels = ops_builder_string(merge->builder, "CPU", 3),
		                                    .has_sort_index = true, .pid = info->pid, .sort_index = (int64_t)p};

		ops_builder_process(merge->builder, &process);
	}
}

static bool add_parts(struct merge *merge, const struct ops_trace_part *parts, size_t count, uint32_t *places)
{
	bool done = true;

	for (size_t p = 0; done && p < count; p++) {
		done = merge_add(merge, &parts[p], p, !parts[p].rank_name && overlaps_earlier(parts, p), places);
		places += parts[p].ref_count;
	}
	if (done)
		name_processes(merge, parts, count);
	return done && !ops_builder_failed(merge->builder);
}

enum ops_code ops_trace_merge(const struct ops_trace_part *parts, size_t count, uint32_t *ret_refs,
                              struct ops_trace **ret_trace, struct ops_error *error)
{
	struct merge merge = {.keep_ids = count == 1};
	enum ops_code code = OPS_OK;
	uint32_t *places;
	size_t refs = 0;

	for (size_t p = 0; p < count; p++) {
		merge_add_facts(&merge, &parts[p], p);
		refs += parts[p].ref_count;
	}
	places = ops_realloc_array(NULL, refs + 1, sizeof(*places));
	if (!places || !merge_begin(&merge) || !add_parts(&merge, parts, count, places) ||
	    (refs && !ops_merge_move_refs(parts, count, merge.event_count, merge.memory_count, places, refs)))
		code = ops_fault_memory(error);
	if (!code)
		code = merge_end(&merge, ret_trace, error);
	if (!code && ret_refs)
		memcpy(ret_refs, places, refs * sizeof(*places));
	merge_release(&merge);
	ops_free(places);
	return code;
}

/* --- ranks from a source -------------------------------------------------------------------------------------------- */

struct ranks {
	const struct ops_trace_source *source;
	const char *const *names;
	bool align;
	struct ops_clock_shift *shifts;
	struct ops_trace *first; /* whose clock is the reference */
	struct merge merge;
	struct ops_error *error;
};

/* First pass: measures the clock of a rank, and collects its facts. */
static enum ops_code merge_measure(struct ranks *ranks, struct ops_trace *trace, size_t i)
{
	const struct ops_trace *pair[] = {ranks->first, trace};
	struct ops_clock_shift shifts[2] = {{0}};
	enum ops_code code = ranks->align && i ? ops_trace_align(pair, 2, shifts, ranks->error) : OPS_OK;

	ranks->shifts[i] = shifts[1];
	if (!code)
		merge_add_facts(&ranks->merge,
		                &(struct ops_trace_part){.trace = trace, .whole = true, .shift_ns = shifts[1].shift_ns}, i);
	return code;
}

/* Second pass: copies a rank. */
static enum ops_code merge_copy(struct ranks *ranks, struct ops_trace *trace, size_t i)
{
	const struct ops_trace_part part = {
		.trace = trace, .whole = true, .rank_name = ranks->names[i], .shift_ns = ranks->shifts[i].shift_ns};
	uint32_t place;

	if (!merge_add(&ranks->merge, &part, i, false, &place) || ops_builder_failed(ranks->merge.builder))
		return ops_fault_memory(ranks->error);
	return OPS_OK;
}

static enum ops_code merge_each(struct ranks *ranks, size_t count,
                                enum ops_code (*take)(struct ranks *ranks, struct ops_trace *trace, size_t i))
{
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < count; i++) {
		struct ops_trace *trace = NULL;

		code = ranks->source->get(ranks->source->context, i, &trace, ranks->error);
		if (!code && !ranks->first) {
			ranks->first = trace;
			ops_trace_ref(trace);
		}
		if (!code)
			code = take(ranks, trace, i);
		ops_trace_unref(trace);
	}
	return code;
}

enum ops_code ops_trace_merge_ranks(const struct ops_trace_source *source, const char *const *names, size_t count, bool align,
                                    struct ops_clock_shift *ret_shifts, struct ops_trace **ret_trace,
                                    struct ops_error *error)
{
	struct ranks ranks = {.source = source, .names = names, .align = align, .shifts = ret_shifts, .error = error};
	enum ops_code code = merge_each(&ranks, count, merge_measure);

	if (!code && !merge_begin(&ranks.merge))
		code = ops_fault_memory(error);
	if (!code)
		code = merge_each(&ranks, count, merge_copy);
	if (!code)
		code = merge_end(&ranks.merge, ret_trace, error);
	merge_release(&ranks.merge);
	ops_trace_unref(ranks.first);
	return code;
}
