/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe advise`: what to change in a program, at which line, and what that would gain.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <opstrobe/advice.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe advise [--format text|json|csv|markdown] TRACE|DIRECTORY...\n"
	"\n"
	"Finds what wastes time or memory, and says at which line, what to change and how much\n"
	"that is predicted to gain, largest gain first. More rules apply to traces that were\n"
	"recorded with with_stack, record_shapes, profile_memory and steps.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe advise trace.json\n";

static bool add(void *context, const struct ops_rank *worker)
{
	struct ops_error error;

	if (!cli_adviser_add(context, worker, &error))
		return true;
	cli_log("opstrobe: %s\n", error.text);
	return false;
}

int cli_advise(char **arguments)
{
	const char *format = "text";
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct ops_adviser *adviser;
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t count, size = 0;
	bool help, done;
	int chosen, status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	chosen = cli_choice("advise", "format", format, cli_formats);
	if (chosen < 0)
		return CLI_EXIT_USAGE;
	adviser = ops_adviser_new();
	if (!adviser)
		fputs("opstrobe: out of memory\n", stderr);
	done = adviser && cli_traces_each(arguments + 1, count, add, adviser);
	if (done) {
		code = ops_adviser_finish(adviser, (enum ops_format)chosen, &text, &size, &error);
		done = chosen == OPS_FORMAT_TEXT
		               ? cli_print_folded(code, text, size, &error)
		               : cli_print_data((enum ops_format)chosen, code, text, size, &error);
	}
	ops_adviser_free(adviser);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
