/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads traces of a run, one rank each, and asks them: where the time of the GPUs went, and what to change in the program.
 *
 *     cc analyze.c $(pkg-config --cflags --libs opstrobe) -o analyze
 *     ./analyze rank0.json.gz rank1.json.gz
 */
#include <stdio.h>
#include <stdlib.h>

#include <opstrobe/advice.h>
#include <opstrobe/analyses.h>
#include <opstrobe/read.h>

#define RANKS_MAX 64

static int fail(const struct ops_error *error)
{
	fprintf(stderr, "analyze: %s\n", error->text);
	return EXIT_FAILURE;
}

static int print_breakdown(const struct ops_rank *ranks, size_t count)
{
	struct ops_analyze_options options = {OPS_FORMAT_TEXT, false, NULL, NULL, 0};
	struct ops_error error;
	char *text;
	size_t size;

	if (ops_analyze("temporal_breakdown", ranks, count, &options, &text, &size, &error))
		return fail(&error);
	fwrite(text, 1, size, stdout);
	ops_free(text);
	return EXIT_SUCCESS;
}

static int print_advice(const struct ops_rank *ranks, size_t count)
{
	struct ops_error error;
	char *text;
	size_t size;

	if (ops_advise(ranks, count, OPS_FORMAT_TEXT, &text, &size, &error))
		return fail(&error);
	fwrite(text, 1, size, stdout);
	ops_free(text);
	return EXIT_SUCCESS;
}

int main(int count, char **paths)
{
	static struct ops_rank ranks[RANKS_MAX];
	size_t read = 0;
	int status = EXIT_SUCCESS;

	for (int i = 1; i < count && read < RANKS_MAX && !status; i++) {
		struct ops_trace *trace = NULL;
		struct ops_error error;

		if (ops_trace_read(paths[i], NULL, &trace, &error)) {
			status = fail(&error);
			break;
		}
		ranks[read].rank = -1;
		ranks[read].trace = trace;
		ranks[read].name = paths[i];
		ranks[read++].path = paths[i];
	}
	if (!read && !status) {
		fputs("usage: analyze TRACE...\n", stderr);
		return EXIT_FAILURE;
	}
	ops_number_ranks(ranks, read);
	if (!status)
		status = print_breakdown(ranks, read);
	if (!status)
		status = print_advice(ranks, read);
	for (size_t i = 0; i < read; i++)
		ops_trace_unref((struct ops_trace *)ranks[i].trace);
	return status;
}
