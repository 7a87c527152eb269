/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe whatif`: the duration of steps if something took another time, or did not run.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/query.h>

#include "arguments.h"
#include "options.h"
#include "stream.h"
#include "traces.h"

static const char usage[] =
	"usage: opstrobe whatif [changes] [options] TRACE|DIRECTORY...\n"
	"\n"
	"Replays the steps of a trace with changes, each by itself and all together, and reports how\n"
	"long a step would take. The first rows are the steps as measured, and as replayed without a\n"
	"change: how far they differ says how far to trust the others.\n"
	"\n"
	"changes (those with a PATTERN may be given several times):\n"
	"  --scale PATTERN=FACTOR           what PATTERN names takes FACTOR times as long: gemm=0.5\n"
	"  --drop PATTERN                   what PATTERN names does not run\n"
	"  --remove-syncs                   the host does not wait for devices\n"
	"  --workers N                      data loaders have N worker processes\n"
	"  --overlap NAME                   only the end of the step waits for a collective\n"
	"                                   operation: allreduce, or communication for all\n"
	"  --no-launch-overhead             operators that launch work take no time on the host, as\n"
	"                                   in a CUDA graph\n"
	"\n"
	"A PATTERN is a line of the program (train.py:88), a class of work on devices (compute,\n"
	"communication, copy, memset), or a regular expression that is found in the name of an\n"
	"operator, kernel or function or in the path of a module. It includes calls, device work and\n"
	"the backward pass of what it names.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe whatif --workers 4 --scale 'aten::conv2d=0.5' --drop train.py:88 trace.json\n";

/* Values of an option that may be given several times. */
struct whatif_list {
	const char *option;
	const char *name; /* name of the query's option */
	const char **values;
	size_t count;
};

enum { SCALE, DROP, OVERLAP, LISTS };

static bool whatif_put_list(struct cli_arguments *args, const struct whatif_list *list)
{
	size_t size = 8 + strlen(list->name);
	char *text;
	bool done;

	if (!list->count)
		return true;
	for (size_t i = 0; i < list->count; i++)
		size += 6 * strlen(list->values[i]) + 8;
	text = malloc(size);
	if (!text)
		return false;
	strcpy(text, "[");
	for (size_t i = 0; i < list->count; i++) {
		char *quoted = cli_arguments_quote(list->values[i]);

		if (quoted)
			strcat(strcat(text, i ? "," : ""), quoted);
		else
			text[0] = '\0';
		free(quoted);
		if (!text[0])
			break;
	}
	strcat(text, "]");
	done = text[0] == '[' && cli_arguments_set(args, list->name, strlen(list->name), text);
	free(text);
	return done;
}

/* Removes the options that may be given several times from the arguments, and collects their values. Returns CLI_EXIT_OK, or
 * CLI_EXIT_USAGE after printing an error. */
static int whatif_extract_lists(char **arguments, struct whatif_list *lists)
{
	size_t kept = 1;
	bool paths = false;

	for (size_t i = 1; arguments[i]; i++) {
		char *word = arguments[i];
		size_t size = strcspn(word, "="), which = 0;

		paths |= !strcmp(word, "--");
		while (which < LISTS && (paths || strlen(lists[which].option) != size || strncmp(word, lists[which].option, size) != 0))
			which++;
		if (which == LISTS) {
			arguments[kept++] = word;
			continue;
		}
		if (word[size] != '=' && !arguments[i + 1]) {
			cli_log("opstrobe whatif: option '%s' requires a value\n", word);
			return CLI_EXIT_USAGE;
		}
		lists[which].values[lists[which].count++] = word[size] == '=' ? word + size + 1 : arguments[++i];
	}
	arguments[kept] = NULL;
	return CLI_EXIT_OK;
}

static int whatif_query(char **paths, size_t count, enum ops_format format, const char *args)
{
	const struct ops_query_options options = {
		.size = sizeof(options), .format = format, .args = args, .columns = cli_table_columns()};
	struct cli_stream stream;
	const struct ops_trace_source source = {cli_stream_get, &stream};
	struct ops_run run = {.source = &source};
	struct ops_rank *ranks = NULL;
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	int status = CLI_EXIT_FAILED;
	bool done = cli_stream_open(&stream, paths, count, CLI_AHEAD, 0);

	if (done && !(ranks = cli_stream_ranks(&stream)))
		fputs("opstrobe: out of memory\n", stderr);
	if (ranks) {
		enum ops_code code;

		run.ranks = ranks;
		run.count = stream.count;
		code = ops_query(&run, "whatif", &options, &text, &size, &error);
		status = cli_print_data(format, code, text, size, &error);
	}
	free(ranks);
	cli_stream_close(&stream);
	return status;
}

static int whatif_parse(char **arguments, struct whatif_list *lists)
{
	const char *format = "text", *workers = NULL;
	bool syncs = false, launches = false, help;
	const struct cli_option options[] = {{"--format", &format, NULL},
	                                     {"--workers", &workers, NULL},
	                                     {"--remove-syncs", NULL, &syncs},
	                                     {"--no-launch-overhead", NULL, &launches},
	                                     /* Parsed before; listed here for suggestions. */
	                                     {"--scale", &lists[SCALE].option, NULL},
	                                     {"--drop", &lists[DROP].option, NULL},
	                                     {"--overlap", &lists[OVERLAP].option, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_arguments args = {0};
	size_t count, number;
	int status = whatif_extract_lists(arguments, lists), chosen;
	bool done = true;

	if (!status)
		status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);
	if (status || help)
		return status;
	chosen = cli_choice("whatif", "format", format, ops_format_names);
	if (chosen < 0 || (workers && !cli_number("whatif", "number of workers", workers, &number)))
		return CLI_EXIT_USAGE;
	for (size_t i = 0; done && i < LISTS; i++)
		done = whatif_put_list(&args, &lists[i]);
	done = done && (!workers || cli_arguments_set(&args, "workers", 7, workers)) &&
	       (!syncs || cli_arguments_merge(&args, "{\"remove_syncs\": true}")) &&
	       (!launches || cli_arguments_merge(&args, "{\"no_launch_overhead\": true}"));
	if (!done)
		fputs("opstrobe: out of memory\n", stderr);
	status = done ? whatif_query(arguments + 1, count, (enum ops_format)chosen, args.text) : CLI_EXIT_FAILED;
	cli_arguments_release(&args);
	return status;
}

int cli_whatif(char **arguments)
{
	struct whatif_list lists[LISTS] = {
		[SCALE] = {.option = "--scale", .name = "scale"},
		[DROP] = {.option = "--drop", .name = "drop"},
		[OVERLAP] = {.option = "--overlap", .name = "overlap"},
	};
	size_t count = 0;
	int status = CLI_EXIT_OK;

	while (arguments[count])
		count++;
	for (size_t i = 0; i < LISTS; i++) {
		lists[i].values = calloc(count + 1, sizeof(*lists[i].values));
		if (!lists[i].values)
			status = CLI_EXIT_FAILED;
	}
	if (status)
		fputs("opstrobe: out of memory\n", stderr);
	else
		status = whatif_parse(arguments, lists);
	for (size_t i = 0; i < LISTS; i++)
		free(lists[i].values);
	return status;
}
