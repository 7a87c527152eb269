/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that print one table: options, reading, printing.
 */
#include "table_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/query.h>

#include "cli.h"
#include "steps.h"
#include "stream.h"

#define ARGS_MAX 128

/* Prints the table, and returns the exit status. */
static int print_run(const struct cli_table *table, struct cli_steps *steps, const struct ops_run *run, enum ops_format format, const char *args)
{
	const struct ops_query_options options = {
		.size = sizeof(options), .format = format, .args = args, .columns = cli_table_columns()};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = ops_query(run, table->command, &options, &text, &size, &error);

	cli_steps_put_head(steps, code);
	return cli_print_data(format, code, text, size, &error);
}

/* The traces that are listed: those of the stream, or the steps of each. */
struct listed {
	struct cli_stream stream;
	struct cli_steps steps;
};

/* The `get` of an ops_trace_source. */
static enum ops_code listed_get(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct listed *listed = context;
	struct ops_trace *trace = NULL;
	const struct ops_trace *part;
	enum ops_code code = cli_stream_get(&listed->stream, i, &trace, error);

	if (code)
		return code;
	part = trace;
	code = cli_steps_cut(&listed->steps, listed->stream.files.list.items[i].path, &part, error);
	if (code)
		ops_trace_unref(trace);
	else
		*ret_trace = (struct ops_trace *)part;
	return code;
}

static int print_pages(struct listed *listed, const struct cli_table *table, const char *args)
{
	struct cli_stream *stream = &listed->stream;
	int status = CLI_EXIT_OK;

	listed->steps.by_name = false; /* a heading has it */
	for (size_t i = 0; !status && i < stream->count; i++) {
		struct ops_rank rank = {.rank = 0};
		struct ops_trace *trace = NULL;
		struct ops_error error;
		enum ops_code code;

		if (stream->count > 1)
			cli_put_heading(stream->files.list.items[i].path, !i);
		code = listed_get(listed, i, &trace, &error);
		if (code)
			return cli_print(code, NULL, 0, &error);
		rank.trace = trace;
		status = print_run(table, &listed->steps, &(struct ops_run){.ranks = &rank, .count = 1}, OPS_FORMAT_TEXT, args);
		ops_trace_unref(trace);
	}
	return status;
}

static int print_table(struct listed *listed, const struct cli_table *table, enum ops_format format, const char *args)
{
	const struct ops_trace_source source = {listed_get, listed};
	struct ops_run run = {.count = listed->stream.count, .source = &source};
	struct ops_rank *workers;
	int status = CLI_EXIT_FAILED;

	listed->steps.by_name = run.count > 1;
	if (format == OPS_FORMAT_TEXT && table->page_each)
		return print_pages(listed, table, args);
	workers = cli_stream_ranks(&listed->stream);
	if (!workers)
		fputs("opstrobe: out of memory\n", stderr);
	run.ranks = workers;
	if (workers)
		status = print_run(table, &listed->steps, &run, format, args);
	free(workers);
	return status;
}

static void append_arg(char args[ARGS_MAX], const char *name, const char *value)
{
	size_t size = strlen(args);

	snprintf(args + size, ARGS_MAX - size, "%s\"%s\": %s", size > 1 ? ", " : "", name, value);
}

int cli_show_table(char **arguments, const struct cli_table *table)
{
	const char *format_name = "text", *limit_text = table->limit, *at = NULL, *steps_text = NULL;
	char args[ARGS_MAX] = "{", number[24], quoted[64];
	int64_t at_ns = 0;
	bool flags[CLI_TABLE_FLAGS] = {false}, help;
	const struct cli_option options[] = {{"--format", &format_name, NULL}, {"--limit", &limit_text, NULL},
	                                     {"--top", &limit_text, NULL}, /* the former name */
	                                     {"--steps", &steps_text, NULL},
	                                     {table->has_at ? "--at" : table->flags[0].name, table->has_at ? &at : NULL,
	                                      table->has_at ? NULL : &flags[0]},
	                                     {table->flags[1].name, NULL, &flags[1]},
	                                     {NULL, NULL, NULL}};
	struct listed listed;
	size_t count, limit;
	int status = cli_parse_paths(arguments, options, table->usage, 1, SIZE_MAX, &count, &help);
	int format;

	if (status || help)
		return status;
	format = cli_choice(table->command, "format", format_name, ops_format_names);
	if (format < 0 || !cli_number(table->command, "number of rows", limit_text, &limit) ||
	    (at && !cli_time(table->command, "time", at, &at_ns)) ||
	    !cli_steps_parse(table->command, steps_text, (enum ops_format)format, &listed.steps))
		return CLI_EXIT_USAGE;
	if (at && steps_text) {
		cli_log("opstrobe %s: choose either --at or --steps\n", table->command);
		return CLI_EXIT_USAGE;
	}
	listed.steps.is_whole = table->has_at;
	listed.steps.is_text &= !at;
	snprintf(number, sizeof(number), "%zu", limit);
	append_arg(args, "limit", limit ? number : "null");
	snprintf(number, sizeof(number), "%lld", (long long)at_ns);
	if (at)
		append_arg(args, "at_ns", number);
	if (table->has_at && steps_text) {
		snprintf(quoted, sizeof(quoted), "\"%" PRIu64 ":%" PRIu64 "\"", listed.steps.first, listed.steps.last);
		append_arg(args, "steps", quoted);
	}
	for (size_t i = 0; i < CLI_TABLE_FLAGS; i++)
		if (flags[i])
			append_arg(args, table->flags[i].option, "true");
	strcat(args, "}");
	status = CLI_EXIT_FAILED;
	if (cli_stream_open(&listed.stream, arguments + 1, count, CLI_AHEAD, 0))
		status = print_table(&listed, table, (enum ops_format)format, args);
	cli_stream_close(&listed.stream);
	return status;
}
