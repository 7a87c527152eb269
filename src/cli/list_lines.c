/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe lines`: the cost of each line of the program.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>

#include <opstrobe/internal/lines.h>

#include "options.h"
#include "steps.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe lines [options] TRACE\n"
	"\n"
	"Lists source lines by time: self time, time with calls, device time and allocated\n"
	"memory. Lines of the program come first, then those of libraries. The backward pass of\n"
	"an operator counts for the line that called the operator, and code inside torch for the\n"
	"line that called torch. Requires a trace of 'opstrobe run', or one recorded with\n"
	"with_stack. Without --with-stack, samples show where Python code takes time.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text; json has all lines by file, for\n"
	"                                   editors\n"
	"  --limit N                        maximum number of lines (0: all); default 30\n"
	CLI_STEPS_OPTION
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe lines --limit 20 worker0.pt.trace.json.gz\n";

int cli_lines(char **arguments)
{
	const char *format = "text", *top_text = "30", *steps_text = NULL, *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--limit", &top_text, NULL},
	                                     {"--top", &top_text, NULL}, /* the former name */
	                                     {"--steps", &steps_text, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_steps steps;
	struct cli_traces traces = {0};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0, top;
	bool help;
	int chosen, status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	chosen = cli_choice("lines", "format", format, ops_format_names);
	if (chosen < 0 || !cli_number("lines", "number of lines", top_text, &top) ||
	    !cli_steps_parse("lines", steps_text, (enum ops_format)chosen, &steps))
		return CLI_EXIT_USAGE;
	status = CLI_EXIT_FAILED;
	if (cli_one_trace_read(&traces, path)) {
		enum ops_code code = cli_steps_cut(&steps, path, &traces.workers[0].trace, &error);

		if (!code)
			code = ops_lines(traces.workers[0].trace, (enum ops_format)chosen, top, cli_table_columns(), &text, &size, &error);
		cli_steps_put_head(&steps, code);
		status = cli_print_data((enum ops_format)chosen, code, text, size, &error);
	}
	if (!status && chosen == OPS_FORMAT_JSON)
		putchar('\n');
	cli_traces_release(&traces);
	return status;
}
