/* SPDX-License-Identifier: Apache-2.0
 *
 * The `opstrobe` command: the table of commands, and the options before a command.
 */
#include "cli.h"
#include "complete.h"
#include "nearest.h"
#include "pager.h"
#include "stream.h"
#include "traces.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/version.h>

static const struct cli_command commands[] = {
	{"run", cli_run, "run a Python program and record a trace of it", false, false},
	{"dump", cli_dump, "write a trace of the last seconds of a running process", false, false},
	{"recover", cli_recover, "write a trace of what a killed program had recorded", false, false},
	{"incidents", cli_incidents, "list what the black box kept: slow steps, hangs, crashes", true, false},
	{"serve", cli_serve, "show traces in the browser", false, false},
	{"tui", cli_tui, "show a trace in the terminal, with keys to explore it", false, false},
	{"report", cli_report, "write one HTML file that shows a trace", false, false},
	{"views", cli_views, "summarize a trace: steps, operators, memory, …", true, true},
	{"analyze", cli_analyze, "run one analysis: idle time, launches, queues, …", true, false},
	{"advise", cli_advise, "suggest what to change, at which line, with the predicted gain", true, true},
	{"prove", cli_prove, "run a program with fixes of findings and measure what they save", false, false},
	{"whatif", cli_whatif, "predict the time of steps if something took another time", true, true},
	{"kernels", cli_kernels, "list the kernels that ran on devices", true, true},
	{"memory", cli_memory, "show what holds memory at its peak", true, false},
	{"modules", cli_modules, "list time, FLOPs and memory by module", true, false},
	{"lines", cli_lines, "list time and memory by line of the program", true, true},
	{"roofline", cli_roofline, "list how close operators are to the limits of the machine", true, true},
	{"diff", cli_diff, "compare two traces", true, true},
	{"ab", cli_ab, "run two programs alternately and say which one is slower", false, false},
	{"sql", cli_sql, "run an SQL query on one trace or many", true, false},
	{"archive", cli_archive, "keep traces as Parquet and show how metrics change over time", true, false},
	{"merge", cli_merge, "combine the traces of several ranks into one", false, false},
	{"convert", cli_convert, "write a trace in another format: Perfetto, stacks, …", false, false},
	{"cut", cli_cut, "extract steps, a time range or threads", false, false},
	{"table", cli_table, "print the operator table of torch.profiler", true, false},
	{"info", cli_info, "show what a trace contains and where it was recorded", true, false},
	{"validate", cli_validate, "check a trace file for errors", false, false},
	{"roof", cli_roof, "measure the limits of this machine, for 'roofline'", false, false},
	{"doctor", cli_doctor, "check whether recording works on this machine", false, false},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
	fputs("usage: opstrobe <command> [options]\n"
	      "       opstrobe TRACE...\n"
	      "       opstrobe --help | --version\n"
	      "\n"
	      "Opstrobe profiles PyTorch programs. Without a command, a trace is shown as by 'views'.\n"
	      "\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "options of all commands but run and prove:\n"
	      "  --color WHEN  auto (the default: on a terminal, unless NO_COLOR is set), always, never\n"
	      "  --no-pager    do not show long results by $PAGER (default less)\n"
	      "\n'opstrobe <command> --help' lists the options of a command.\n",
	      out);
}

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int main_fail_unknown(const char *name)
{
	const char *names[COMMAND_COUNT + 1] = {NULL};

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i].name;
	cli_log("opstrobe: '%s' is not a command; ", name);
	return cli_suggest(name, names, "opstrobe --help");
}

/* Returns whether an argument is a file name: it has a dot or a slash, unlike commands. */
static bool main_looks_like_trace(const char *name)
{
	return strpbrk(name, "./*?") || !strcmp(name, "-") || !access(name, F_OK);
}

/* Runs `opstrobe TRACE` as `opstrobe views TRACE`. */
static int show_traces(int count, char **arguments)
{
	char **words = calloc((size_t)count + 1, sizeof(*words));
	int status;

	if (!words) {
		fputs("opstrobe: out of memory\n", stderr);
		return CLI_EXIT_FAILED;
	}
	words[0] = "views";
	cli_need_times();
	for (int i = 1; i < count; i++)
		words[i] = arguments[i];
	status = cli_views(words);
	free(words);
	return status;
}

/* Parses the options that every command has, before or after its name, and removes them from the arguments. Arguments after `run`
 * or `prove` belong to the user's program. */
static int parse_common(char **arguments, bool *ret_no_pager)
{
	static const char *const when[] = {"auto", "always", "never"};
	const char *color = NULL;
	size_t kept = 1, i, chosen = 0;

	for (i = 1; arguments[i]; i++) {
		bool ends = !strcmp(arguments[i], "--") || !strcmp(arguments[i], "--complete") || (kept == 1 && (!strcmp(arguments[i], "run") || !strcmp(arguments[i], "prove")));

		if (ends)
			break;
		if (!strcmp(arguments[i], "--no-pager"))
			*ret_no_pager = true;
		else if (!strncmp(arguments[i], "--color=", strlen("--color=")))
			color = arguments[i] + strlen("--color=");
		else if (!strcmp(arguments[i], "--color"))
			color = arguments[i + 1] ? arguments[++i] : "";
		else
			arguments[kept++] = arguments[i];
	}
	while (arguments[i])
		arguments[kept++] = arguments[i++];
	arguments[kept] = NULL;
	while (color && chosen < 3 && strcmp(color, when[chosen]) != 0)
		chosen++;
	if (chosen == 3) {
		cli_log("opstrobe: invalid --color '%s' (choose from auto, always, never)\n", color);
		return CLI_EXIT_USAGE;
	}
	cli_set_color((enum cli_color)chosen);
	return CLI_EXIT_OK;
}

/* If writing the result failed, the command has failed. */
static int main_finish(int status)
{
	cli_pager_end();
	if (fflush(stdout) || ferror(stdout)) {
		perror("opstrobe: cannot write to standard output");
		return CLI_EXIT_FAILED;
	}
	return status;
}

int main(int count, char **arguments)
{
	const struct cli_command *command;
	bool no_pager = false;
	const char *name;

	if (parse_common(arguments, &no_pager))
		return CLI_EXIT_USAGE;
	for (count = 0; arguments[count]; count++)
		;
	name = count > 1 ? arguments[1] : NULL;
	if (!name) {
		print_usage(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || (!strcmp(name, "help") && count == 2)) {
		print_usage(stdout);
		return main_finish(CLI_EXIT_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("opstrobe %s\n", ops_version());
		return main_finish(CLI_EXIT_OK);
	}
	if (!strcmp(name, "--complete"))
		return main_finish(cli_complete(commands, COMMAND_COUNT, arguments + 2));
	if (!strcmp(name, "--man"))
		return main_finish(cli_man(commands, COMMAND_COUNT));
	if (!strcmp(name, "help")) {
		char *asked[] = {arguments[2], "--help", NULL};

		command = find_command(asked[0]);
		return command ? main_finish(command->function(asked)) : main_fail_unknown(asked[0]);
	}
	if (name[0] == '-' && name[1]) {
		cli_log("opstrobe: unknown option '%s'; 'opstrobe --help' lists the commands and options\n", name);
		return CLI_EXIT_USAGE;
	}
	command = find_command(name);
	if (command && command->needs_times)
		cli_need_times();
	if (!no_pager && (command ? command->paged : main_looks_like_trace(name)))
		cli_pager_begin();
	if (!command && main_looks_like_trace(name))
		return main_finish(show_traces(count, arguments));
	return command ? main_finish(command->function(arguments + 1)) : main_fail_unknown(name);
}
