/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that print one table: options, reading, printing.
 */
#include "table_command.h"

#include <stdint.h>
#include <stdio.h>

static bool print_texts(const struct cli_traces *traces, const struct cli_table *table, size_t top, bool flag)
{
	bool done = true;

	for (size_t i = 0; done && i < traces->count; i++) {
		if (traces->count > 1)
			printf("%s--- %s ---\n", i ? "\n" : "", traces->files.list.items[i].path);
		done = table->print_text(&traces->workers[i], top, flag);
	}
	return done;
}

static bool print_table(const struct cli_traces *traces, const struct cli_table *table, int format, size_t top, bool flag)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code;

	if (format == OPS_ANALYSIS_TEXT && table->print_text)
		return print_texts(traces, table, top, flag);
	code = ops_view_table(traces->workers, traces->count, flag ? table->flagged_table : table->table,
	                      (enum ops_analysis_format)format, top, &text, &size, &error);
	return cli_print(code, text, size, ops_free_views, &error);
}

int cli_show_table(char **arguments, const struct cli_table *table)
{
	static const char *const formats[] = {
		[OPS_ANALYSIS_JSON] = "json", [OPS_ANALYSIS_TEXT] = "text", [OPS_ANALYSIS_CSV] = "csv",
		[OPS_ANALYSIS_MARKDOWN] = "markdown", NULL};
	const char *format_name = "text", *top_text = table->top;
	bool flag = false, help, done;
	const struct cli_option options[] = {{"--format", &format_name, NULL}, {"--top", &top_text, NULL},
	                                     {table->flag, NULL, &flag}, {NULL, NULL, NULL}};
	struct cli_traces traces;
	size_t count, top;
	int status = cli_parse_paths(arguments, options, table->usage, 1, SIZE_MAX, &count, &help);
	int format;

	if (status || help)
		return status;
	format = cli_choice(table->command, "format", format_name, formats);
	if (format < 0 || !cli_number(table->command, "number of rows", top_text, &top))
		return CLI_EXIT_USAGE;
	done = cli_traces_read(&traces, arguments + 1, count) && print_table(&traces, table, format, top, flag);
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
