/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the traces of a run, one for each rank, and prints where the time of the GPUs goes, the kernels, and what to change in the
 * program.
 *
 *     cc analyze.c $(pkg-config --cflags --libs opstrobe) -o analyze
 *     ./analyze rank0.json.gz rank1.json.gz
 */
#include <stdio.h>
#include <stdlib.h>

#include <opstrobe/query.h>
#include <opstrobe/read.h>

#define RANKS_MAX 64

static int fail(const struct ops_error *error)
{
	fprintf(stderr, "analyze: %s\n", error->text);
	return EXIT_FAILURE;
}

static int print_table(const struct ops_run *run, const char *id, const char *args)
{
	struct ops_query_options options = {sizeof(options), OPS_FORMAT_TEXT, 0, args, false};
	struct ops_error error;
	char *text;
	size_t size;

	if (ops_query(run, id, &options, &text, &size, &error))
		return fail(&error);
	printf("== %s\n\n", id);
	fwrite(text, 1, size, stdout);
	putchar('\n');
	ops_free(text);
	return EXIT_SUCCESS;
}

int main(int count, char **paths)
{
	static struct ops_rank ranks[RANKS_MAX];
	struct ops_run run = {ranks, 0, NULL};
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
	run.count = read;
	if (!status)
		status = print_table(&run, "temporal_breakdown", NULL);
	if (!status)
		status = print_table(&run, "kernels", "{\"limit\": 10}");
	if (!status)
		status = print_table(&run, "advise", NULL);
	for (size_t i = 0; i < read; i++)
		ops_trace_unref((struct ops_trace *)ranks[i].trace);
	return status;
}
