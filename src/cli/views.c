/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe views`: what traces look like at a glance, as text or as JSON.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/read.h>
#include <opstrobe/views.h>

#include "files.h"
#include "options.h"

static const char usage[] =
	"usage: opstrobe views [--format text|json] TRACE|DIRECTORY\n"
	"\n"
	"Steps and where their time goes, devices, operators, kernels, memory, modules,\n"
	"communication and advice, of a trace that torch.profiler or Opstrobe wrote. Of a\n"
	"directory with the traces of several workers: each one's, and what they say\n"
	"together.\n"
	"\n"
	"options:\n"
	"  --format text|json  text (the default) is the most important, JSON is all\n"
	"  --help              print this\n"
	"\n"
	"example:\n"
	"  opstrobe views worker0.pt.trace.json.gz\n";

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

/* Prints the text and frees it, or says what went wrong. */
static bool print(enum ops_code code, char *text, size_t size, const struct ops_error *error)
{
	if (code) {
		fprintf(stderr, "opstrobe: %s\n", error->text);
		return false;
	}
	fwrite(text, 1, size, stdout);
	ops_free_views(text);
	return true;
}

static bool print_text(const struct traces *traces)
{
	for (size_t i = 0; i < traces->count; i++) {
		struct ops_error error;
		char *text = NULL;
		size_t size = 0;
		enum ops_code code;

		if (traces->count > 1)
			printf("%s--- %s ---\n", i ? "\n" : "", traces->files.items[i].path);
		code = ops_views_text(traces->workers[i].trace, isatty(STDOUT_FILENO), &text, &size, &error);
		if (!print(code, text, size, &error))
			return false;
	}
	return true;
}

static bool print_json(const struct traces *traces)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = traces->files.is_folder ? ops_run_json(traces->workers, traces->count, &text, &size, &error)
	                                             : ops_views_json(traces->workers[0].trace, &text, &size, &error);

	if (!print(code, text, size, &error))
		return false;
	putchar('\n');
	return true;
}

int cli_views(char **arguments)
{
	const char *format = "text", *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct traces traces = {0};
	bool help, done;
	int status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	if (strcmp(format, "text") && strcmp(format, "json")) {
		fprintf(stderr, "opstrobe views: '%s' is no format; there are text and json\n", format);
		return CLI_EXIT_USAGE;
	}
	done = read_traces(&traces, path) && (format[0] == 'j' ? print_json(&traces) : print_text(&traces));
	release_traces(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
