/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe table`: the table of torch's key_averages().table(), for a trace file.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/analyze.h>
#include <opstrobe/query.h>

#include "options.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe table [options] TRACE\n"
	"\n"
	"Prints the table of key_averages().table() of torch.profiler: calls, CPU time, device\n"
	"time and memory of each operator.\n"
	"\n"
	"options:\n"
	"  --sort-by KEY           largest first; default self_cpu_time_total. none: in order of\n"
	"                          appearance. Keys:\n"
	"                            count, flops\n"
	"                            cpu_time, cpu_time_total, self_cpu_time_total\n"
	"                            device_time, device_time_total, self_device_time_total\n"
	"                            cpu_memory_usage, self_cpu_memory_usage\n"
	"                            device_memory_usage, self_device_memory_usage\n"
	"                            key, overload_name, input_shapes\n"
	"  --limit N               maximum number of rows (0: all); default 100\n"
	"  --group-by-input-shape  a row for each set of input shapes\n"
	"  --with-flops            estimate floating-point operations\n"
	"  --format text|json|csv|markdown\n"
	"                          default text\n"
	"  --help                  print this\n"
	"\n"
	"example:\n"
	"  opstrobe table --sort-by cpu_time_total --limit 20 trace.json.gz\n";

struct request {
	const char *sort_by; /* "": none */
	size_t row_limit;
	bool by_shape;
	bool with_flops;
};

static int table_print_text(const struct ops_trace *trace, const struct request *request)
{
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	struct ops_averages_options how = {.by_input_shape = request->by_shape};
	struct ops_average *averages = NULL;
	struct ops_average_list list = {0};
	struct ops_rows rows;
	struct ops_error error;
	size_t size = 0, records;
	char *text = NULL;
	char device[OPS_DEVICE_NAME_BYTES];
	enum ops_code code = ops_key_averages(trace, request->with_flops, &how, &averages, &list.count, &error);
	int status;

	list.rows = averages;
	rows = ops_rows_of_averages(&list);
	ops_trace_memory(trace, &records);
	options.sort_by = *request->sort_by ? request->sort_by : NULL;
	options.row_limit = (int64_t)request->row_limit;
	options.profile_memory = records > 0;
	options.with_flops = request->with_flops;
	options.use_device = ops_trace_device(trace, device);
	options.columns = cli_table_columns();
	if (!code)
		code = ops_table_text(trace, &rows, &options, &text, &size, &error);
	ops_free(averages);
	/* A key to sort by that rows do not have, an AttributeError in Python, is a wrong word here. */
	status = cli_print(code == OPS_UNSUPPORTED ? OPS_INVALID : code, text, size, &error);
	if (!status && !list.count)
		puts("no events were recorded");
	if (!status && list.count > request->row_limit)
		printf("and %zu more; '--limit %zu' shows all\n", list.count - request->row_limit, list.count);
	return status;
}

static int print_data(const struct ops_trace *trace, const struct request *request, enum ops_format format)
{
	struct ops_query_options how = {.size = sizeof(how), .format = format};
	struct ops_rank rank = {.rank = 0, .trace = trace};
	struct ops_error error;
	size_t size = 0;
	char *text = NULL;
	char args[256];
	enum ops_code code;

	snprintf(args, sizeof(args),
	         "{\"sort_by\": \"%s\", \"limit\": %zu, \"group_by_input_shape\": %s, \"with_flops\": %s}", request->sort_by,
	         request->row_limit, request->by_shape ? "true" : "false", request->with_flops ? "true" : "false");
	how.args = args;
	code = ops_query(&(struct ops_run){.ranks = &rank, .count = 1}, "key_averages", &how, &text, &size, &error);
	return cli_print_data(format, code, text, size, &error);
}

int cli_table(char **arguments)
{
	struct request request = {.sort_by = "self_cpu_time_total"};
	const char *format = "text", *limit = "100", *path;
	const struct cli_option options[] = {{"--sort-by", &request.sort_by, NULL},
	                                     {"--limit", &limit, NULL},
	                                     {"--row-limit", &limit, NULL}, /* the former name */
	                                     {"--group-by-input-shape", NULL, &request.by_shape},
	                                     {"--with-flops", NULL, &request.with_flops},
	                                     {"--format", &format, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_traces traces = {0};
	bool help;
	int choice, status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	choice = cli_choice("table", "format", format, ops_format_names);
	if (choice < 0 || !cli_number("table", "number of rows", limit, &request.row_limit))
		return CLI_EXIT_USAGE;
	if (!request.row_limit)
		request.row_limit = INT32_MAX;
	if (!strcmp(request.sort_by, "none"))
		request.sort_by = "";
	if (request.sort_by[strspn(request.sort_by, "abcdefghijklmnopqrstuvwxyz_")] || strlen(request.sort_by) > 64) {
		cli_log("opstrobe table: '%s' is not a sort key\n", request.sort_by);
		return CLI_EXIT_USAGE;
	}
	status = CLI_EXIT_FAILED;
	if (cli_one_trace_read(&traces, path))
		status = choice == OPS_FORMAT_TEXT ? table_print_text(traces.workers[0].trace, &request)
		                                   : print_data(traces.workers[0].trace, &request, (enum ops_format)choice);
	cli_traces_release(&traces);
	return status;
}
