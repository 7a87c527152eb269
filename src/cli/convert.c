/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe convert`: a trace in another form.
 */
#include "cli.h"

#include <opstrobe/read.h>

#include "options.h"
#include "traces.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe convert [options] TRACE OUTPUT\n"
	"\n"
	"Writes a trace in the form that the name of OUTPUT says:\n"
	CLI_FORMS
	"\n"
	"options:\n"
	"  --metric cpu|device  which time stacks show; cpu is the default\n"
	"  --help               print this\n"
	"\n"
	"example:\n"
	"  opstrobe convert worker0.pt.trace.json.gz worker0.pftrace\n";

int cli_convert(char **arguments)
{
	static const char *const metrics[] = {"cpu", "device", NULL};
	const char *metric_name = "cpu", *paths[2];
	const struct cli_option options[] = {{"--metric", &metric_name, NULL}, {NULL, NULL, NULL}};
	struct cli_traces traces;
	bool help, done;
	int status = cli_parse(arguments, options, usage, paths, 2, &help);
	int metric;

	if (status || help)
		return status;
	metric = cli_choice("convert", "metric", metric_name, metrics);
	if (metric < 0 || !cli_can_write("convert", paths[1]))
		return CLI_EXIT_USAGE;
	done = cli_one_trace_read(&traces, paths[0]) &&
	       cli_write("convert", (struct ops_trace *)traces.workers[0].trace, paths[1], (enum ops_stack_metric)metric);
	cli_traces_release(&traces);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}
