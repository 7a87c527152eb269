/* SPDX-License-Identifier: Apache-2.0
 *
 * `frequent_cuda_kernel_sequences` (14): a table of the patterns, and with an output_dir a copy of the trace where those who
 * are in one of the most frequent say so.
 */
#include "analyze/analysis.h"
#include "analyze/graph/kernel_sequences.h"
#include "analyze/graph/overlay.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_writer.h"

static void fill(struct result_table *out, const struct kernel_sequences *sequences, struct ops_buffer *text)
{
	result_column(out, "pattern", RESULT_TEXT);
	result_column(out, "count", RESULT_INTEGER);
	result_column(out, "GPU kernel duration (us)", RESULT_TIME);
	result_column(out, "CPU op duration (us)", RESULT_TIME);
	for (size_t i = 0; i < sequences->patterns.count; i++) {
		const struct kernel_pattern *pattern = &sequences->patterns.items[i];

		text->size = 0;
		kernel_pattern_text(sequences, pattern, text);
		result_text_copy(out, text->bytes, text->size);
		result_integer(out, (int64_t)pattern->count);
		result_time(out, pattern->kernels_ns);
		result_time(out, pattern->operators_ns);
	}
}

/* --- overlay --------------------------------------------------------------------------------------------------------- */

struct drawing {
	const struct kernel_sequences *sequences;
	uint32_t *pattern_of; /* by place in the file; OPS_NONE */
	size_t count;
	struct ops_buffer text;
};

static bool drawing_init(struct drawing *d, int64_t top)
{
	const struct kernel_sequences *sequences = d->sequences;
	const struct event_row *rows = sequences->table->rows;

	for (size_t i = 0; i < sequences->table->count; i++)
		if (rows[i].index != OPS_NONE && rows[i].index >= d->count)
			d->count = (size_t)rows[i].index + 1;
	d->pattern_of = ops_realloc_array(NULL, d->count + 1, sizeof(*d->pattern_of));
	for (size_t i = 0; d->pattern_of && i < d->count; i++)
		d->pattern_of[i] = OPS_NONE;
	for (size_t i = 0; d->pattern_of && i < sequences->members.count; i++) {
		const struct kernel_member *member = &sequences->members.items[i];

		if (rows[member->row].index != OPS_NONE && (int64_t)member->pattern < top)
			d->pattern_of[rows[member->row].index] = member->pattern;
	}
	return d->pattern_of != NULL;
}

static enum overlay_action mark_event(void *context, uint32_t index, struct ops_buffer *marks)
{
	struct drawing *d = context;
	struct ops_json_writer json = {.out = marks};
	const struct kernel_pattern *pattern;

	if (index >= d->count || d->pattern_of[index] == OPS_NONE)
		return OVERLAY_KEEP;
	pattern = &d->sequences->patterns.items[d->pattern_of[index]];
	d->text.size = 0;
	kernel_pattern_text(d->sequences, pattern, &d->text);
	ops_json_key(&json, "Patterns");
	ops_json_open(&json, '{');
	ops_json_key_of(&json, d->text.bytes, d->text.size);
	ops_json_integer(&json, (int64_t)pattern->count);
	ops_json_close(&json, '}');
	marks->failed |= d->text.failed;
	return OVERLAY_MARK;
}

static bool add_nothing(void *context, size_t i, struct ops_buffer *event)
{
	(void)context, (void)i, (void)event;
	return false;
}

static enum ops_code write_overlay(struct analysis_run *run, size_t rank, const struct kernel_sequences *sequences)
{
	struct drawing d = {.sequences = sequences};
	const struct overlay overlay = {mark_event, add_nothing, &d};
	struct ops_buffer directory = {0}, written = {0};
	int64_t top;
	enum ops_code code = analysis_text(run, "output_dir", &directory);

	if (!code)
		code = analysis_integer(run, "top_k", &top);
	if (!code && directory.size && !run->ranks[rank].path)
		code = ops_fault(run->error, OPS_INVALID, "option 'output_dir' wants a trace that was read from a file");
	if (!code && directory.size) {
		ops_buffer_append(&directory, "", 1);
		code = !directory.failed && drawing_init(&d, top)
		               ? overlay_write(run->ranks[rank].path, directory.bytes, "overlaid_", &overlay, &written, run->error)
		               : ops_fault_memory(run->error);
	}
	ops_buffer_release(&directory);
	ops_buffer_release(&written);
	ops_buffer_release(&d.text);
	ops_free(d.pattern_of);
	return code;
}

/* --- all ------------------------------------------------------------------------------------------------------------- */

enum ops_code analysis_kernel_sequences(struct analysis_run *run)
{
	struct ops_buffer name = {0}, text = {0};
	struct kernel_sequences sequences = {0};
	const struct event_table *table;
	int64_t min_length = 0;
	size_t rank = 0;
	enum ops_code code = analysis_rank(run, &rank);

	if (!code)
		code = analysis_text(run, "operator_name", &name);
	if (!code)
		code = analysis_integer(run, "min_pattern_len", &min_length);
	table = code ? NULL : analysis_table(run, rank);
	if (!code && !(table && kernel_sequences_init(&sequences, table, (struct ops_string){name.bytes, name.size},
	                                              min_length > 0 ? (uint64_t)min_length : 0)))
		code = analysis_failed(run);
	if (!code)
		fill(&run->result.table, &sequences, &text);
	if (!code && text.failed)
		code = ops_fault_memory(run->error);
	if (!code)
		code = write_overlay(run, rank, &sequences);
	kernel_sequences_release(&sequences);
	ops_buffer_release(&name);
	ops_buffer_release(&text);
	return code;
}
