/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe views`: what traces look like at a glance, as text or as JSON.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>

#include <opstrobe/views.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe views [--format text|json] TRACE|DIRECTORY...\n"
	"\n"
	"Steps and where their time goes, devices, operators, kernels, memory, modules,\n"
	"communication and advice, of a trace that torch.profiler or Opstrobe wrote. Of a\n"
	"directory with the traces of several workers: each one's, and what they say\n"
	"together.\n"
	"\n"
	"options:\n"
	"  --format text|json  text (the default) is the most important, JSON is all\n"
	"  --help              print this\n"
	"\n"
	"example:\n"
	"  opstrobe views worker0.pt.trace.json.gz\n";

static bool print_text(const struct cli_traces *traces)
{
	bool done = true;

	for (size_t i = 0; done && i < traces->count; i++) {
		struct ops_error error;
		char *text = NULL;
		size_t size = 0;
		enum ops_code code;

		if (traces->count > 1)
			printf("%s--- %s ---\n", i ? "\n" : "", traces->files.list.items[i].path);
		code = ops_views_text(traces->workers[i].trace, cli_colours(), &text, &size, &error);
		done = cli_print(code, text, size, ops_free_views, &error);
	}
	return done;
}

static bool print_json(const struct cli_traces *traces)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = traces->files.is_folder ? ops_run_json(traces->workers, traces->count, &text, &size, &error)
	                                             : ops_views_json(traces->workers[0].trace, &text, &size, &error);

	if (!cli_print(code, text, size, ops_free_views, &error))
		return false;
	putchar('\n');
	return true;
}

int cli_views(char **arguments)
{
	static const char *const formats[] = {"text", "json", NULL};
	const char *format = "text";
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct cli_traces traces;
	size_t count;
	bool help, done;
	int status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	if (cli_choice("views", "format", format, formats) < 0)
		return CLI_EXIT_USAGE;
	done = cli_traces_read(&traces, arguments + 1, count) &&
	       (format[0] == 'j' ? print_json(&traces) : print_text(&traces));
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
