/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace file, and then all advice for it, with one worker and with two. fuzzing.h describes how to run it.
 */
#include <opstrobe/internal/advice.h>

#include "fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ops_trace *trace = read_bytes(bytes, size);
	const struct ops_rank workers[] = {{.trace = trace, .name = "a_0"}, {.trace = trace, .name = "a_1"}};

	if (!trace)
		return 0;
	for (size_t count = 1; count <= 2; count++)
		for (int format = OPS_FORMAT_JSON; format <= OPS_FORMAT_MARKDOWN; format++) {
			struct ops_error error;
			char *text;
			size_t text_size;

			expect(ops_advise(workers, count, (enum ops_format)format, &text, &text_size, &error) == OPS_OK,
			       error.text);
			ops_free(text);
		}
	ops_trace_unref(trace);
	return 0;
}
