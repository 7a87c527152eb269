/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for tests of graphs, written as trace files, and their results. Times are microseconds.
 */
#ifndef OPS_TEST_GRAPH_SCENE_H
#define OPS_TEST_GRAPH_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/read.h>

#include "../../base/failing.h"
#include "analyze/events/event_table.h"
#include "base/json.h"

/* A row: category, name, process, thread, start, duration, arguments (members of an object). */
#define ROW(cat, name, pid, tid, ts, dur, args)                                                    \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts          \
	",\"dur\":" #dur ",\"args\":{" args "}},"
#define OP(name, ts, dur) ROW("cpu_op", name, 9, 9, ts, dur, "")
#define CALL(name, ts, dur, correlation)                                                           \
	ROW("cuda_runtime", name, 9, 9, ts, dur, "\"correlation\":" #correlation)
#define KERNEL(name, stream, ts, dur, correlation)                                                 \
	ROW("kernel", name, 0, stream, ts, dur, "\"stream\":" #stream ",\"correlation\":" #correlation)

static inline struct ops_trace *scene_read(const char *rows)
{
	static char text[1 << 20];
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};
	int size = snprintf(text, sizeof(text), "{\"traceEvents\":[%s{\"ph\":\"M\",\"name\":\"x\",\"pid\":1}]}", rows);

	assert_true(size > 0 && (size_t)size < sizeof(text));
	if (ops_trace_read_memory(text, (size_t)size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

/* Reads the rows as a table of events, one at a time; released with scene_release. */
static inline struct event_set scene_events(const char *rows)
{
	static const struct ops_analyze_options options;
	static struct ops_rank rank;
	struct event_set set;

	rank = (struct ops_rank){.trace = scene_read(rows)};
	assert_int_equal(event_set_init(&set, &rank, 1, &options, false, OPS_RULES_OPSTROBE, NULL), OPS_OK);
	assert_non_null(event_set_table(&set, 0));
	return set;
}

static inline void scene_release(struct event_set *set)
{
	struct ops_trace *trace = (struct ops_trace *)set->tables[0].trace;

	event_set_release(set);
	ops_trace_unref(trace);
}

/* Returns the answer of an analysis about these rows, to be freed with ops_free. */
static inline char *scene_answer(const char *id, const char *rows, const char *args)
{
	struct ops_rank rank = {.trace = scene_read(rows)};
	struct ops_analyze_options options = {.args = args};
	struct ops_error error = {0};
	char *text = NULL;
	size_t size;

	if (ops_analyze(id, &rank, 1, &options, &text, &size, &error))
		fail_msg("%s", error.text);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	ops_trace_unref((struct ops_trace *)rank.trace);
	return text;
}

static inline void assert_answer(const char *id, const char *rows, const char *args, const char *piece)
{
	char *text = scene_answer(id, rows, args);

	if (!strstr(text, piece))
		fail_msg("no %s in %s", piece, text);
	ops_free(text);
}

/* Arguments that name what the rows do not have. */
static inline void assert_refused(const char *id, const char *rows, const char *args, const char *message)
{
	struct ops_rank rank = {.trace = scene_read(rows)};
	struct ops_analyze_options options = {.args = args};
	struct ops_error error = {0};
	char *text = NULL;
	size_t size;

	assert_int_equal(ops_analyze(id, &rank, 1, &options, &text, &size, &error), OPS_INVALID);
	assert_null(text);
	if (!strstr(error.text, message))
		fail_msg("no %s in %s", message, error.text);
	ops_trace_unref((struct ops_trace *)rank.trace);
}

/* Every allocation of an analysis fails once; then there is an error, or the answer is as it would be. */
struct scene_question {
	const char *id;
	const struct ops_trace *trace;
	const char *args;
	const char *answer;
};

static inline void scene_query(void *context)
{
	const struct scene_question *question = context;
	struct ops_rank rank = {.trace = question->trace};
	struct ops_analyze_options options = {.args = question->args};
	struct ops_error error = {0};
	char *text = NULL;
	size_t size;

	if (ops_analyze(question->id, &rank, 1, &options, &text, &size, &error)) {
		assert_int_equal(error.code, OPS_NO_MEMORY);
		return;
	}
	assert_string_equal(text, question->answer);
	ops_free(text);
}

static inline void assert_survives_failures(const char *id, const char *rows, const char *args)
{
	char *answer = scene_answer(id, rows, args);
	struct ops_trace *trace = scene_read(rows);
	struct scene_question question = {id, trace, args, answer};

	assert_true(fail_each(scene_query, &question) >= 10);
	ops_trace_unref(trace);
	ops_free(answer);
}

#endif
