/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe advise`: what to change in a program, at which line, and the predicted gain.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <opstrobe/internal/advice.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe advise [--format text|json|csv|markdown] TRACE|DIRECTORY...\n"
	"       opstrobe advise --list-rules [--format text|json|csv|markdown]\n"
	"\n"
	"Finds what wastes time or memory, and reports the lines, what to change and the predicted\n"
	"gain, the largest gain first. 'opstrobe run --advise' records all that the rules use.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --list-rules                     list the rules; markdown has all of their texts\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe advise trace.json\n";

static bool advise_add(void *context, const struct ops_rank *worker)
{
	struct ops_error error;

	if (!cli_adviser_add(context, worker, &error))
		return true;
	cli_log("opstrobe: %s\n", error.text);
	return false;
}

static int list_rules(size_t path_count, enum ops_format format)
{
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t size = 0;

	if (path_count) {
		cli_log("opstrobe advise: --list-rules takes no trace; see 'opstrobe advise --help'\n");
		return CLI_EXIT_USAGE;
	}
	code = ops_advice_rules(format, &text, &size, &error);
	return cli_print(code, text, size, &error);
}

int cli_advise(char **arguments)
{
	const char *format = "text";
	bool list = false, help;
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--list-rules", NULL, &list}, {NULL, NULL, NULL}};
	struct ops_adviser *adviser;
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t count, size = 0;
	int chosen, status = cli_parse_paths(arguments, options, usage, 0, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	chosen = cli_choice("advise", "format", format, ops_format_names);
	if (chosen < 0)
		return CLI_EXIT_USAGE;
	if (list)
		return list_rules(count, (enum ops_format)chosen);
	if (!count) {
		cli_log("opstrobe advise: no trace given; see 'opstrobe advise --help'\n");
		return CLI_EXIT_USAGE;
	}
	adviser = ops_adviser_new();
	if (!adviser)
		fputs("opstrobe: out of memory\n", stderr);
	status = CLI_EXIT_FAILED;
	if (adviser && cli_traces_each(arguments + 1, count, advise_add, adviser)) {
		code = ops_adviser_finish(adviser, (enum ops_format)chosen, &text, &size, &error);
		status = chosen == OPS_FORMAT_TEXT
		                 ? cli_print_folded(code, text, size, &error)
		                 : cli_print_data((enum ops_format)chosen, code, text, size, &error);
	}
	ops_adviser_free(adviser);
	return status;
}
