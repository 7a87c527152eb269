/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the format of a file by its name, for traces and for the stacks of their events.
 */
#include "write.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/format.h>

#include "cli.h"
#include "files.h"
#include "traces.h"

#define LEVEL_QUICK 1 /* of gzip: for the trace of a black box, an eighth more bytes than the default, in two thirds of the time */

enum form { FORM_NONE, FORM_JSON, FORM_PFTRACE, FORM_STACKS, FORM_FIREFOX, FORM_CHAKRA };

static const struct {
	const char *suffix;
	enum form form;
} forms[] = {
	{".firefox.json", FORM_FIREFOX},   {".firefox.json.gz", FORM_FIREFOX},
	{".speedscope.json", FORM_STACKS}, {".svg", FORM_STACKS},       {".folded", FORM_STACKS},
	{".pb.gz", FORM_STACKS},           {".pb", FORM_STACKS},
	{".collapsed", FORM_STACKS},       {".txt", FORM_STACKS},       {".json", FORM_JSON},
	{".et", FORM_CHAKRA},
	{".json.gz", FORM_JSON},           {".pftrace", FORM_PFTRACE}, {".pftrace.gz", FORM_PFTRACE},
};

static enum form form_of(const char *path)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (cli_has_suffix(path, forms[i].suffix))
			return forms[i].form;
	return FORM_NONE;
}

bool cli_can_write(const char *command, const char *path, const char *const *inputs, size_t count)
{
	if (form_of(path) == FORM_NONE) {
		cli_log("opstrobe %s: unknown file format '%s'; 'opstrobe %s --help' lists the suffixes\n", command, path,
		        command);
		return false;
	}
	return cli_can_replace(command, path, inputs, count);
}

bool cli_can_replace(const char *command, const char *path, const char *const *inputs, size_t count)
{
	if (!cli_files_select(inputs, count, path))
		return true;
	cli_log("opstrobe %s: the output '%s' is the input itself; give another name\n", command, path);
	return false;
}

void cli_report_written(const char *path, size_t events, size_t total)
{
	char written[OPS_FORMAT_ROOM], all[OPS_FORMAT_ROOM];

	ops_format_integer(written, events);
	ops_format_integer(all, total);
	if (events == total)
		cli_log("opstrobe: wrote %s: %s events\n", path, written);
	else
		cli_log("opstrobe: wrote %s: %s of %s events\n", path, written, all);
}

/* --- stacks --------------------------------------------------------------------------------------------------------- */

static enum ops_code write_stacks(const struct ops_trace *trace, const char *path, const struct ops_flame_options *options,
                                  struct ops_error *error)
{
	struct ops_flame_cut cut = {0};
	enum ops_code code = ops_write_flame(trace, path, options, &cut, error);

	if (cut.stacks)
		cli_log("opstrobe: %zu stacks of more than %u frames are cut short at '[truncated]'; a name that ends in "
		        "'.speedscope.json' has them whole\n", cut.stacks, cut.depth);
	if (!code && cut.waits_ns > 0) {
		char waits[OPS_FORMAT_ROOM];

		ops_format_duration(waits, (double)cut.waits_ns);
		cli_log("opstrobe: left out %s in which helper threads wait; --keep-waits keeps them\n", waits);
	}
	return code;
}

bool cli_can_write_flame_diff(const char *command, const char *path, const char *const *inputs, size_t count)
{
	if (form_of(path) == FORM_STACKS && !cli_has_suffix(path, ".speedscope.json"))
		return cli_can_write(command, path, inputs, count);
	cli_log("opstrobe %s: invalid file name '%s': a flame graph of two traces ends in .svg, .folded, .collapsed or .txt\n",
	        command, path);
	return false;
}

bool cli_write_flame_diff(const char *command, const struct ops_trace *trace, const char *path,
                          const struct ops_flame_options *stacks)
{
	struct ops_error error;
	enum ops_code code = write_stacks(trace, path, stacks, &error);

	if (code)
		cli_log("opstrobe %s: %s\n", command, error.text);
	else
		cli_log("opstrobe: wrote %s\n", path);
	return !code;
}

/* Returns the number of processors that this process may use. */
static unsigned count_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static bool write_at_level(const char *command, struct ops_trace *trace, const char *path, const struct ops_flame_options *stacks,
                           int level)
{
	unsigned threads = count_processors();
	struct ops_chrome_json_options json = {
		.size = sizeof(json), .progress = cli_interrupted, .compression_level = level, .compression_threads = threads};
	struct ops_pftrace_options pftrace = {
		.size = sizeof(pftrace), .progress = cli_interrupted, .compression_level = level, .compression_threads = threads};
	enum form form = form_of(path);
	struct ops_error error;
	enum ops_code code;

	cli_interrupt_begin();
	if (form == FORM_STACKS)
		code = write_stacks(trace, path, stacks, &error);
	else if (form == FORM_FIREFOX)
		code = ops_write_firefox(trace, path, &error);
	else if (form == FORM_CHAKRA)
		code = ops_write_chakra(trace, path, &error);
	else if (form == FORM_PFTRACE)
		code = ops_write_pftrace(trace, path, &pftrace, &error);
	else
		code = ops_write_chrome_json(trace, path, &json, &error);
	cli_interrupt_end();
	if (code)
		cli_log("opstrobe %s: %s\n", command, error.text);
	return !code;
}

bool cli_write(const char *command, struct ops_trace *trace, const char *path, const struct ops_flame_options *stacks)
{
	return write_at_level(command, trace, path, stacks, 0);
}

bool cli_write_quickly(const char *command, struct ops_trace *trace, const char *path)
{
	return write_at_level(command, trace, path, NULL, LEVEL_QUICK);
}
