/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe merge`: merges the traces of a run's ranks side by side, with aligned clocks.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/merge.h>

#include "options.h"
#include "stream.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe merge [options] --output OUTPUT TRACE|DIRECTORY...\n"
	"\n"
	"Combines the traces of several ranks into one. Each rank keeps its processes and\n"
	"devices, prefixed with its name. The clocks of other hosts are aligned with that of the\n"
	"first rank by the ends of collective operations. Formats of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"options:\n"
	"  --output OUTPUT           the file to write\n"
	"  --align collectives|none  how to align clocks; none keeps all times; default\n"
	"                            collectives\n"
	"  --help                    print this\n"
	"\n"
	"example:\n"
	"  opstrobe merge --output run.pftrace traces/\n";

static void print_shifts(const struct cli_stream *stream, const struct ops_clock_shift *shifts)
{
	for (size_t i = 0; i < stream->count; i++)
		if (shifts[i].collectives)
			cli_log("opstrobe: %s: clock set by %s%s, by %s collective operation%s\n", stream->files.list.items[i].path,
			        shifts[i].shift_ns > 0 ? "+" : "", ops_figure_of_duration((double)shifts[i].shift_ns).text,
			        ops_figure_of_number((double)shifts[i].collectives).text, shifts[i].collectives == 1 ? "" : "s");
}

static bool merge_to(struct cli_stream *stream, bool align, const char *output)
{
	const struct ops_trace_source source = {cli_stream_get, stream};
	const char **names = calloc(stream->count, sizeof(*names));
	struct ops_clock_shift *shifts = calloc(stream->count, sizeof(*shifts));
	struct ops_error error = {.text = "out of memory"};
	struct ops_trace *merged = NULL;
	bool done = names && shifts;

	for (size_t i = 0; done && i < stream->count; i++)
		names[i] = stream->files.list.items[i].worker;
	done = done && !ops_trace_merge_ranks(&source, names, stream->count, align, shifts, &merged, &error);
	if (!done)
		cli_log("opstrobe merge: %s\n", error.text);
	done = done && cli_write("merge", merged, output, NULL);
	if (done) {
		print_shifts(stream, shifts);
		cli_log("opstrobe: wrote %s: %s events of %s trace%s\n", output,
		        ops_figure_of_number((double)ops_trace_events(merged)->count).text,
		        ops_figure_of_number((double)stream->count).text, stream->count == 1 ? "" : "s");
	}
	ops_trace_unref(merged);
	free(names);
	free(shifts);
	return done;
}

int cli_merge(char **arguments)
{
	static const char *const ways[] = {"collectives", "none", NULL};
	const char *output = NULL, *way_name = "collectives";
	const struct cli_option options[] = {{"--output", &output, NULL}, {"-o", &output, NULL}, {"--align", &way_name, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_stream stream;
	size_t count;
	bool help, done;
	int status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);
	int way;

	if (status || help)
		return status;
	if (!output) {
		fputs("opstrobe merge: option '--output' is required; see 'opstrobe merge --help'\n", stderr);
		return CLI_EXIT_USAGE;
	}
	way = cli_choice("merge", "way to align", way_name, ways);
	if (way < 0 || !cli_can_write("merge", output, (const char *const *)arguments + 1, count))
		return CLI_EXIT_USAGE;
	done = cli_stream_open(&stream, arguments + 1, count, CLI_AHEAD, CLI_AGAIN) && merge_to(&stream, way == 0, output);
	cli_stream_close(&stream);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
