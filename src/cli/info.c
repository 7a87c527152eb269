/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe info`: describes a trace file.
 */
#include "ask.h"

static const char usage[] =
	"usage: opstrobe info [--format text|json|csv|markdown] TRACE\n"
	"\n"
	"Shows what a trace was recorded with (command line, versions, CPUs, options) and\n"
	"what it contains: steps, events by kind, threads, streams, links, memory records and\n"
	"modules. JSON and CSV have the metadata of the file, too.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe info worker0.pt.trace.json.gz\n";

int cli_info(char **arguments)
{
	struct cli_traces traces;
	int status = cli_print_query(arguments, usage, "info", &traces);

	cli_traces_release(&traces);
	return status;
}
