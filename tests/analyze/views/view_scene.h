/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for tests of views, written as trace files with only the relevant rows. Times are microseconds.
 */
#ifndef OPS_TEST_VIEW_SCENE_H
#define OPS_TEST_VIEW_SCENE_H

#include <stdio.h>
#include <string.h>

#include <opstrobe/read.h>
#include <opstrobe/internal/views.h>

#include "../../base/failing.h"

/* A row: category, name, process, thread, start, duration, arguments (members of an object). */
#define VIEW_ROW(cat, name, pid, tid, ts, dur, args)                                               \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts          \
	",\"dur\":" #dur ",\"args\":{" args "}},"
#define VIEW_STEP(n, ts, dur) VIEW_ROW("user_annotation", "ProfilerStep#" #n, 1, 1, ts, dur, "")
#define VIEW_OP(name, ts, dur, id) VIEW_ROW("cpu_op", name, 1, 1, ts, dur, "\"External id\":" #id)
#define VIEW_CALL(ts, dur, id, correlation)                                                        \
	VIEW_ROW("cuda_runtime", "cudaLaunchKernel", 1, 1, ts, dur,                                    \
	         "\"External id\":" #id ",\"correlation\":" #correlation)
#define VIEW_KERNEL(name, ts, dur, correlation)                                                    \
	VIEW_ROW("kernel", name, 0, 7, ts, dur, "\"device\":0,\"correlation\":" #correlation)
#define VIEW_MEMORY(ts, bytes, address, total, type, device)                                       \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" #ts     \
	",\"args\":{\"Bytes\":" #bytes ",\"Addr\":" #address ",\"Total Allocated\":" #total                              \
	",\"Total Reserved\":0,\"Device Type\":" #type ",\"Device Id\":" #device "}},"

static inline struct ops_trace *scene_read(const char *rows, const char *metadata)
{
	static char text[65536];
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};
	int size = snprintf(text, sizeof(text), "{%s\"traceEvents\":[%s{\"ph\":\"M\",\"name\":\"x\",\"pid\":1}]}", metadata, rows);

	assert_true(size > 0 && (size_t)size < sizeof(text));
	if (ops_trace_read_memory(text, (size_t)size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static inline char *scene_views(const char *rows, const char *metadata)
{
	struct ops_trace *trace = scene_read(rows, metadata);
	char *text;
	size_t size;

	assert_int_equal(ops_views_json(trace, OPS_RULES_OPSTROBE, &text, &size, NULL), OPS_OK);
	assert_int_equal(strlen(text), size);
	ops_trace_unref(trace);
	return text;
}

/* The text is JSON that holds this piece. */
static inline void assert_has(const char *text, const char *piece)
{
	if (!strstr(text, piece))
		fail_msg("'%s' is not in\n%s", piece, text);
}
static inline void assert_has_not(const char *text, const char *piece)
{
	if (strstr(text, piece))
		fail_msg("'%s' is in\n%s", piece, text);
}

#endif
