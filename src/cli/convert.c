/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe convert`: a trace in another format.
 */
#include "cli.h"

#include <stdio.h>

#include <opstrobe/query.h>
#include <opstrobe/read.h>

#include "options.h"
#include "traces.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe convert [options] TRACE [--output] OUTPUT\n"
	"\n"
	"Writes a trace in another format, chosen by the name of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"options:\n"
	"  --metric cpu|device|sampled\n"
	"                       the time that stacks show; default cpu. sampled: the Python stacks that a\n"
	"                       black box sampled, in wall-clock time\n"
	"  --keep-wrappers      stacks: keep calls of libraries that only pass on to one other call;\n"
	"                       by default they fold, and their caller has their self time\n"
	"  --keep-waits         stacks: keep the time in which helper threads only wait;\n"
	"                       by default it is left out, and a message says how much it was\n"
	"  --rank N             set the rank, for a trace that does not name its own\n"
	"  --help               print this\n"
	"\n"
	"examples:\n"
	"  opstrobe convert worker0.pt.trace.json.gz worker0.pftrace\n"
	"  opstrobe convert --rank 3 trace.json rank-3.json.gz\n";

static bool set_rank(struct ops_trace *trace, const char *text, size_t rank)
{
	struct ops_error error;

	if (!text || !ops_trace_set_rank(trace, (int64_t)rank, &error))
		return true;
	cli_log("opstrobe convert: %s\n", error.text);
	return false;
}

int cli_convert(char **arguments)
{
	static const char *const metrics[] = {"cpu", "device", "sampled", NULL};
	const char *metric_name = "cpu", *rank_text = NULL, *path, *output = NULL;
	struct ops_flame_options stacks = {.size = sizeof(stacks)};
	const struct cli_option options[] = {
		{"--metric", &metric_name, NULL}, {"--keep-wrappers", NULL, &stacks.keep_wrappers}, {"--keep-waits", NULL, &stacks.keep_waits},
		{"--rank", &rank_text, NULL},
		{"--output", &output, NULL}, {"-o", &output, NULL}, {NULL, NULL, NULL}};
	struct cli_traces traces;
	struct ops_trace *trace;
	size_t rank = 0;
	bool help, done;
	int status = cli_parse_output(arguments, options, usage, &path, &output, &help);
	int metric;

	if (status || help)
		return status;
	metric = cli_choice("convert", "metric", metric_name, metrics);
	if (metric < 0 || !cli_can_write("convert", output, &path, 1) ||
	    (rank_text && !cli_number("convert", "rank", rank_text, &rank)))
		return CLI_EXIT_USAGE;
	stacks.device_time = metric == 1;
	stacks.sampled = metric == 2;
	done = cli_one_trace_read(&traces, path);
	trace = done ? (struct ops_trace *)traces.workers[0].trace : NULL;
	done = done && set_rank(trace, rank_text, rank) &&
	       cli_write("convert", trace, output, &stacks);
	if (done)
		cli_report_written(output, ops_trace_events(trace)->count, ops_trace_events(trace)->count);
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
