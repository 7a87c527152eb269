/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe modules`: time by torch.nn.Module.
 */
#include "steps.h"
#include "table_command.h"

static const char usage[] =
	"usage: opstrobe modules [options] TRACE|DIRECTORY...\n"
	"\n"
	"Lists time, FLOPs and memory of each module, forward and backward, as a tree. Requires\n"
	"a trace of 'opstrobe run', or one recorded with with_modules or with_stack.\n"
	"\n"
	"options:\n"
	CLI_TABLE_OPTIONS
	CLI_STEPS_OPTION
	"  --by-class                       a row for each class of modules\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe modules --by-class worker0.pt.trace.json.gz\n";

int cli_modules(char **arguments)
{
	static const struct cli_table table = {
		.command = "modules", .usage = usage, .limit = "0", .flags = {{"--by-class", "by_class"}}, .page_each = true};

	return cli_show_table(arguments, &table);
}
