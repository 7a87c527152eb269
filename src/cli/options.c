/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands: "--name value", "--name=value", and "--name" alone for switches.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The option of that name, which may have "=value" behind. */
static const struct cli_option *find(const struct cli_option *options, const char *argument, size_t *ret_size)
{
	*ret_size = strcspn(argument, "=");
	for (; options->name; options++)
		if (strlen(options->name) == *ret_size && !strncmp(options->name, argument, *ret_size))
			return options;
	return NULL;
}

static int fail(const char *command, const char *argument, const char *what)
{
	cli_say("opstrobe %s: %s '%s'; 'opstrobe %s --help' tells what there is\n", command, what, argument, command);
	return CLI_EXIT_USAGE;
}

/* Takes the option at arguments[*at], and its value. */
static int take(char **arguments, size_t *at, const struct cli_option *options)
{
	const char *argument = arguments[*at];
	size_t size;
	const struct cli_option *option = find(options, argument, &size);

	if (!option)
		return fail(arguments[0], argument, "unknown option");
	if (option->flag) {
		if (argument[size])
			return fail(arguments[0], argument, "no value belongs to");
		*option->flag = true;
		return CLI_EXIT_OK;
	}
	if (argument[size])
		*option->value = argument + size + 1;
	else if (arguments[*at + 1])
		*option->value = arguments[++*at];
	else
		return fail(arguments[0], argument, "a value is missing behind");
	return CLI_EXIT_OK;
}

/* A word of the command line at arguments[*at]: an option, or a path, which is kept behind the others. */
static int take_word(char **arguments, size_t *at, const struct cli_option *options, size_t most, size_t *count,
                     bool *only_paths)
{
	char *word = arguments[*at];

	if (!*only_paths && !strcmp(word, "--")) {
		*only_paths = true;
		return CLI_EXIT_OK;
	}
	if (!*only_paths && word[0] == '-' && word[1])
		return take(arguments, at, options);
	if (*count == most)
		return fail(arguments[0], word, "one too many:");
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
		status = take_word(arguments, &i, options, most, &count, &only_paths);
	}
	if (status)
		return status;
	arguments[count + 1] = NULL;
	*ret_count = count;
	if (count >= least)
		return CLI_EXIT_OK;
	cli_say("opstrobe %s: a trace is missing; 'opstrobe %s --help' tells how it is called\n", arguments[0],
	        arguments[0]);
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

int cli_choice(const char *command, const char *option, const char *value, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], value))
			return i;
	cli_say("opstrobe %s: '%s' is no %s; there are", command, value, option);
	for (size_t i = 0; names[i]; i++)
		cli_say("%s %s", !i ? "" : names[i + 1] ? "," : " and", names[i]);
	fputc('\n', stderr);
	return -1;
}

const char *const cli_formats[] = {"json", "text", "csv", "markdown", NULL};

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
	cli_say("opstrobe %s: '%s' is no %s; it is a whole number\n", command, value, option);
	return false;
}
