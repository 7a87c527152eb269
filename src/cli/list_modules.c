/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe modules`: where the time went, by torch.nn.Module.
 */
#include "table_command.h"

#include <opstrobe/internal/modules.h>

static const char usage[] =
	"usage: opstrobe modules [options] TRACE|DIRECTORY...\n"
	"\n"
	"Lists time, FLOPs and memory of each module, forward and backward, as a tree. Requires\n"
	"a trace that was recorded with with_modules or with_stack.\n"
	"\n"
	"options:\n"
	CLI_TABLE_OPTIONS
	"  --by-class                       a row for each class of modules\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe modules --by-class worker0.pt.trace.json.gz\n";

static bool list_modules_print_text(const struct ops_rank *worker, size_t top, bool by_class, const int64_t *at_ns)
{
	(void)at_ns;
	struct ops_module_text_options options = {.by_class = by_class, .rows_max = top, .columns = cli_table_columns()};
	struct ops_module_tree *tree = NULL;
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = ops_module_tree_new(worker->trace, &tree, &error);

	if (!code)
		code = ops_module_text(tree, &options, &text, &size, &error);
	ops_module_tree_free(tree);
	return cli_print(code, text, size, &error);
}

int cli_modules(char **arguments)
{
	static const struct cli_table table = {.command = "modules",
	                                       .usage = usage,
	                                       .top = "0",
	                                       .flag = "--by-class",
	                                       .print_text = list_modules_print_text,
	                                       .table = OPS_VIEW_MODULES,
	                                       .flagged_table = OPS_VIEW_MODULE_CLASSES};

	return cli_show_table(arguments, &table);
}
