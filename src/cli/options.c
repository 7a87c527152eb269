/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands: "--name value", "--name=value", and "--name" alone for switches.
 */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

/* Finds the option with that name, which may be followed by "=value". */
static const struct cli_option *options_find(const struct cli_option *options, const char *argument, size_t *ret_size)
{
	*ret_size = strcspn(argument, "=");
	for (; options->name; options++)
		if (strlen(options->name) == *ret_size && !strncmp(options->name, argument, *ret_size))
			return options;
	return NULL;
}

static int options_fail(const char *command, const char *what, const char *argument, const char *why)
{
	cli_log("opstrobe %s: %s '%s'%s\n", command, what, argument, why);
	return CLI_EXIT_USAGE;
}

#define OPTIONS_MAX 32

static int options_fail_unknown(const char *command, const char *argument, size_t size, const struct cli_option *options)
{
	const char *names[OPTIONS_MAX + 1] = {NULL};
	char name[64], list[64];

	for (size_t i = 0; i < OPTIONS_MAX && options[i].name; i++)
		names[i] = options[i].name;
	snprintf(name, sizeof(name), "%.*s", (int)size, argument);
	snprintf(list, sizeof(list), "opstrobe %s --help", command);
	cli_log("opstrobe %s: unknown option '%s'; ", command, name);
	return cli_suggest(name, names, list);
}

/* Parses the option at arguments[*at] and its value. */
static int options_parse(char **arguments, size_t *at, const struct cli_option *options)
{
	const char *argument = arguments[*at];
	size_t size;
	const struct cli_option *option = options_find(options, argument, &size);

	if (!option)
		return options_fail_unknown(arguments[0], argument, size, options);
	if (option->flag) {
		if (argument[size])
			return options_fail(arguments[0], "option", option->name, " takes no value");
		*option->flag = true;
		return CLI_EXIT_OK;
	}
	if (argument[size])
		*option->value = argument + size + 1;
	else if (arguments[*at + 1])
		*option->value = arguments[++*at];
	else
		return options_fail(arguments[0], "option", option->name, " requires a value");
	return CLI_EXIT_OK;
}

/* Parses the argument at arguments[*at]: an option, or a path, which is kept after the earlier ones. */
static int options_parse_word(char **arguments, size_t *at, const struct cli_option *options, size_t most, size_t *count,
                              bool *only_paths)
{
	char *word = arguments[*at];

	if (!*only_paths && !strcmp(word, "--")) {
		*only_paths = true;
		return CLI_EXIT_OK;
	}
	if (!*only_paths && word[0] == '-' && word[1])
		return options_parse(arguments, at, options);
	if (*count == most)
		return options_fail(arguments[0], "unexpected argument", word, "");
	arguments[++*count] = word;
	return CLI_EXIT_OK;
}

int cli_parse_paths(char **arguments, const struct cli_option *options, const char *usage, size_t least, size_t most,
                    size_t *ret_count, bool *ret_help)
{
	bool only_paths = false;
	size_t count = 0, i;
	int status = CLI_EXIT_OK;

	*ret_help = false;
	for (i = 1; !status && arguments[i]; i++) {
		if (!only_paths && (!strcmp(arguments[i], "--help") || !strcmp(arguments[i], "-h"))) {
			fputs(usage, stdout);
			*ret_help = true;
			return CLI_EXIT_OK;
		}
		status = options_parse_word(arguments, &i, options, most, &count, &only_paths);
	}
	if (status)
		return status;
	arguments[count + 1] = NULL;
	*ret_count = count;
	if (count >= least)
		return CLI_EXIT_OK;
	if (count)
		cli_log("opstrobe %s: %zu traces are required, only %zu given; see 'opstrobe %s --help'\n", arguments[0], least, count,
		        arguments[0]);
	else
		cli_log("opstrobe %s: no trace given; see 'opstrobe %s --help'\n", arguments[0], arguments[0]);
	return CLI_EXIT_USAGE;
}

int cli_parse(char **arguments, const struct cli_option *options, const char *usage, const char **paths, size_t path_count,
              bool *ret_help)
{
	size_t count = 0;
	int status = cli_parse_paths(arguments, options, usage, path_count, path_count, &count, ret_help);

	for (size_t i = 0; !status && !*ret_help && i < count; i++)
		paths[i] = arguments[i + 1];
	return status;
}

int cli_parse_output(char **arguments, const struct cli_option *options, const char *usage, const char **ret_trace,
                     const char **ret_output, bool *ret_help)
{
	size_t count = 0;
	int status = cli_parse_paths(arguments, options, usage, 1, 2, &count, ret_help);

	if (status || *ret_help)
		return status;
	*ret_trace = arguments[1];
	if (count == 2 && *ret_output)
		return options_fail(arguments[0], "unexpected argument", arguments[2], ": the output is given by --output");
	if (count == 2)
		*ret_output = arguments[2];
	if (*ret_output)
		return CLI_EXIT_OK;
	cli_log("opstrobe %s: no output given; see 'opstrobe %s --help'\n", arguments[0], arguments[0]);
	return CLI_EXIT_USAGE;
}

int cli_choice(const char *command, const char *option, const char *value, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], value))
			return i;
	cli_log("opstrobe %s: invalid %s '%s' (choose from ", command, option, value);
	for (size_t i = 0; names[i]; i++)
		cli_log("%s%s", i ? ", " : "", names[i]);
	fputs(")\n", stderr);
	return -1;
}

bool cli_number(const char *command, const char *option, const char *value, size_t *ret_number)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno) {
		*ret_number = (size_t)number;
		return true;
	}
	cli_log("opstrobe %s: invalid %s '%s': not a whole number\n", command, option, value);
	return false;
}

bool cli_time(const char *command, const char *option, const char *value, int64_t *ret_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {OPS_MICROSECONDS, 1e3}, {"ns", 1}};
	char *end;
	double number = strtod(value, &end);

	for (size_t i = 0; end != value && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].unit) && fabs(number * units[i].ns) < 1e18) {
			*ret_ns = (int64_t)llround(number * units[i].ns);
			return true;
		}
	cli_log("opstrobe %s: invalid %s '%s': not a number with the unit s, ms, us or ns\n", command, option, value);
	return false;
}
