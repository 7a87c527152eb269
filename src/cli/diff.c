/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe diff`: two traces side by side, for people, programs and pull requests.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/read.h>
#include <opstrobe/views.h>

#include "options.h"

static const char usage[] =
	"usage: opstrobe diff [options] BASE NEW\n"
	"\n"
	"What changed from one trace to another: the time of a step, each stretch of it,\n"
	"and every operator. A step that takes longer is a regression when the difference\n"
	"is beyond the gate and beyond the noise from step to step.\n"
	"\n"
	"options:\n"
	"  --format text|json|markdown  text is the default\n"
	"  --gate PERCENT               how much longer a step may take, as 3% (0%)\n"
	"  --exit-on-regression         exit with status 3 when there is one\n"
	"  --help                       print this\n"
	"\n"
	"example:\n"
	"  opstrobe diff --gate 3% --exit-on-regression main.json.gz branch.json.gz\n";

static const char *const formats[] = {[OPS_DIFF_JSON] = "json", [OPS_DIFF_TEXT] = "text", [OPS_DIFF_MARKDOWN] = "markdown"};

static bool find_format(const char *name, enum ops_diff_format *ret_format)
{
	for (int i = OPS_DIFF_JSON; i <= OPS_DIFF_MARKDOWN; i++)
		if (!strcmp(formats[i], name)) {
			*ret_format = (enum ops_diff_format)i;
			return true;
		}
	fprintf(stderr, "opstrobe diff: '%s' is no format; there are text, json and markdown\n", name);
	return false;
}

/* "3%" or "3". */
static bool parse_gate(const char *text, double *ret_ratio)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%")) || !(percent >= 0 && percent <= 1e6)) {
		fprintf(stderr, "opstrobe diff: '%s' is no gate; it is percent, as 3%%\n", text);
		return false;
	}
	*ret_ratio = percent / 100;
	return true;
}

static struct ops_trace *read_trace(const char *path)
{
	struct ops_error error;
	struct ops_trace *trace;

	if (!ops_trace_read(path, NULL, &trace, &error))
		return trace;
	fprintf(stderr, "opstrobe: %s\n", error.text);
	return NULL;
}

static int compare(const char *const paths[2], const struct ops_diff_options *options, bool exit_on_regression)
{
	struct ops_trace *base = read_trace(paths[0]), *experiment = base ? read_trace(paths[1]) : NULL;
	struct ops_diff_verdict verdict;
	struct ops_error error;
	int status = CLI_EXIT_FAILED;
	char *text;
	size_t size;

	if (experiment && ops_diff(base, experiment, options, &text, &size, &verdict, &error)) {
		fprintf(stderr, "opstrobe: %s\n", error.text);
	} else if (experiment) {
		fwrite(text, 1, size, stdout);
		if (options->format == OPS_DIFF_JSON)
			putchar('\n');
		ops_free_views(text);
		status = exit_on_regression && verdict.regression ? CLI_EXIT_REGRESSION : CLI_EXIT_OK;
	}
	ops_trace_unref(base);
	ops_trace_unref(experiment);
	return status;
}

int cli_diff(char **arguments)
{
	const char *format = "text", *gate = "0%", *paths[2];
	bool exit_on_regression = false, help;
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--gate", &gate, NULL},
	                                     {"--exit-on-regression", NULL, &exit_on_regression}, {NULL, NULL, NULL}};
	struct ops_diff_options how = {0};
	int status = cli_parse(arguments, options, usage, paths, 2, &help);

	if (status || help)
		return status;
	if (!find_format(format, &how.format) || !parse_gate(gate, &how.gate_ratio))
		return CLI_EXIT_USAGE;
	return compare(paths, &how, exit_on_regression);
}
