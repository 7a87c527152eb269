/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects a time range of a trace, or some of its threads. Device work is kept with the call that started it, whenever it runs.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "trace/kinds.h"
#include "trace/table.h"

struct cutter {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_trace_cut *cut;
	bool open_from, open_to;    /* the range begins with the trace or before, or ends with it or after */
	int64_t first_ns, last_ns;  /* of such a range: the first start and last end of calls, see stretch_find_calls() */
	uint8_t *tracks;            /* by track: it is requested */
	uint8_t *rows;              /* by row: it is kept */
	struct ops_intern launched; /* correlations of all calls, kept or not */
	uint8_t *kept;              /* by id in `launched`: the call is kept */
};

static bool is_requested(const struct ops_trace_cut *cut, const struct ops_track *track)
{
	if (!cut->tid_count || track->kind != OPS_TRACK_THREAD)
		return true;
	for (size_t i = 0; i < cut->tid_count; i++)
		if (!(track->flags & OPS_TRACK_TID_TEXT) && track->tid == cut->tids[i])
			return true;
	return false;
}

static bool is_within(const struct ops_trace_cut *cut, int64_t start_ns, int64_t end_ns)
{
	return start_ns < cut->to_ns && (end_ns > cut->from_ns || start_ns >= cut->from_ns);
}

/* Records whether a call is kept. Returns false if out of memory. */
static bool note_launch(struct cutter *cutter, uint32_t row)
{
	int64_t correlation = cutter->events->correlation ? cutter->events->correlation[row] : -1;
	uint32_t number;

	if (correlation < 0 || !ops_kind_is_call(cutter->events->kind[row]))
		return true;
	number = ops_intern_add(&cutter->launched, &correlation, sizeof(correlation));
	if (number == OPS_INTERN_NONE)
		return false;
	cutter->kept[number] |= cutter->rows[row];
	return true;
}

static bool keep_host_rows(struct cutter *cutter)
{
	const struct ops_events *e = cutter->events;

	for (uint32_t row = 0; row < e->count; row++) {
		if (ops_kind_is_work(e->kind[row]))
			continue;
		cutter->rows[row] = cutter->tracks[e->track[row]] && is_within(cutter->cut, e->start_ns[row], e->end_ns[row]);
		if (!note_launch(cutter, row))
			return false;
	}
	return true;
}

/* Keeps device rows whose call (with the same correlation) is kept. A row without a call is kept by its own time, unless only
 * some threads are requested. */
static void keep_device_rows(struct cutter *cutter)
{
	const struct ops_events *e = cutter->events;

	for (uint32_t row = 0; row < e->count; row++) {
		int64_t correlation = e->correlation ? e->correlation[row] : -1;
		uint32_t number = OPS_INTERN_NONE;

		if (!ops_kind_is_work(e->kind[row]))
			continue;
		if (correlation >= 0)
			number = ops_intern_find(&cutter->launched, &correlation, sizeof(correlation));
		if (number != OPS_INTERN_NONE)
			cutter->rows[row] = cutter->kept[number];
		else
			cutter->rows[row] = !cutter->cut->tid_count && is_within(cutter->cut, e->start_ns[row], e->end_ns[row]);
	}
}

/* The outermost functions of a program do not end with the trace but one after another before it. So a range that ends after the trace
 * ends for them with its last event other than functions and device work, and the same applies to the start. */
