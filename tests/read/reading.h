/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are traces, and the notes from reading them.
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

static inline bool is_noted(const struct ops_trace *trace, enum ops_note_kind kind)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (notes[i].kind == kind)
			return true;
	return false;
}

static inline void assert_noted(const struct ops_trace *trace, enum ops_note_kind kind)
{
	if (!is_noted(trace, kind))
		fail_msg("not noted: %s", ops_note_text(kind));
}

#endif
