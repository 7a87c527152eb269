/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are traces.
 */
#ifndef OPS_TEST_READING_H
#define OPS_TEST_READING_H

#include <opstrobe/read.h>

static inline struct ops_trace *read_text(const char *text)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read_memory(text, strlen(text), NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

#endif
