/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe report`: traces as one HTML file, or one as Markdown.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/advice.h>
#include <opstrobe/serve.h>
#include <opstrobe/views.h>
#include <opstrobe/write.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe report [options] TRACE|DIRECTORY\n"
	"\n"
	"Writes one HTML file with the viewer and what it shows of a trace: views, advice,\n"
	"memory, stacks, and the timeline as far in as fits into some megabytes. It needs no\n"
	"server and no network: mail it, attach it, open it from disk. Source files are not in\n"
	"it, and nothing of a trace can run in it. Of a directory, all traces below are in it,\n"
	"and what the ranks of a run say together. In Markdown it is what matters most of one\n"
	"trace, as tables, for a pull request or the summary of a CI job.\n"
	"\n"
	"options:\n"
	"  --format html|markdown  html is the default\n"
	"  -o, --output FILE       where to write; the default is report.html, for Markdown\n"
	"                          standard output\n"
	"  --help                  print this\n"
	"\n"
	"examples:\n"
	"  opstrobe report -o step.html worker0.pt.trace.json.gz\n"
	"  opstrobe report -o run.html traces/\n"
	"  opstrobe report --format markdown trace.json.gz >> \"$GITHUB_STEP_SUMMARY\"\n";

static bool put_part(FILE *out, enum ops_code code, char *text, size_t size, void (*release)(char *text),
                     const struct ops_error *error)
{
	if (code) {
		fprintf(stderr, "opstrobe: %s\n", error->text);
		return false;
	}
	fwrite(text, 1, size, out);
	release(text);
	return true;
}

static bool put_markdown(FILE *out, const struct ops_worker *worker)
{
	struct ops_error error;
	size_t size = 0;
	char *text = NULL;
	enum ops_code code = ops_views_text(worker->trace, OPS_VIEWS_MARKDOWN, &text, &size, &error);

	fputs("## Profile\n\n", out);
	if (!put_part(out, code, text, size, ops_free_views, &error))
		return false;
	fputs("\n", out);
	code = ops_advise(worker, 1, OPS_ADVICE_MARKDOWN, &text, &size, &error);
	return put_part(out, code, text, size, ops_free_advice, &error);
}

static bool save_markdown(const char *output, const struct ops_worker *worker)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool done = out && put_markdown(out, worker), failed = !out || ferror(out);

	failed |= out && fclose(out);
	if (failed)
		fputs("opstrobe: out of memory\n", stderr);
	done = done && !failed;
	if (done && ops_write_text(text, size, output, &error)) {
		fprintf(stderr, "opstrobe: %s\n", error.text);
		done = false;
	}
	free(text);
	return done;
}

static bool write_markdown(const char *path, const char *output)
{
	struct cli_traces traces = {0};
	bool done = cli_one_trace_read(&traces, path);

	if (done)
		done = output ? save_markdown(output, &traces.workers[0]) : put_markdown(stdout, &traces.workers[0]);
	cli_traces_release(&traces);
	return done;
}

int cli_report(char **arguments)
{
	static const char *const formats[] = {"html", "markdown", NULL};
	const char *output = NULL, *format = "html", *path;
	const struct cli_option options[] = {
		{"--output", &output, NULL}, {"-o", &output, NULL}, {"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct ops_error error;
	bool help;
	int choice, status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	choice = cli_choice("report", "--format", format, formats);
	if (choice < 0)
		return CLI_EXIT_USAGE;
	if (choice == 0 && !strcmp(path, "-")) {
		fputs("opstrobe report: for HTML the trace has to be a file: it is read more than once\n", stderr);
		return CLI_EXIT_USAGE;
	}
	if (choice == 1 && !write_markdown(path, output))
		return CLI_EXIT_FAILED;
	if (choice == 0) {
		output = output ? output : "report.html";
		if (ops_report_write(path, output, &error)) {
			fprintf(stderr, "opstrobe: %s\n", error.text);
			return CLI_EXIT_FAILED;
		}
	}
	if (output)
		printf("%s\n", output);
	return CLI_EXIT_OK;
}
