/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe memory`: what holds memory at the peak.
 */
#include "table_command.h"

static const char usage[] =
	"usage: opstrobe memory [options] TRACE|DIRECTORY...\n"
	"\n"
	"Shows the peak of the memory of each device, or with --at any moment, and what holds\n"
	"it: by category, module, source line, operator and tensor shape. Requires a trace that\n"
	"was recorded with profile_memory.\n"
	"\n"
	"options:\n"
	"  --at TIME                        the moment, after the start of the trace, instead of\n"
	"                                   the peak: 1.5s, 20ms\n"
	CLI_TABLE_OPTIONS
	"  --steps FIRST[:LAST]             the peak in these steps, by number; default: in the\n"
	"                                   whole trace\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe memory --at 1.2s worker0.pt.trace.json.gz\n";

int cli_memory(char **arguments)
{
	static const struct cli_table table = {
		.command = "memory", .usage = usage, .limit = "10", .has_at = true, .page_each = true};

	return cli_show_table(arguments, &table);
}