static void stretch_find_calls(struct cutter *cutter)
{
	const struct ops_events *e = cutter->events;
	int64_t start_ns = ops_trace_origin(cutter->trace), end_ns = ops_trace_end(cutter->trace);

	cutter->open_from = cutter->cut->from_ns <= start_ns;
	cutter->open_to = cutter->cut->to_ns >= end_ns;
	cutter->first_ns = INT64_MAX;
	cutter->last_ns = INT64_MIN;
	for (uint32_t row = 0; row < e->count; row++) {
		if (!cutter->rows[row] || ops_kind_is_work(e->kind[row]) || e->kind[row] == OPS_EVENT_TRACE ||
		    e->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			continue;
		if (e->end_ns[row] > end_ns) /* the end of the profiler's window */
			continue;
		if (e->start_ns[row] < cutter->first_ns)
			cutter->first_ns = e->start_ns[row];
		if (e->end_ns[row] > cutter->last_ns)
			cutter->last_ns = e->end_ns[row];
	}
	if (cutter->first_ns > cutter->last_ns) {
		cutter->first_ns = start_ns;
		cutter->last_ns = end_ns;
	}
}

/* Returns whether a Python function is around the complete range. */
static bool stretch_is_around(const struct cutter *cutter, uint32_t row)
{
	const struct ops_events *e = cutter->events;

	return e->kind[row] == OPS_EVENT_PYTHON_FUNCTION &&
	       (cutter->open_from ? e->start_ns[row] <= cutter->first_ns : e->start_ns[row] < cutter->cut->from_ns) &&
	       (cutter->open_to ? e->end_ns[row] >= cutter->last_ns : e->end_ns[row] >= cutter->cut->to_ns);
}

/* Keeps which row of the complete trace each row of the part was: `made` has their refs in the part. */
static enum ops_code stretch_note_rows(const uint32_t *refs, const uint32_t *made, size_t count, struct ops_trace *part,
                                       struct ops_error *error)
{
	part->whole_rows = ops_realloc_array(NULL, part->events.count + 1, sizeof(*part->whole_rows));
	if (!part->whole_rows)
		return ops_fault_memory(error);
	for (size_t i = 0; i < count; i++)
		if (!(refs[i] & OPS_MEMORY_REF))
			part->whole_rows[made[i]] = refs[i];
	return OPS_OK;
}

static enum ops_code stretch_make(struct cutter *cutter, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_trace_part part = {.trace = cutter->trace};
	size_t count;
	const struct ops_memory_record *memory = ops_trace_memory(cutter->trace, &count);
	uint32_t *refs = ops_realloc_array(NULL, cutter->events->count + count + 1, sizeof(*refs)), *made = NULL;
	enum ops_code code;
	bool around;

	if (!refs)
		return ops_fault_memory(error);
	stretch_find_calls(cutter);
	part.clip_from_ns = INT64_MAX;
	part.clip_to_ns = INT64_MIN;
	for (uint32_t row = 0; row < cutter->events->count; row++) {
		if (!cutter->rows[row])
			continue;
		refs[part.ref_count++] = row;
		if (cutter->events->kind[row] == OPS_EVENT_TRACE)
			continue;
		around = stretch_is_around(cutter, row);
		if ((!around || cutter->open_from) && cutter->events->start_ns[row] < part.clip_from_ns)
			part.clip_from_ns = cutter->events->start_ns[row];
		if ((!around || cutter->open_to) && cutter->events->end_ns[row] > part.clip_to_ns)
			part.clip_to_ns = cutter->events->end_ns[row];
	}
	for (uint32_t i = 0; i < count; i++)
		if (cutter->tracks[memory[i].track] && is_within(cutter->cut, memory[i].time_ns, memory[i].time_ns))
			refs[part.ref_count++] = i | OPS_MEMORY_REF;
	part.refs = refs;
	made = ops_realloc_array(NULL, part.ref_count + 1, sizeof(*made));
	code = made ? ops_trace_merge(&part, 1, made, ret_trace, error) : ops_fault_memory(error);
	if (!code && (code = stretch_note_rows(refs, made, part.ref_count, *ret_trace, error)))
		ops_trace_unref(*ret_trace);
	ops_free(refs);
	ops_free(made);
	return code;
}

/* Sampled stacks are metadata, which are kept unchanged; other metadata say which of them belong to the part
 * (derive/python_samples.c). */
static enum ops_code stretch_note_range(const struct ops_trace *trace, const struct ops_trace_cut *cut, struct ops_trace *part,
                                        struct ops_error *error)
{
	static const char key[] = "python_samples_range";
	struct ops_string json;
	char text[64];
	int size;

	if (!ops_trace_find_metadata(trace, OPS_PYTHON_SAMPLES, &json))
		return OPS_OK;
	size = snprintf(text, sizeof(text), "[%" PRId64 ", %" PRId64 "]", cut->from_ns, cut->to_ns);
	return ops_trace_set_metadata(part, key, sizeof(key) - 1, text, (size_t)size, error);
}

enum ops_code ops_trace_cut(const struct ops_trace *trace, const struct ops_trace_cut *cut, struct ops_trace **ret_trace,
                            struct ops_error *error)
{
	size_t track_count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &track_count);
	struct cutter cutter = {.trace = trace, .events = ops_trace_events(trace), .cut = cut};
	enum ops_code code = OPS_NO_MEMORY;

	cutter.tracks = ops_alloc_zeroed(track_count + 1, 1);
	cutter.rows = ops_alloc_zeroed(cutter.events->count + 1, 1);
	cutter.kept = ops_alloc_zeroed(cutter.events->count + 1, 1);
	if (cutter.tracks && cutter.rows && cutter.kept) {
		for (size_t i = 0; i < track_count; i++)
			cutter.tracks[i] = is_requested(cut, &tracks[i]);
		if (keep_host_rows(&cutter)) {
			keep_device_rows(&cutter);
			code = stretch_make(&cutter, ret_trace, error);
			if (!code && (code = stretch_note_range(trace, cut, *ret_trace, error)))
				ops_trace_unref(*ret_trace);
		} else {
			ops_fault_memory(error);
		}
	} else {
		ops_fault_memory(error);
	}
	ops_intern_release(&cutter.launched);
	ops_free(cutter.tracks);
	ops_free(cutter.rows);
	ops_free(cutter.kept);
	return code;
}
