/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe info`: what a trace file is.
 */
#include "ask.h"

static const char usage[] =
	"usage: opstrobe info [--format text|json|csv|markdown] TRACE\n"
	"\n"
	"Where and when a trace was recorded, and how much of everything it has: events by\n"
	"kind, threads and streams, steps, arrows, memory records, modules. The metadata are\n"
	"told in all formats but text.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  text is the default\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe info worker0.pt.trace.json.gz\n";

int cli_info(char **arguments)
{
	struct cli_traces traces;
	int status = cli_ask(arguments, usage, "info", "{\"metadata\": false}", &traces);

	cli_traces_release(&traces);
	return status;
}
