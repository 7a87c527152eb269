/* SPDX-License-Identifier: Apache-2.0
 *
 * `frequent_cuda_kernel_sequences` (14).
 */
#include "analyze/analysis.h"
#include "analyze/graph/kernel_sequences.h"
#include "base/fault.h"

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

enum ops_code analysis_kernel_sequences(struct analysis_run *run)
{
	struct ops_buffer name = {0}, text = {0};
	struct kernel_sequences sequences = {0};
	int64_t min_length = 0;
	size_t rank = 0;
	enum ops_code code = analysis_rank(run, &rank);

	if (!code)
		code = analysis_text(run, "operator_name", &name);
	if (!code)
		code = analysis_integer(run, "min_pattern_len", &min_length);
	if (!code && !kernel_sequences_init(&sequences, &run->events.tables[rank],
	                                    (struct ops_string){name.bytes, name.size},
	                                    min_length > 0 ? (uint64_t)min_length : 0))
		code = ops_fault_memory(run->error);
	if (!code)
		fill(&run->result.table, &sequences, &text);
	if (!code && text.failed)
		code = ops_fault_memory(run->error);
	kernel_sequences_release(&sequences);
	ops_buffer_release(&name);
	ops_buffer_release(&text);
	return code;
}
