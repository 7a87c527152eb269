/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe report`: traces as one HTML file, or as Markdown.
 */
#include "cli.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/error.h>
#include <opstrobe/internal/write.h>
#include <opstrobe/serve.h>
#include <opstrobe/internal/views.h>

#include "diagnose.h"
#include "options.h"
#include "stream.h"
#include "write.h"

#define NAME_SIZE_MAX 1023

static const char usage[] =
	"usage: opstrobe report [options] TRACE|DIRECTORY\n"
	"       opstrobe report --format markdown [options] TRACE|DIRECTORY...\n"
	"\n"
	"Writes one HTML file with the viewer and its data: views, advice, memory, stacks, and\n"
	"the timeline in as much detail as fits into a few megabytes. The file needs no server\n"
	"and no network: mail it, attach it, open it from disk. It contains no source files, and\n"
	"no text of a trace can run as code in it. For a directory it covers all traces below\n"
	"and how the ranks of a run wait for one another. --format markdown writes the main\n"
	"tables of each trace and the advice, for a pull request or the summary of a CI job.\n"
	"For the traces of one job it writes a table of the ranks and the main tables of the\n"
	"late rank, else of the first.\n"
	"\n"
	"options:\n"
	"  --format html|markdown  default html\n"
	"  -o, --output FILE       the file to write; default report.html, or standard\n"
	"                          output for Markdown\n"
	"  --help                  print this\n"
	"\n"
	"examples:\n"
	"  opstrobe report -o step.html worker0.pt.trace.json.gz\n"
	"  opstrobe report -o run.html traces/\n"
	"  opstrobe report --format markdown trace.json.gz >> \"$GITHUB_STEP_SUMMARY\"\n";

static bool put_part(FILE *out, enum ops_code code, char *text, size_t size, const struct ops_error *error)
{
	if (code) {
		cli_log("opstrobe: %s\n", error->text);
		return false;
	}
	fwrite(text, 1, size, out);
	ops_free(text);
	return true;
}

/* Writes the heading, with `name` in a code span, which only a backtick can end; without it if `name` is NULL. */
static void put_heading(FILE *out, const char *name)
{
	char text[NAME_SIZE_MAX + 1] = "";

	snprintf(text, sizeof(text), "%s", name ? name : "");
	ops_make_plain(text);
	for (char *c = text; *c; c++)
		*c = *c == '`' ? '?' : *c;
	fprintf(out, name ? "## Profile of `%s`\n\n" : "## Profile%s\n\n", text);
}

/* Adds a trace to the advisor. Writes its page if `is_shown`. */
static bool put_page(FILE *out, struct cli_stream *stream, size_t place, bool is_shown, struct ops_rank *worker,
                     struct ops_adviser *adviser)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;
	size_t size = 0;
	char *text = NULL;
	enum ops_code code = cli_stream_get(stream, place, &trace, &error);

	worker->trace = trace;
	if (!code && is_shown)
		code = ops_views_text(trace, OPS_RULES_OPSTROBE, OPS_VIEWS_MARKDOWN, &text, &size, &error);
	if (!code)
		code = ops_adviser_add(adviser, worker, &error);
	ops_trace_unref(trace);
	if (!code && !is_shown)
		return true;
	if (!code)
		put_heading(out, stream->count > 1 ? worker->name : NULL);
	if (!put_part(out, code, text, size, &error))
		return false;
	fputs("\n", out);
	return true;
}

static enum ops_code report_get_trace(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	return cli_stream_get(context, i, ret_trace, error);
}

#define EACH SIZE_MAX

/* Writes the page about the ranks if the traces are of one job. `*ret_shown` is then the one whose own page follows, since pages of many
 * ranks are too long to be read; EACH: each trace. */
static bool put_ranks(FILE *out, struct cli_stream *stream, const struct ops_rank *workers, size_t *ret_shown)
{
	const struct ops_trace_source traces = {report_get_trace, stream};
	struct ops_error error;
	size_t size = 0;
	char *text = NULL;
	enum ops_code code = ops_run_text(&traces, workers, stream->count, OPS_RULES_OPSTROBE, OPS_VIEWS_MARKDOWN, &text, &size, ret_shown, &error);

	if (!code && !text)
		return true;
	if (!code)
		fputs("## Profile of the ranks\n\n", out);
	if (!put_part(out, code, text, size, &error))
		return false;
	fputs("\n", out);
	return true;
}

/* Writes the ranks of a job and the page of one of them, or else the page of each trace, then the advice for all of them together. */
static bool put_markdown(FILE *out, struct cli_stream *stream)
{
	struct ops_adviser *adviser = ops_adviser_new();
	struct ops_rank *workers = cli_stream_ranks(stream);
	struct ops_error error;
	size_t size = 0, shown = EACH;
	char *text = NULL;
	bool done = adviser && workers;

	if (!done)
		fputs("opstrobe: out of memory\n", stderr);
	if (done && stream->count > 1)
		done = put_ranks(out, stream, workers, &shown);
	for (size_t i = 0; done && i < stream->count; i++)
		done = put_page(out, stream, i, shown == EACH || shown == i, &workers[i], adviser);
	if (done) {
		enum ops_code code = ops_adviser_finish(adviser, OPS_FORMAT_MARKDOWN, &text, &size, &error);

		done = put_part(out, code, text, size, &error);
	}
	free(workers);
	ops_adviser_free(adviser);
	return done;
}

static bool save_markdown(const char *output, struct cli_stream *stream)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool done = out && put_markdown(out, stream), failed = !out || ferror(out);

	failed |= out && fclose(out);
	if (failed)
		fputs("opstrobe: out of memory\n", stderr);
	done = done && !failed;
	if (done && ops_write_text(text, size, output, &error)) {
		cli_log("opstrobe: %s\n", error.text);
		done = false;
	}
	free(text);
	return done;
}

static bool write_markdown(char *const *paths, size_t count, const char *output)
{
	struct cli_stream stream;
	bool done = cli_stream_open(&stream, paths, count, CLI_AHEAD, 0) &&
	            (output ? save_markdown(output, &stream) : put_markdown(stdout, &stream));

	cli_stream_close(&stream);
	return done;
}

int cli_report(char **arguments)
{
	static const char *const formats[] = {"html", "markdown", NULL};
	const char *output = NULL, *format = "html";
	const struct cli_option options[] = {
		{"--output", &output, NULL}, {"-o", &output, NULL}, {"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct ops_error error;
	size_t count;
	bool help;
	int choice, status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	choice = cli_choice("report", "--format", format, formats);
	if (choice < 0)
		return CLI_EXIT_USAGE;
	if (choice == 0 && count > 1) {
		fputs("opstrobe report: HTML requires one trace, or a directory of traces\n", stderr);
		return CLI_EXIT_USAGE;
	}
	if (choice == 0 && !strcmp(arguments[1], "-")) {
		fputs("opstrobe report: for HTML the trace must be a regular file, because it is read more than once\n", stderr);
		return CLI_EXIT_USAGE;
	}
	if (choice == 0 && !output)
		output = "report.html";
	if (output && !cli_can_replace("report", output, (const char *const *)arguments + 1, count))
		return CLI_EXIT_USAGE;
	if (choice == 1 && !write_markdown(arguments + 1, count, output))
		return CLI_EXIT_FAILED;
	if (choice == 0 && ops_report_write(arguments[1], output, cli_print_diagnostic, &error)) {
		cli_log("opstrobe: %s\n", error.text);
		return CLI_EXIT_FAILED;
	}
	if (output)
		printf("%s\n", output);
	return CLI_EXIT_OK;
}
