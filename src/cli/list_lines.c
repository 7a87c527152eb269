/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe lines`: what each line of the program cost.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>

#include <opstrobe/lines.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe lines [options] TRACE\n"
	"\n"
	"What each line of the program's source cost: time of its own, with all that it called,\n"
	"on devices, and memory that was allocated there, most first. The backward of an\n"
	"operator counts for the line that called the operator, and what torch does itself for\n"
	"the line that called torch. Record with with_stack=True.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  text is the default; JSON has all lines by file, in\n"
	"                                   the form that editors read\n"
	"  --limit N                        maximum number of lines (0: all); default 30\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe lines --limit 20 worker0.pt.trace.json.gz\n";

int cli_lines(char **arguments)
{
	const char *format = "text", *top_text = "30", *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--limit", &top_text, NULL},
	                                     {"--top", &top_text, NULL}, /* the former name */
	                                     {NULL, NULL, NULL}};
	struct cli_traces traces = {0};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0, top;
	bool help, done;
	int chosen, status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	chosen = cli_choice("lines", "format", format, cli_formats);
	if (chosen < 0 || !cli_number("lines", "number of lines", top_text, &top))
		return CLI_EXIT_USAGE;
	done = cli_one_trace_read(&traces, path);
	if (done) {
		enum ops_code code = ops_lines(traces.workers[0].trace, (enum ops_format)chosen, top, cli_table_columns(), &text,
		                               &size, &error);

		done = cli_print_data((enum ops_format)chosen, code, text, size, &error);
	}
	if (done && chosen == OPS_FORMAT_JSON)
		putchar('\n');
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
