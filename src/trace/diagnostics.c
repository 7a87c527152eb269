/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics: why figures of a trace may be wrong, for all output that shows figures.
 */
#include "trace/diagnostics.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"

/* The diagnostics that change figures: dropped data changes them, a lossless repair does not. */
static const struct {
	enum ops_note_kind note;
	const char *kind;
} changing[] = {
	{OPS_NOTE_TRUNCATED, "truncated"},
	{OPS_NOTE_GZIP_TRUNCATED, "gzip_truncated"},
	{OPS_NOTE_NOT_AN_EVENT, "not_an_event"},
	{OPS_NOTE_UNKNOWN_PHASE, "unknown_phase"},
	{OPS_NOTE_BAD_TIME, "bad_time"},
	{OPS_NOTE_BAD_DURATION, "bad_duration"},
	{OPS_NOTE_UNMATCHED_END, "unmatched_end"},
	{OPS_NOTE_UNMATCHED_BEGIN, "unmatched_begin"},
	{OPS_NOTE_BAD_VALUE, "bad_value"},
	{OPS_NOTE_SAMPLED, "sampled"},
	{OPS_NOTE_NO_ORDER, "no_order"},
	{OPS_NOTE_NOT_TIME, "not_time"},
	{OPS_NOTE_OTHER_EVENT, "other_event"},
	{OPS_NOTE_NO_TIMES, "no_times"},
};

const char *ops_note_name(enum ops_note_kind kind)
{
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
		if (changing[i].note == kind)
			return changing[i].kind;
	return NULL;
}

bool ops_note_find(const char *name, size_t size, enum ops_note_kind *ret_kind)
{
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
		if (strlen(changing[i].kind) == size && !memcmp(changing[i].kind, name, size)) {
			*ret_kind = changing[i].note;
			return true;
		}
	return false;
}

bool ops_trace_has_note(const struct ops_trace *trace, enum ops_note_kind kind)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (notes[i].kind == kind)
			return true;
	return false;
}

bool ops_trace_is_complete(const struct ops_trace *trace)
{
	return !ops_trace_has_note(trace, OPS_NOTE_TRUNCATED) && !ops_trace_has_note(trace, OPS_NOTE_GZIP_TRUNCATED) &&
	       !ops_trace_info(trace)->lost;
}

size_t ops_trace_diagnostics(const struct ops_trace *trace, const char *source,
                             struct ops_diagnostic ret_items[OPS_DIAGNOSTICS_MAX])
{
	uint64_t lost = ops_trace_info(trace)->lost;
	size_t note_count, count = 0;
	const struct ops_note *notes = ops_trace_notes(trace, &note_count);

	if (lost)
		ret_items[count++] = (struct ops_diagnostic){
			.kind = "lost", .message = "records were lost; sums are too small", .count = lost, .source = source};
	for (size_t i = 0; i < note_count; i++) {
		const char *kind = ops_note_name(notes[i].kind);

		if (kind)
			ret_items[count++] = (struct ops_diagnostic){kind, ops_note_text(notes[i].kind), notes[i].count, notes[i].byte,
			                                             source};
	}
	return count;
}

void ops_diagnostic_write(const struct ops_diagnostic *item, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_member_text(json, "source", item->source);
	ops_json_member_text(json, "kind", item->kind);
	ops_json_member_text(json, "message", item->message);
	ops_json_member(json, "count", (int64_t)item->count);
	ops_json_member_if(json, "byte", strcmp(item->kind, "lost") != 0, (int64_t)item->byte);
	ops_json_close(json, '}');
}

enum ops_code ops_diagnostics_add(const struct ops_diagnostic *items, size_t count, char **text, size_t *size,
                                  struct ops_error *error)
{
	struct ops_buffer member = {0};
	struct ops_json_writer json = {.out = &member};
	enum ops_code code = OPS_OK;

	if (!count)
		return OPS_OK;
	ops_json_key(&json, "diagnostics");
	ops_json_open(&json, '[');
	for (size_t i = 0; i < count; i++)
		ops_diagnostic_write(&items[i], &json);
	ops_json_close(&json, ']');
	code = ops_json_object_add(text, size, &member, error);
	ops_buffer_release(&member);
	return code;
}
