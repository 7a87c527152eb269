/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe analyze`: one analysis of the traces of a run.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/analyses.h>

#include "arguments.h"
#include "nearest.h"
#include "options.h"
#include "ranks.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe analyze ID [options] TRACE...|DIRECTORY\n"
	"       opstrobe analyze --list\n"
	"\n"
	"Runs one analysis on the traces of a job, one trace for each rank. Ids, options and\n"
	"columns are those of Holistic Trace Analysis, with its errors corrected.\n"
	"\n"
	"options:\n"
	"  --list                           list the analyses\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --rounding ns|us                 us narrows events to whole microseconds, as Holistic Trace\n"
	"                                   Analysis does; default ns, exact\n"
	"  --args JSON                      options of the analysis as JSON: '{\"num_kernels\": 5}'\n"
	"  --NAME VALUE                     one option of the analysis: --num-kernels 5, --ranks 0,1\n"
	"  --limit N                        maximum number of rows of a table\n"
	"  --where FILTER                   events to analyze: 'dur > 100 and stream != -1' or\n"
	"                                   '{\"name\": \"aten::\", \"iterations\": [5]}'; see the manual\n"
	"  --include-last-profiler-step true\n"
	"                                   include the last step, which is often incomplete\n"
	"  --rules opstrobe|tensorboard|hta\n"
	"                                   whose definitions apply: hta counts device work as Holistic\n"
	"                                   Trace Analysis does, tensorboard as PyTorch's legacy plugin\n"
	"  --help                           print this; after an id, its options first\n"
	"\n"
	"example:\n"
	"  opstrobe analyze temporal_breakdown traces/\n";

#define PATHS_MAX 4096

struct request {
	const struct ops_query_info *analysis;
	struct cli_arguments args;
	char *paths[PATHS_MAX];
	size_t path_count;
	enum ops_format format;
	bool round_to_us;
	bool help;
	bool list;
};

static int list_analyses(const char *indent)
{
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	for (size_t i = 0; i < count; i++)
		printf("%s%-34s %s\n", indent, analyses[i].id, analyses[i].summary);
	return CLI_EXIT_OK;
}

/* Prints an option as it is written on the command line: "--num-kernels". */
static void print_option(const struct ops_query_option *option)
{
	int width = printf("  --");

	for (const char *c = option->name; *c; c++, width++)
		putchar(*c == '_' ? '-' : *c);
	printf("%*s  %s\n%32s  (default: %s)\n", width < 32 ? 32 - width : 0, "", option->summary, "", option->default_value);
}

/* The options of the analysis precede the common options. */
static int print_help(const struct ops_query_info *analysis)
{
	if (analysis)
		printf("%s: %s\n\n", analysis->id, analysis->summary);
	for (const struct ops_query_option *option = analysis ? analysis->options : NULL; option && option->name; option++)
		print_option(option);
	printf("%s", analysis && analysis->options->name ? "\n" : "");
	fputs(usage, stdout);
	if (!analysis) {
		fputs("\nanalyses:\n", stdout);
		list_analyses("  ");
	}
	return CLI_EXIT_OK;
}

static int analyze_fail(const char *what, const char *argument)
{
	cli_log("opstrobe analyze: %s '%s'; see 'opstrobe analyze --help'\n", what, argument);
	return CLI_EXIT_USAGE;
}

#define ANALYSES_MAX 64

static int analyze_fail_unknown(const char *id)
{
	const char *names[ANALYSES_MAX + 1] = {NULL};
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	for (size_t i = 0; i < count && i < ANALYSES_MAX; i++)
		names[i] = analyses[i].id;
	cli_log("opstrobe analyze: unknown analysis '%s'; ", id);
	return cli_suggest(id, names, "opstrobe analyze --list");
}

static int analyze_fail_unnamed(void)
{
	cli_log("opstrobe analyze: no analysis given; 'opstrobe analyze --list' lists them\n");
	return CLI_EXIT_USAGE;
}

static int parse_format(struct request *request, const char *value)
{
	int chosen = cli_choice("analyze", "format", value, ops_format_names);

	request->format = (enum ops_format)chosen;
	return chosen < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
}

/* `name` has no leading dashes. */
static int parse_option(struct request *request, const char *name, size_t size, const char *value)
{
	if (size == 6 && !memcmp(name, "format", size))
		return parse_format(request, value);
	if (size == 8 && !memcmp(name, "rounding", size)) {
		request->round_to_us = !strcmp(value, "us");
		return request->round_to_us || !strcmp(value, "ns") ? CLI_EXIT_OK : analyze_fail("unknown rounding", value);
	}
	if (size == 4 && !memcmp(name, "args", size))
		return cli_arguments_merge(&request->args, value) ? CLI_EXIT_OK : analyze_fail("not a JSON object:", value);
	return cli_arguments_set(&request->args, name, size, value) ? CLI_EXIT_OK : analyze_fail("out of memory at", value);
}

static int analyze_parse_word(struct request *request, char *word)
{
	if (!request->analysis) {
		request->analysis = ops_analysis_find(word);
		return request->analysis ? CLI_EXIT_OK : analyze_fail_unknown(word);
	}
	if (request->path_count == PATHS_MAX)
		return analyze_fail("too many traces:", word);
	request->paths[request->path_count++] = word;
	return CLI_EXIT_OK;
}

static int parse(struct request *request, char **arguments)
{
	int status = CLI_EXIT_OK;

	for (size_t i = 1; !status && arguments[i]; i++) {
		char *word = arguments[i];
		size_t size = strcspn(word, "=");

		if (!strcmp(word, "--help") || !strcmp(word, "-h"))
			request->help = true;
		else if (!strcmp(word, "--list"))
			request->list = true;
		else if (strncmp(word, "--", 2) != 0)
			status = analyze_parse_word(request, word);
		else if (word[size] == '=')
			status = parse_option(request, word + 2, size - 2, word + size + 1);
		else if (arguments[i + 1])
			status = parse_option(request, word + 2, size - 2, arguments[++i]);
		else
			status = analyze_fail("no value after", word);
	}
	return status;
}

static int analyze(const struct request *request)
{
	const struct ops_query_options options = {.size = sizeof(options), .format = request->format,
	                                          .round_to_us = request->round_to_us, .args = request->args.text,
	                                          .columns = cli_table_columns()};
	struct cli_ranks ranks;
	struct ops_run run = {0};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code;
	int status;

	if (!cli_ranks_read(&ranks, request->paths, request->path_count, request->analysis->inputs,
	                    request->round_to_us)) {
		cli_ranks_release(&ranks);
		return CLI_EXIT_FAILED;
	}
	run = (struct ops_run){ranks.items, ranks.count, request->analysis->inputs == OPS_QUERY_RANKS ? &ranks.source : NULL};
	code = ops_query(&run, request->analysis->id, &options, &text, &size, &error);
	if (code)
		cli_log("opstrobe analyze: %s\n", error.text);
	if (code == OPS_CORRUPT && *ranks.odd.text)
		cli_log("opstrobe: %s\n", ranks.odd.text);
	/* A key to sort by that rows do not have, an AttributeError in Python, is a wrong word here. */
	if (code == OPS_UNSUPPORTED && !strcmp(request->analysis->id, "key_averages"))
		code = OPS_INVALID;
	status = code ? cli_status(code) : cli_print_data(options.format, code, text, size, &error);
	cli_ranks_release(&ranks);
	return status;
}

int cli_analyze(char **arguments)
{
	struct request request = {.format = OPS_FORMAT_TEXT};
	int status = parse(&request, arguments);

	if (!status && request.help)
		status = print_help(request.analysis);
	else if (!status && request.list)
		status = list_analyses("");
	else if (!status && !request.analysis)
		status = analyze_fail_unnamed();
	else if (!status && !request.path_count)
		status = analyze_fail("no trace given after", request.analysis->id);
	else if (!status)
		status = analyze(&request);
	cli_arguments_release(&request.args);
	return status;
}
