/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the result of one query on one trace; see ask.h.
 */
#include "ask.h"

#include <string.h>

#include "options.h"

int cli_print_query(char **arguments, const char *usage, const char *id, struct cli_traces *traces)
{
	const char *format = "text", *path;
	const struct cli_option options[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
	struct ops_query_options how = {.size = sizeof(how)};
	struct ops_error error;
	struct ops_rank rank;
	enum ops_code code;
	size_t size = 0;
	char *text = NULL;
	bool help;
	int choice, status;

	*traces = (struct cli_traces){0};
	status = cli_parse(arguments, options, usage, &path, 1, &help);
	if (status || help)
		return status;
	choice = cli_choice(arguments[0], "--format", format, ops_format_names);
	if (choice < 0)
		return CLI_EXIT_USAGE;
	if (!cli_one_trace_read(traces, path))
		return CLI_EXIT_FAILED;
	/* For a directory, reports the file chosen from it; for standard input, "-". */
	if (strcmp(path, "-") != 0)
		path = traces->files.list.items[0].path;
	rank = (struct ops_rank){.rank = 0, .trace = traces->workers[0].trace, .path = path};
	how.format = (enum ops_format)choice;
	how.columns = cli_table_columns();
	code = ops_query(&(struct ops_run){.ranks = &rank, .count = 1}, id, &how, &text, &size, &error);
	return cli_print_data(how.format, code, text, size, &error);
}
