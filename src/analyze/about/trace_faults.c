/* SPDX-License-Identifier: Apache-2.0
 *
 * Defects of a trace file: what the reader repaired or dropped, and arguments of an unexpected
 * type. Unknown arguments are reported as well, but are not defects.
 */
#include <string.h>

#include "analyze/analysis.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/text.h"

enum value_type { NUMBER = 1, TEXT = 2, LIST = 4, ANY = NUMBER | TEXT | LIST };

/* Known arguments of events that have no column in a trace. */
static const struct {
	const char *key;
	int types; /* bits of enum value_type */
} known[] = {
	{"stream", NUMBER}, {"device", NUMBER}, {"context", NUMBER}, {"queued", NUMBER}, {"cbid", NUMBER}, {"bytes", NUMBER},
	{"memory bandwidth (GB/s)", NUMBER}, {"wait_on_stream", NUMBER}, {"wait_on_cuda_event_record_corr_id", NUMBER},
	{"Record function id", NUMBER}, {"Ev Idx", NUMBER}, {"Collective name", TEXT}, {"dtype", TEXT}, {"In msg nelems", NUMBER},
	{"Out msg nelems", NUMBER}, {"Group size", NUMBER}, {"Rank", NUMBER}, {"Seq", NUMBER}, {"Process Group Name", TEXT},
	{"Process Group Description", TEXT}, {"Process Group Ranks", TEXT | LIST}, {"In split size", TEXT | LIST},
	{"Out split size", TEXT | LIST}, {"blocks per SM", NUMBER}, {"warps per SM", NUMBER}, {"est. achieved occupancy %", NUMBER},
	{"registers per thread", NUMBER}, {"shared memory", NUMBER}, {"grid", LIST}, {"block", LIST}, {"kernel_backend", TEXT},
	{"kernel_hash", TEXT}, {"kernel_file", TEXT}, {"Module Hierarchy", TEXT}, {"finished", ANY}, {"cut", ANY}, {"Op count", NUMBER},
};
#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))
#define UNKNOWN_MAX 1000 /* limit on the kinds reported; only a crafted file has more */

struct survey {
	uint64_t wrong[KNOWN_COUNT];
	struct ops_intern unknown;
	uint64_t unknown_counts[UNKNOWN_MAX];
};

/* Numbers may be in quotes, since old collectors wrote them that way. */
static bool has_type(struct ops_string value, int types)
{
	double number;

	if (ops_string_is(value, "null"))
		return true;
	if (*value.bytes == '[')
		return types & LIST;
	if (*value.bytes == '"' && types & TEXT)
		return true;
	return types & NUMBER && (ops_json_parse_number(value, &number) || ops_string_is(value, "true") ||
	                          ops_string_is(value, "false") || (value.size > 3 && value.bytes[1] == '0'));
}

static bool survey_argument(struct survey *survey, struct ops_string key, struct ops_string value, uint64_t times)
{
	uint32_t id;

	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		if (!ops_string_is(key, known[i].key))
			continue;
		if (!has_type(value, known[i].types))
			survey->wrong[i] += times;
		return true;
	}
	if (survey->unknown.count == UNKNOWN_MAX) {
		id = ops_intern_find(&survey->unknown, key.bytes, key.size);
	} else {
		id = ops_intern_add(&survey->unknown, key.bytes, key.size);
		if (id == OPS_INTERN_NONE)
			return false;
	}
	if (id != OPS_INTERN_NONE)
		survey->unknown_counts[id] += times;
	return true;
}

/* Equal arguments are one string, and are examined once. */
static bool trace_faults_survey(struct survey *survey, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t strings = ops_trace_string_count(trace);
	uint32_t *uses = ops_alloc_zeroed(strings + 1, sizeof(*uses));
	bool done = uses != NULL;

	for (size_t i = 0; done && events->extra && i < events->count; i++)
		if (events->extra[i] != OPS_NONE)
			uses[events->extra[i]]++;
	for (size_t i = 0; done && i < strings; i++) {
		struct ops_string text = ops_trace_string(trace, (uint32_t)i);
		struct ops_json_walk cursor = ops_json_walk(text.bytes, text.size);
		struct ops_string key, value;

		while (done && uses[i] && ops_json_next_member(&cursor, &key, &value))
			done = survey_argument(survey, key, value, uses[i]);
	}
	ops_free(uses);
	return done;
}

struct fault_row {
	const char *kind;
	struct ops_string what;
	uint64_t count;
	int64_t byte;
};

static const struct result_column fault_columns[] = {
	{.name = "kind", .type = RESULT_TEXT, .title = "Kind",
	 .about = "file: an error in the file; usual: links to events that a profiler leaves out; type: a field of an unexpected type; "
	          "unknown: a field that Opstrobe does not know", RESULT_FIELD(struct fault_row, kind)},
	{.name = "what", .type = RESULT_TEXT, .title = "What", .about = "The error, or the name of the field",
	 RESULT_FIELD(struct fault_row, what)},
	{.name = "count", .type = RESULT_COUNT, .title = "Count", .about = "Number of times", RESULT_FIELD(struct fault_row, count)},
	{.name = "first_byte", .type = RESULT_INTEGER, .title = "First byte", .about = "Position of the first in the file; null: unknown",
	 RESULT_FIELD(struct fault_row, byte)},
};
const struct result_declaration table_validate = RESULT_DECLARATION("validate", "A kind of error in a trace file", fault_columns);

static void write_survey(struct result_table *out, const struct ops_trace *trace, const struct survey *survey)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);

	for (size_t i = 0; i < count; i++) {
		const char *text = ops_note_text(notes[i].kind);

		/* Kineto draws arrows to events that it filtered out. */
		result_add(out, &(struct fault_row){notes[i].kind == OPS_NOTE_UNMATCHED_ARROW ? "usual" : "file",
		                                    {text, strlen(text)}, notes[i].count, (int64_t)notes[i].byte});
	}
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		if (survey->wrong[i])
			result_add(out, &(struct fault_row){"type", {known[i].key, strlen(known[i].key)}, survey->wrong[i], RESULT_NULL});
	}
	for (uint32_t i = 0; i < survey->unknown.count; i++)
		result_add(out, &(struct fault_row){"unknown", ops_intern_text(&survey->unknown, i), survey->unknown_counts[i], RESULT_NULL});
}

enum ops_code analysis_validate(struct analysis_run *run)
{
	struct result_table *out = &run->result.table;
	const struct ops_trace *trace;
	enum ops_code code = analysis_first_trace(run, &trace);

	if (code)
		return code;
	out->copies = true;
	result_declare(out, &table_validate, 0);
	out->empty = "no errors";
	for (size_t i = 0; i < run->count; i++) {
		struct survey *survey = ops_alloc_zeroed(1, sizeof(*survey));
		bool done = survey && (!run->ranks[i].trace || trace_faults_survey(survey, run->ranks[i].trace));

		if (done && run->ranks[i].trace)
			write_survey(out, run->ranks[i].trace, survey);
		if (survey)
			ops_intern_release(&survey->unknown);
		ops_free(survey);
		if (!done)
			return ops_fault_memory(run->error);
	}
	return OPS_OK;
}
