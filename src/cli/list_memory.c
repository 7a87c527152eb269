/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe memory`: who holds memory when most is held.
 */
#include "table_command.h"

#include <stdio.h>

#include <opstrobe/internal/memory.h>

#define DEVICES_MAX 256

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
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe memory --at 1.2s worker0.pt.trace.json.gz\n";

static bool print_device(const struct ops_memory_timeline *timeline, struct ops_memory_device device, size_t top,
                         const int64_t *at_ns)
{
	struct ops_memory_peak peak = {0};
	struct ops_error error;
	char *text = NULL;
	size_t size = 0;
	int64_t moment_ns = at_ns ? ops_trace_origin(timeline->trace) + *at_ns : 0;
	enum ops_code code = at_ns ? ops_memory_peak_within(timeline, device, moment_ns, moment_ns, &peak, &error)
	                           : ops_memory_peak_of(timeline, device, &peak, &error);

	if (!code)
		code = ops_memory_peak_text(timeline, &peak, top, cli_table_columns(), &text, &size, &error);
	ops_memory_peak_release(&peak);
	return cli_print(code, text, size, &error);
}

static bool list_memory_print_text(const struct ops_rank *worker, size_t top, bool flag, const int64_t *at_ns)
{
	struct ops_memory_timeline *timeline;
	struct ops_memory_device device;
	struct ops_error error;
	bool done = true, more;

	(void)flag;
	if (ops_memory_timeline_new((struct ops_trace *)worker->trace, &timeline, &error))
		return cli_print(error.code, NULL, 0, &error);
	more = ops_memory_next_device(timeline, NULL, &device);
	if (!more)
		puts("no allocations were recorded");
	for (int i = 0; done && more && i < DEVICES_MAX; i++) {
		if (i)
			putchar('\n');
		done = print_device(timeline, device, top, at_ns);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	ops_memory_timeline_free(timeline);
	return done;
}

int cli_memory(char **arguments)
{
	static const struct cli_table table = {.command = "memory",
	                                       .usage = usage,
	                                       .top = "10",
	                                       .has_at = true,
	                                       .print_text = list_memory_print_text,
	                                       .table = OPS_VIEW_MEMORY};

	return cli_show_table(arguments, &table);
}
