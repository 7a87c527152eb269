/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe advise`: what to change in a program, at which line, and what that would gain.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/advice.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe advise [--format text|json|markdown] TRACE|DIRECTORY...\n"
	"\n"
	"What costs the program time or memory without need, the line it comes from, what to\n"
	"change, and what that is predicted to gain, most first. The more a trace holds the\n"
	"more is found: record with with_stack, record_shapes, profile_memory and steps.\n"
	"\n"
	"options:\n"
	"  --format text|json|markdown  text is the default\n"
	"  --help                       print this\n"
	"\n"
	"example:\n"
	"  opstrobe advise trace.json\n";

int cli_advise(char **arguments)
{
	static const char *const formats[] = {[OPS_ADVICE_JSON] = "json", [OPS_ADVICE_TEXT] = "text",
	                                      [OPS_ADVICE_MARKDOWN] = "markdown", NULL};
	const char *format = "text";
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct cli_traces traces = {0};
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t count, size = 0;
	bool help, done;
	int chosen, status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	chosen = cli_choice("advise", "format", format, formats);
	if (chosen < 0)
		return CLI_EXIT_USAGE;
	done = cli_traces_read(&traces, arguments + 1, count);
	if (done) {
		code = ops_advise(traces.workers, traces.count, (enum ops_advice_format)chosen, &text, &size, &error);
		done = cli_print(code, text, size, ops_free_advice, &error);
	}
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
