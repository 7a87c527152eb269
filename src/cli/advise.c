/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe advise`: what to change in a program, at which line, and what that would gain.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/advice.h>
#include <opstrobe/read.h>

#include "files.h"
#include "options.h"

static const char usage[] =
	"usage: opstrobe advise [--format text|json|markdown] TRACE|DIRECTORY\n"
	"\n"
	"What costs the program time or memory without need, the line it comes from, what to\n"
	"change, and what that is predicted to gain, most first. The more a trace holds the\n"
	"more is found: record with with_stack, record_shapes, profile_memory and steps.\n"
	"\n"
	"options:\n"
	"  --format text|json|markdown  text is the default\n"
	"  --help                       print this\n"
	"\n"
	"example:\n"
	"  opstrobe advise trace.json\n";

/* All traces of a path, read, and who ran them. */
struct traces {
	struct cli_files files;
	struct ops_worker *workers;
	size_t count;
};

static bool read_traces(struct traces *traces, const char *path)
{
	struct ops_error error;

	if (!cli_files_find(&traces->files, path))
		return false;
	traces->workers = calloc(traces->files.count, sizeof(*traces->workers));
	if (!traces->workers) {
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	for (size_t i = 0; i < traces->files.count; i++) {
		const struct cli_file *file = &traces->files.items[i];
		struct ops_trace *trace;

		if (ops_trace_read(file->path, NULL, &trace, &error)) {
			fprintf(stderr, "opstrobe: %s\n", error.text);
			return false;
		}
		traces->workers[traces->count++] = (struct ops_worker){trace, file->worker, file->span};
	}
	return true;
}

static void release_traces(struct traces *traces)
{
	for (size_t i = 0; i < traces->count; i++)
		ops_trace_unref((struct ops_trace *)traces->workers[i].trace);
	free(traces->workers);
	cli_files_release(&traces->files);
}

static int print(const struct traces *traces, enum ops_advice_format format)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;

	if (ops_advise(traces->workers, traces->count, format, &text, &size, &error)) {
		fprintf(stderr, "opstrobe: %s\n", error.text);
		return CLI_EXIT_FAILED;
	}
	fwrite(text, 1, size, stdout);
	if (format == OPS_ADVICE_JSON)
		putchar('\n');
	ops_free_advice(text);
	return CLI_EXIT_OK;
}

int cli_advise(char **arguments)
{
	static const char *const formats[] = {[OPS_ADVICE_JSON] = "json", [OPS_ADVICE_TEXT] = "text",
	                                      [OPS_ADVICE_MARKDOWN] = "markdown"};
	const char *format = "text", *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct traces traces = {0};
	size_t chosen = 0;
	bool help;
	int status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	while (chosen < 3 && strcmp(format, formats[chosen]))
		chosen++;
	if (chosen == 3) {
		fprintf(stderr, "opstrobe advise: '%s' is no format; there are text, json and markdown\n", format);
		return CLI_EXIT_USAGE;
	}
	status = read_traces(&traces, path) ? print(&traces, (enum ops_advice_format)chosen) : CLI_EXIT_FAILED;
	release_traces(&traces);
	return status;
}
