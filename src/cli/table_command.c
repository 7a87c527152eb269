/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that print one table: options, reading, printing.
 */
#include "table_command.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "stream.h"

static bool print_texts(struct cli_stream *stream, const struct cli_table *table, size_t top, bool flag, const int64_t *at_ns)
{
	bool done = true;

	for (size_t i = 0; done && i < stream->count; i++) {
		const struct ops_trace_file *file = &stream->files.list.items[i];
		struct ops_trace *trace = NULL;
		struct ops_error error;

		done = !cli_stream_take(stream, i, &trace, &error);
		if (!done)
			cli_log("opstrobe: %s\n", error.text);
		else if (stream->count > 1)
			cli_put_heading(file->path, !i);
		done = done && table->print_text(&(struct ops_rank){.trace = trace, .name = file->worker, .span = file->span}, top, flag,
		                                 at_ns);
		ops_trace_unref(trace);
	}
	return done;
}

static bool table_command_print_table(struct cli_stream *stream, const struct cli_table *table, enum ops_format format,
                                      size_t top, bool flag, const int64_t *at_ns)
{
	const struct ops_trace_source source = {cli_stream_take, stream};
	const struct ops_view_table_options options = {
		.format = format, .rows_max = top, .source = &source, .columns = cli_table_columns(), .memory_at_ns = at_ns};
	struct ops_error error = {.text = "out of memory"};
	enum ops_code code = OPS_NO_MEMORY;
	struct ops_rank *workers;
	char *text = NULL;
	size_t size = 0;

	if (format == OPS_FORMAT_TEXT && table->print_text)
		return print_texts(stream, table, top, flag, at_ns);
	workers = cli_stream_ranks(stream);
	if (workers)
		code = ops_view_table_of(workers, stream->count, flag ? table->flagged_table : table->table, &options, &text, &size,
		                         &error);
	free(workers);
	return cli_print_data(format, code, text, size, &error);
}

int cli_show_table(char **arguments, const struct cli_table *table)
{
	const char *format_name = "text", *top_text = table->top, *at = NULL;
	int64_t at_ns = 0;
	bool flag = false, help, done;
	const struct cli_option options[] = {{"--format", &format_name, NULL}, {"--limit", &top_text, NULL},
	                                     {"--top", &top_text, NULL}, /* the former name */
	                                     {table->has_at ? "--at" : table->flag, table->has_at ? &at : NULL, table->has_at ? NULL : &flag},
	                                     {NULL, NULL, NULL}};
	struct cli_stream stream;
	size_t count, top;
	int status = cli_parse_paths(arguments, options, table->usage, 1, SIZE_MAX, &count, &help);
	int format;

	if (status || help)
		return status;
	format = cli_choice(table->command, "format", format_name, cli_formats);
	if (format < 0 || !cli_number(table->command, "number of rows", top_text, &top) ||
	    (at && !cli_time(table->command, "time", at, &at_ns)))
		return CLI_EXIT_USAGE;
	done = cli_stream_open(&stream, arguments + 1, count, CLI_AHEAD, 0) &&
	       table_command_print_table(&stream, table, (enum ops_format)format, top, flag, at ? &at_ns : NULL);
	cli_stream_close(&stream);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
