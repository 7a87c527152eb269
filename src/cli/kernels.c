/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe kernels`: kernels by time, longest first.
 */
#include "steps.h"
#include "table_command.h"

static const char usage[] =
	"usage: opstrobe kernels [options] TRACE|DIRECTORY...\n"
	"\n"
	"Lists the kernels that ran on devices, largest total time first.\n"
	"\n"
	"options:\n"
	CLI_TABLE_OPTIONS
	CLI_STEPS_OPTION
	"  --by-operator                    a row for each operator and launch configuration\n"
	"  --by-category                    a row for each category of device work: matrix\n"
	"                                   products, attention, normalisation, …\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe kernels --limit 20 --format csv worker0.pt.trace.json.gz\n";

int cli_kernels(char **arguments)
{
	static const struct cli_table table = {
		.command = "kernels", .usage = usage, .limit = "30",
		.flags = {{"--by-operator", "by_operator"}, {"--by-category", "by_category"}}};

	return cli_show_table(arguments, &table);
}
