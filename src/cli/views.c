/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe views`: an overview of traces, as text or as JSON.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/views.h>

#include "options.h"
#include "stream.h"
#include "traces.h"

#define ROWS_SHOWN "20" /* of each table in a page */

static const char usage[] =
	"usage: opstrobe views [options] TRACE|DIRECTORY...\n"
	"\n"
	"Shows where the time of steps goes, devices, operators, kernels, memory, modules,\n"
	"communication and advice. For a directory with the traces of the ranks of a job, shows\n"
	"a line for each rank, which one is late, and advice.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text, a summary; json has everything; csv and\n"
	"                                   markdown have steps, operators and kernels as one\n"
	"                                   table, markdown the first rows of each\n"
	"  --rules opstrobe|tensorboard|hta\n"
	"                                   whose definitions apply; tensorboard has the figures of\n"
	"                                   PyTorch's legacy plugin, hta classes of device work as\n"
	"                                   Holistic Trace Analysis; default opstrobe\n"
	"  --top-finding                    json: with the first finding of `opstrobe advise`\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe views worker0.pt.trace.json.gz\n";

/* Returns the capabilities of the terminal; without a terminal, UTF-8. */
static unsigned views_terminal_flags(void)
{
	return (cli_colours() ? OPS_VIEWS_COLOURS : 0) | (cli_ascii() ? OPS_VIEWS_ASCII : 0) | OPS_VIEWS_COLUMNS(cli_columns());
}

struct views_request {
	enum ops_format format;
	enum ops_rules rules;
	bool top_finding;
};

/* Prints the page of a trace, and passes the trace to the advisor. Returns the exit status. */
static int print_page(struct cli_stream *stream, size_t place, enum ops_rules rules, struct ops_rank *worker, struct ops_adviser *adviser)
{
	struct ops_error error;
	struct ops_trace *trace;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = cli_stream_get(stream, place, &trace, &error);

	if (!code && stream->count > 1)
		cli_put_heading(stream->files.list.items[place].path, !place);
	if (!code)
		code = ops_views_text(trace, rules, views_terminal_flags(), &text, &size, &error);
	if (!code) {
		worker->trace = trace;
		code = cli_adviser_add(adviser, worker, &error);
	}
	ops_trace_unref(trace);
	return cli_print_folded(code, text, size, &error);
}

/* Prints the first findings. */
static int print_advice(struct ops_adviser *adviser)
{
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t size = 0;

	printf(cli_colours() ? "\n\033[1madvice\033[0m\n" : "\nadvice\n");
	code = ops_adviser_finish(adviser, OPS_FORMAT_BRIEF, &text, &size, &error);
	return cli_print_folded(code, text, size, &error);
}

/* The traces as they are read for the views, and the advisor to which each is added; NULL: none. */
struct views_source {
	struct cli_stream *stream;
	struct ops_rank *workers;
	struct ops_adviser *adviser;
};

static enum ops_code views_get_trace(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct views_source *source = context;
	enum ops_code code = cli_stream_get(source->stream, i, ret_trace, error);

	if (!code && *ret_trace && source->adviser) {
		source->workers[i].trace = *ret_trace;
		code = cli_adviser_add(source->adviser, &source->workers[i], error);
		source->workers[i].trace = NULL; /* the next trace is read when it is needed */
	}
	return code;
}

/* Prints the page about the ranks of a job, and passes all traces to the advisor. `*ret_printed` is false if the traces are not of one
 * job. Returns the exit status. */
static int print_ranks(struct cli_stream *stream, enum ops_rules rules, struct views_source *source, bool *ret_printed)
{
	const struct ops_trace_source traces = {views_get_trace, source};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = ops_run_text(&traces, source->workers, stream->count, rules, views_terminal_flags(), &text, &size, NULL, &error);

	*ret_printed = !code && text;
	return !code && !text ? CLI_EXIT_OK : cli_print_folded(code, text, size, &error);
}

/* Prints a page for each trace. */
static int views_print_pages(struct cli_stream *stream, enum ops_rules rules, struct views_source *source)
{
	int status = CLI_EXIT_OK;

	for (size_t i = 0; !status && i < stream->count; i++)
		status = print_page(stream, i, rules, &source->workers[i], source->adviser);
	return status;
}

static int views_print_text(struct cli_stream *stream, enum ops_rules rules)
{
	struct views_source source = {stream, cli_stream_ranks(stream), ops_adviser_new()};
	int status = source.workers && source.adviser ? CLI_EXIT_OK : CLI_EXIT_FAILED;
	bool printed = false;

	if (!status && stream->count > 1) {
		status = print_ranks(stream, rules, &source, &printed);
		if (!status && !printed) { /* it has seen the first traces only */
			ops_adviser_free(source.adviser);
			source.adviser = ops_adviser_new();
			status = source.adviser ? CLI_EXIT_OK : CLI_EXIT_FAILED;
		}
	}
	if (!source.workers || !source.adviser)
		fputs("opstrobe: out of memory\n", stderr);
	if (!status && !printed)
		status = views_print_pages(stream, rules, &source);
	if (!status)
		status = print_advice(source.adviser);
	free(source.workers);
	ops_adviser_free(source.adviser);
	return status;
}

static enum ops_code make_json(struct views_source *source, enum ops_rules rules, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_trace_source traces = {views_get_trace, source};
	struct ops_trace *trace;
	enum ops_code code;

	if (source->stream->files.is_folder)
		return ops_run_json(&traces, source->workers, source->stream->count, rules, ret_text, ret_size, error);
	code = views_get_trace(source, 0, &trace, error);
	if (!code)
		code = ops_views_json(trace, rules, ret_text, ret_size, error);
	ops_trace_unref(trace);
	return code;
}

static int print_json(struct cli_stream *stream, const struct views_request *request)
{
	struct views_source source = {stream, cli_stream_ranks(stream), request->top_finding ? ops_adviser_new() : NULL};
	struct ops_error error = {.text = "out of memory"};
	char *text = NULL;
	size_t size = 0;
	int status;
	enum ops_code code = source.workers && (source.adviser || !request->top_finding) ? OPS_OK : OPS_NO_MEMORY;

	if (!code)
		code = make_json(&source, request->rules, &text, &size, &error);
	if (!code && request->top_finding)
		code = ops_adviser_add_top(source.adviser, &text, &size, &error);
	free(source.workers);
	ops_adviser_free(source.adviser);

	status = cli_print_data(OPS_FORMAT_JSON, code, text, size, &error);
	if (!status)
		putchar('\n');
	return status;
}

static int views_print_table(struct cli_stream *stream, const struct views_request *request)
{
	const struct ops_trace_source source = {cli_stream_get, stream};
	struct ops_query_options options = {.size = sizeof(options), .format = request->format};
	struct ops_run run = {.count = stream->count, .source = &source};
	struct ops_rank *workers = cli_stream_ranks(stream);
	struct ops_error error = {.text = "out of memory"};
	enum ops_code code = OPS_NO_MEMORY;
	char *text = NULL, args[80];
	size_t size = 0;

	snprintf(args, sizeof(args), "{\"rules\": \"%s\"%s}", ops_rules_names[request->rules],
	         request->format == OPS_FORMAT_MARKDOWN ? ", \"limit\": " ROWS_SHOWN : "");
	options.args = args;
	run.ranks = workers;
	if (workers)
		code = ops_query(&run, "overview", &options, &text, &size, &error);
	free(workers);
	return cli_print_data(request->format, code, text, size, &error);
}

static int print(struct cli_stream *stream, const struct views_request *request)
{
	if (request->format == OPS_FORMAT_JSON)
		return print_json(stream, request);
	return request->format == OPS_FORMAT_TEXT ? views_print_text(stream, request->rules) : views_print_table(stream, request);
}

int cli_views(char **arguments)
{
	const char *format = "text", *rules_name = "opstrobe";
	struct views_request request = {0};
	const struct cli_option options[] = {{"--format", &format, NULL}, {"--rules", &rules_name, NULL},
	                                     {"--top-finding", NULL, &request.top_finding}, {NULL, NULL, NULL}};
	struct cli_stream stream;
	size_t count;
	bool help;
	int chosen, rules, status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);

	if (status || help)
		return status;
	chosen = cli_choice("views", "format", format, ops_format_names);
	rules = cli_choice("views", "rules", rules_name, ops_rules_names);
	if (chosen < 0 || rules < 0)
		return CLI_EXIT_USAGE;
	request.format = (enum ops_format)chosen;
	request.rules = (enum ops_rules)rules;
	if (request.top_finding && chosen != OPS_FORMAT_JSON) {
		fputs("opstrobe views: --top-finding requires --format json\n", stderr);
		return CLI_EXIT_USAGE;
	}
	status = CLI_EXIT_FAILED;
	if (cli_stream_open(&stream, arguments + 1, count, CLI_AHEAD, 0))
		status = print(&stream, &request);
	cli_stream_close(&stream);
	return status;
}
