/* SPDX-License-Identifier: Apache-2.0
 *
 * `frequent_cuda_kernel_sequences`: a table of the patterns, and with an output_dir a copy of the trace that marks the
 * events of the most frequent patterns. To keep the copy small, the names of all other events can be replaced by
 * numbers, which a legend event explains.
 */
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/graph/kernel_sequences.h"
#include "analyze/overlay.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_writer.h"
#include "base/text.h"

struct pattern_row {
	struct ops_string pattern;
	uint64_t count;
	int64_t kernels_ns, operators_ns;
};

static const struct result_column pattern_columns[] = {
	{.name = "pattern", .type = RESULT_TEXT, .title = "Pattern", .about = "The operator and the kernels that it launches",
	 RESULT_FIELD(struct pattern_row, pattern)},
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of calls with this pattern",
	 RESULT_FIELD(struct pattern_row, count)},
	{.name = "GPU kernel duration (us)", .type = RESULT_TIME, .title = "Kernel time", .about = "Sum over the kernels of these calls",
	 RESULT_FIELD(struct pattern_row, kernels_ns)},
	{.name = "CPU op duration (us)", .type = RESULT_TIME, .title = "Operator time", .about = "Sum over these calls",
	 RESULT_FIELD(struct pattern_row, operators_ns)},
};
const struct result_declaration table_kernel_sequences =
	RESULT_DECLARATION("frequent_cuda_kernel_sequences", "A pattern of kernels", pattern_columns);

static void kernel_sequences_answer_fill(struct result_table *out, const struct kernel_sequences *sequences,
                                         struct ops_buffer *text)
{
	out->copies = true;
	result_declare(out, &table_kernel_sequences, 0);
	for (size_t i = 0; i < sequences->patterns.count; i++) {
		const struct kernel_pattern *pattern = &sequences->patterns.items[i];

		text->size = 0;
		kernel_pattern_text(sequences, pattern, text);
		result_add(out, &(struct pattern_row){{ops_buffer_text(text), text->size}, pattern->count, pattern->kernels_ns,
		                                      pattern->operators_ns});
	}
}

/* --- overlay --------------------------------------------------------------------------------------------------------- */

struct drawing {
	const struct kernel_sequences *sequences;
	uint32_t *pattern_of; /* by position in the file; OPS_NONE: none */
	uint32_t *name_of;    /* by position in the file: string id of the name to replace by a number; NULL: all names
	                       * stay */
	size_t count;
	uint32_t legend; /* position of the event that holds the legend; OPS_NONE: an event is added */
	struct ops_buffer text;
};

/* The profiler's own event: "PyTorch Profiler (0)" of the process "Spans". */
static uint32_t find_legend(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);

	for (uint32_t row = 0; events->index && row < events->count; row++)
		if (events->kind[row] == OPS_EVENT_TRACE &&
		    ops_string_starts(ops_trace_string(trace, events->name[row]), "PyTorch Profiler"))
			return events->index[row];
	return OPS_NONE;
}

/* Replaces the names of events outside of all patterns by numbers. */
static bool drawing_compress(struct drawing *d)
{
	const struct kernel_sequences *sequences = d->sequences;
	const struct event_row *rows = sequences->table->rows;

	d->name_of = ops_alloc_none(d->count + 1);
	if (!d->name_of)
		return false;
	for (size_t i = 0; i < sequences->table->count; i++)
		if (rows[i].index != OPS_NONE && d->pattern_of[rows[i].index] == OPS_NONE)
			d->name_of[rows[i].index] = rows[i].name;
	d->legend = find_legend(sequences->table->trace);
	return true;
}

/* Writes {"12": "aten::mm", …}: the numbers are ids of strings. Returns false if out of memory. */
static bool write_legend(const struct drawing *d, struct ops_json_writer *json)
{
	const struct ops_trace *trace = d->sequences->table->trace;
	uint8_t *named = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1);

	ops_json_open(json, '{');
	for (size_t i = 0; named && i < d->count; i++) {
		struct ops_string name;

		if (d->name_of[i] == OPS_NONE || named[d->name_of[i]])
			continue;
		name = ops_trace_string(trace, d->name_of[i]);
		analysis_rank_key(json, d->name_of[i]);
		ops_json_text(json, name.bytes, name.size);
		named[d->name_of[i]] = 1;
	}
	ops_json_close(json, '}');
	ops_free(named);
	return named != NULL;
}

