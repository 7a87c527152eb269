/* SPDX-License-Identifier: Apache-2.0
 *
 * Analyses of small files written in a test: their results as JSON, with and without memory.
 */
#ifndef OPS_TEST_ASKING_H
#define OPS_TEST_ASKING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/read.h>

#include "../base/failing.h"

struct question {
	const char *id;
	const char *args;
	struct ops_rank ranks[4];
	size_t count;
	const char *answer;
};

/* The trace whose events are `rows`. */
static inline const struct ops_trace *asking_trace(const char *rows)
{
	struct ops_trace *trace;
	struct ops_error error;
	char *text;
	int size = asprintf(&text, "{\"traceEvents\":[%s]}", rows);

	assert_true(size > 0);
	if (ops_trace_read_memory(text, (size_t)size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	free(text);
	return trace;
}

/* Creates a file with this text, to be unlinked; the caller frees its name. */
static inline char *asking_file(const char *text)
{
	char *path = strdup("/tmp/opstrobe-test-XXXXXX");
	int descriptor = mkstemp(path);

	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
	close(descriptor);
	return path;
}

/* Returns the answer without the line end. */
static inline enum ops_code asking_once(const struct question *question, char **ret_text, struct ops_error *error)
{
	struct ops_analyze_options options = {.args = question->args};
	size_t size;
	enum ops_code code =
		ops_analyze(question->id, question->ranks, question->count, &options, ret_text, &size, error);

	if (!code && size && (*ret_text)[size - 1] == '\n')
		(*ret_text)[size - 1] = '\0';
	return code;
}

/* Either the answer, or that memory is out. */
static inline void asking_or_not(void *context)
{
	const struct question *question = context;
	struct ops_error error;
	char *text = NULL;
	enum ops_code code = asking_once(question, &text, &error);

	if (code) {
		assert_int_equal(code, OPS_NO_MEMORY);
		assert_null(text);
	} else {
		assert_string_equal(text, question->answer);
		ops_free(text);
	}
}

/* Every allocation fails once, too. */
static inline void asking_gives(struct question question, const char *answer)
{
	struct ops_error error = {0};
	char *text = NULL;

	if (asking_once(&question, &text, &error))
		fail_msg("%s", error.text);
	assert_string_equal(text, answer);
	ops_free(text);
	question.answer = answer;
	assert_true(fail_each(asking_or_not, &question) > 0);
}

static inline void asking_fails(struct question question, enum ops_code code, const char *message)
{
	struct ops_error error = {0};
	char *text = NULL;

	assert_int_equal(asking_once(&question, &text, &error), code);
	assert_null(text);
	assert_non_null(strstr(error.text, message));
}

static inline void asking_done(struct question *question)
{
	for (size_t i = 0; i < question->count; i++)
		ops_trace_unref((struct ops_trace *)question->ranks[i].trace);
}

/* Rows in Kineto's format, with `extra` after their arguments. */
#define ROW(category, name, tid, ts, dur, args)                                                    \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur  \
	",\"args\":{" args "}}"
#define STEP(number, ts, dur) ROW("user_annotation", "ProfilerStep#" #number, 1, ts, dur, "")
#define LAUNCH(ts, correlation) ROW("cuda_runtime", "cudaLaunchKernel", 1, ts, 1, "\"correlation\":" #correlation)
#define KERNEL(name, ts, dur, correlation, args)                                                   \
	ROW("kernel", name, 7, ts, dur, "\"device\":0,\"stream\":7,\"correlation\":" #correlation args)

#endif
