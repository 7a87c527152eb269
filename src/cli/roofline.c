/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe roofline`: how far operators are from the limits of the machine.
 */
#include "cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/roofline.h>

#include "options.h"
#include "steps.h"
#include "traces.h"

#define ROOF_MAX 65536 /* maximum size of a file with a roof */

static const char usage[] =
	"usage: opstrobe roofline [options] TRACE\n"
	"\n"
	"Lists operators by time, with the FLOPs and bytes that their shapes require, and how near\n"
	"they are to the roof: to what the CPU or GPU can compute and move at most. The roof of the\n"
	"CPU is what 'opstrobe run' or 'opstrobe roof' measured, that of a GPU what its maker\n"
	"publishes. Requires a trace that was recorded with record_shapes.\n"
	"\n"
	"options:\n"
	"  --by WHAT                        what a row is: operator (the default), shape, kernel, line\n"
	"                                   or module; lines and modules are sorted by avoidable time,\n"
	"                                   the time above their lower bound\n"
	"  --roof FLOPS,BANDWIDTH|FILE      another roof: FLOP/s and bytes/s (67T,3.35T), or a\n"
	"                                   file that 'opstrobe roof --output' wrote\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --limit N                        maximum number of rows (0: all); default 30\n"
	CLI_STEPS_OPTION
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe roofline --by shape --limit 20 worker0.pt.trace.json.gz\n";

/* Returns the text of the file that the option names, or else of the option itself. Returns NULL after printing an error. */
static char *read_roof(const char *option)
{
	FILE *file = fopen(option, "re");
	char *text = calloc(1, ROOF_MAX + 1);
	size_t size;

	if (!file && (errno != ENOENT || (!strchr(option, ',') && option[0] != '{'))) {
		cli_log("opstrobe roofline: cannot open roof '%s': %s\n", option, strerror(errno));
		free(text);
		return NULL;
	}
	if (!text) {
		fputs("opstrobe: out of memory\n", stderr);
	} else if (file) {
		size = fread(text, 1, ROOF_MAX, file);
		text[size] = '\0';
	} else {
		strncpy(text, option, ROOF_MAX);
	}
	if (file)
		fclose(file);
	return text;
}

static int print_roofline(const char *path, struct cli_steps *steps, const struct ops_roofline_options *how)
{
	struct cli_traces traces = {0};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	int status = CLI_EXIT_FAILED;

	if (cli_one_trace_read(&traces, path)) {
		enum ops_code code = cli_steps_cut(steps, path, &traces.workers[0].trace, &error);

		if (!code)
			code = ops_roofline(traces.workers[0].trace, how, &text, &size, &error);
		cli_steps_put_head(steps, code);
		status = cli_print_data(how->format, code, text, size, &error);
	}
	if (!status && how->format == OPS_FORMAT_JSON)
		putchar('\n');
	cli_traces_release(&traces);
	return status;
}

int cli_roofline(char **arguments)
{
	static const char *const kinds[] = {
		[OPS_ROOFLINE_OPERATOR] = "operator", [OPS_ROOFLINE_SHAPE] = "shape", [OPS_ROOFLINE_KERNEL] = "kernel",
		[OPS_ROOFLINE_LINE] = "line", [OPS_ROOFLINE_MODULE] = "module", NULL};
	const char *format = "text", *top_text = "30", *by = "operator", *roof = NULL, *steps_text = NULL, *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--limit", &top_text, NULL}, {"--by", &by, NULL},
	                                     {"--roof", &roof, NULL},     {"--steps", &steps_text, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_steps steps;
	struct ops_roofline_options how = {.columns = cli_table_columns(), .ascii = cli_ascii()};
	char *roof_text = NULL;
	bool help;
	int chosen, kind, status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	chosen = cli_choice("roofline", "format", format, ops_format_names);
	kind = chosen < 0 ? -1 : cli_choice("roofline", "--by", by, kinds);
	if (kind < 0 || !cli_number("roofline", "number of rows", top_text, &how.rows_max) ||
	    !cli_steps_parse("roofline", steps_text, (enum ops_format)chosen, &steps))
		return CLI_EXIT_USAGE;
	if (roof && !(roof_text = read_roof(roof)))
		return CLI_EXIT_FAILED;
	how.format = (enum ops_format)chosen;
	how.by = (enum ops_roofline_by)kind;
	how.roof = roof_text;
	status = print_roofline(path, &steps, &how);
	free(roof_text);
	return status;
}