static bool drawing_init(struct drawing *d, int64_t top)
{
	const struct kernel_sequences *sequences = d->sequences;
	const struct event_row *rows = sequences->table->rows;

	d->count = overlay_positions(sequences->table);
	d->pattern_of = ops_alloc_none(d->count + 1);
	for (size_t i = 0; d->pattern_of && i < sequences->members.count; i++) {
		const struct kernel_member *member = &sequences->members.items[i];

		if (rows[member->row].index != OPS_NONE && (int64_t)member->pattern < top)
			d->pattern_of[rows[member->row].index] = member->pattern;
	}
	return d->pattern_of != NULL;
}

static enum overlay_action kernel_sequences_answer_mark_event(void *context, uint32_t index, struct ops_buffer *marks)
{
	struct drawing *d = context;
	struct ops_json_writer json = {.out = marks};
	const struct kernel_pattern *pattern;

	if (d->name_of && index == d->legend) {
		ops_json_key(&json, "Names");
		marks->failed |= !write_legend(d, &json);
		return OVERLAY_MARK;
	}
	if (index < d->count && d->name_of && d->name_of[index] != OPS_NONE) {
		ops_buffer_printf(marks, "\"%u\"", (unsigned)d->name_of[index]);
		return OVERLAY_RENAME;
	}
	if (index >= d->count || d->pattern_of[index] == OPS_NONE)
		return OVERLAY_KEEP;
	pattern = &d->sequences->patterns.items[d->pattern_of[index]];
	d->text.size = 0;
	kernel_pattern_text(d->sequences, pattern, &d->text);
	ops_json_member_open(&json, "Patterns", '{');
	ops_json_key_of(&json, d->text.bytes, d->text.size);
	ops_json_integer(&json, (int64_t)pattern->count);
	ops_json_close(&json, '}');
	marks->failed |= d->text.failed;
	return OVERLAY_MARK;
}

/* Adds an event with the legend if the file has none for it. */
static bool add_legend(void *context, size_t i, struct ops_buffer *event)
{
	struct drawing *d = context;
	struct ops_json_writer json = {.out = event};

	if (i || !d->name_of || d->legend != OPS_NONE)
		return false;
	ops_json_open(&json, '{');
	ops_json_member_text(&json, "ph", "M");
	ops_json_member_text(&json, "name", "PyTorch Profiler");
	ops_json_member_text(&json, "pid", "Spans");
	ops_json_member_open(&json, "args", '{');
	ops_json_key(&json, "Names");
	event->failed |= !write_legend(d, &json);
	ops_json_close(&json, '}');
	ops_json_close(&json, '}');
	return true;
}

static enum ops_code kernel_sequences_answer_write_overlay(struct analysis_run *run, size_t rank,
                                                           const struct kernel_sequences *sequences)
{
	struct drawing d = {.sequences = sequences};
	const struct overlay overlay = {.event = kernel_sequences_answer_mark_event, .add = add_legend, .context = &d,
	                                .prefix = "overlaid_"};
	struct ops_buffer written = {0};
	struct ops_string directory = analysis_text(run, "output_dir");
	int64_t top = analysis_count(run, "top_k");
	bool compress = analysis_bool(run, "compress_other_kernels");
	enum ops_code code = run->code;

	if (!code && directory.size) {
		code = drawing_init(&d, top) && (!compress || drawing_compress(&d))
		               ? overlay_write(&run->ranks[rank], directory.bytes, &overlay, &written, run->error)
		               : ops_fault_memory(run->error);
	}
	ops_buffer_release(&written);
	ops_buffer_release(&d.text);
	ops_free(d.pattern_of);
	ops_free(d.name_of);
	return code;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

enum ops_code analysis_kernel_sequences(struct analysis_run *run)
{
	struct ops_string name = analysis_text(run, "operator_name");
	struct ops_buffer text = {0};
	struct kernel_sequences sequences = {0};
	int64_t min_length = analysis_count(run, "min_pattern_len");
	size_t rank = analysis_rank(run);
	enum ops_code code = run->code;
	const struct event_table *table = code ? NULL : analysis_table(run, rank);

	if (!code && !(table && kernel_sequences_init(&sequences, table, name, (uint64_t)min_length)))
		code = analysis_failed(run);
	if (!code)
		kernel_sequences_answer_fill(&run->result.table, &sequences, &text);
	if (!code && text.failed)
		code = ops_fault_memory(run->error);
	if (!code)
		code = kernel_sequences_answer_write_overlay(run, rank, &sequences);
	kernel_sequences_release(&sequences);
	ops_buffer_release(&text);
	return code;
}
