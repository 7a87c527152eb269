/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe info`: describes a trace file.
 */
#include "ask.h"

static const char usage[] =
	"usage: opstrobe info [--format text|json|csv|markdown] TRACE\n"
	"\n"
	"Shows where and when a trace was recorded and what it contains: numbers of events by\n"
	"kind, threads, streams, steps, flows, memory records and modules. All formats except\n"
	"text include the metadata.\n"
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
	int status = cli_print_query(arguments, usage, "info", "{\"metadata\": false}", &traces);

	cli_traces_release(&traces);
	return status;
}
