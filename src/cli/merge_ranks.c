/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe merge`: the traces of a run's ranks as one, side by side on one clock.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/merge.h>

#include "options.h"
#include "traces.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe merge [options] --output OUTPUT TRACE|DIRECTORY...\n"
	"\n"
	"Writes the traces of several ranks as one. Each keeps its processes and devices,\n"
	"with its name before theirs. Ranks of other hosts than the first are set to its\n"
	"clock by the ends of collective operations. Forms of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"options:\n"
	"  --output OUTPUT           the file to write\n"
	"  --align collectives|none  none leaves all times as they are\n"
	"  --help                    print this\n"
	"\n"
	"example:\n"
	"  opstrobe merge --output run.pftrace traces/\n";

static const struct ops_trace **list(const struct cli_traces *traces)
{
	const struct ops_trace **items = calloc(traces->count, sizeof(*items));

	for (size_t i = 0; items && i < traces->count; i++)
		items[i] = traces->workers[i].trace;
	return items;
}

static void say(const struct cli_traces *traces, const struct ops_clock_shift *shifts)
{
	for (size_t i = 0; i < traces->count; i++)
		if (shifts[i].collectives)
			fprintf(stderr, "opstrobe: %s: clock set by %+.3f us, by %zu collective operations\n",
			        traces->files.list.items[i].path, (double)shifts[i].shift_ns / 1e3, shifts[i].collectives);
}

/* Parts have room for all traces. */
static enum ops_code merge(const struct cli_traces *traces, bool align, struct ops_trace_part *parts,
                           struct ops_clock_shift *shifts, struct ops_trace **ret_trace, struct ops_error *error)
{
	const struct ops_trace **items = list(traces);
	enum ops_code code = OPS_OK;

	if (!items) {
		snprintf(error->text, sizeof(error->text), "out of memory");
		return OPS_NO_MEMORY;
	}
	if (align)
		code = ops_trace_align(items, traces->count, shifts, error);
	free(items);
	for (size_t i = 0; i < traces->count; i++)
		parts[i] = (struct ops_trace_part){.trace = traces->workers[i].trace, .whole = true,
		                                   .rank_name = traces->workers[i].name, .shift_ns = shifts[i].shift_ns};
	return code ? code : ops_trace_merge(parts, traces->count, NULL, ret_trace, error);
}

static bool merge_to(const struct cli_traces *traces, bool align, const char *output)
{
	struct ops_trace_part *parts = calloc(traces->count, sizeof(*parts));
	struct ops_clock_shift *shifts = calloc(traces->count, sizeof(*shifts));
	struct ops_error error = {.text = "out of memory"};
	struct ops_trace *merged = NULL;
	bool done = parts && shifts && !merge(traces, align, parts, shifts, &merged, &error);

	if (!done)
		fprintf(stderr, "opstrobe merge: %s\n", error.text);
	done = done && cli_write("merge", merged, output, OPS_STACKS_SELF_CPU);
	if (done) {
		say(traces, shifts);
		fprintf(stderr, "opstrobe: wrote %s: %zu events of %zu traces\n", output, ops_trace_events(merged)->count,
		        traces->count);
	}
	ops_trace_unref(merged);
	free(parts);
	free(shifts);
	return done;
}

int cli_merge(char **arguments)
{
	static const char *const ways[] = {"collectives", "none", NULL};
	const char *output = NULL, *way_name = "collectives";
	const struct cli_option options[] = {{"--output", &output, NULL}, {"-o", &output, NULL}, {"--align", &way_name, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_traces traces;
	size_t count;
	bool help, done;
	int status = cli_parse_paths(arguments, options, usage, 1, SIZE_MAX, &count, &help);
	int way;

	if (status || help)
		return status;
	if (!output) {
		fputs("opstrobe merge: --output is missing; 'opstrobe merge --help' tells how it is called\n", stderr);
		return CLI_EXIT_USAGE;
	}
	way = cli_choice("merge", "way to align", way_name, ways);
	if (way < 0 || !cli_can_write("merge", output))
		return CLI_EXIT_USAGE;
	done = cli_traces_read(&traces, arguments + 1, count) && merge_to(&traces, way == 0, output);
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
