/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe report`: a trace as one HTML file.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <string.h>

#include <opstrobe/serve.h>

#include "options.h"

static const char usage[] =
	"usage: opstrobe report [options] TRACE\n"
	"\n"
	"Writes one HTML file with the viewer and what it shows of a trace: views, advice,\n"
	"memory, stacks, and the timeline as far in as fits into some megabytes. It needs no\n"
	"server and no network: mail it, attach it, open it from disk. Source files are not in\n"
	"it, and nothing of a trace can run in it.\n"
	"\n"
	"options:\n"
	"  -o, --output FILE  where to write; report.html is the default\n"
	"  --help             print this\n"
	"\n"
	"example:\n"
	"  opstrobe report -o step.html worker0.pt.trace.json.gz\n";

int cli_report(char **arguments)
{
	const char *output = "report.html", *path;
	const struct cli_option options[] = {{"--output", &output, NULL}, {"-o", &output, NULL}, {NULL, NULL, NULL}};
	struct ops_error error;
	bool help;
	int status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	if (!strcmp(path, "-")) {
		fputs("opstrobe report: the trace has to be a file: it is read more than once\n", stderr);
		return CLI_EXIT_USAGE;
	}
	if (ops_report_write(path, output, &error)) {
		fprintf(stderr, "opstrobe: %s\n", error.text);
		return CLI_EXIT_FAILED;
	}
	printf("%s\n", output);
	return CLI_EXIT_OK;
}
