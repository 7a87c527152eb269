/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands: "--name value", "--name=value", and "--name" alone for switches.
 */
#include "options.h"

#include <stdio.h>
#include <string.h>

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
	fprintf(stderr, "opstrobe %s: %s '%s'; 'opstrobe %s --help' tells what there is\n", command, what, argument, command);
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

int cli_parse(char **arguments, const struct cli_option *options, const char *usage, const char **paths, size_t path_count,
              bool *ret_help)
{
	size_t taken = 0;
	bool only_paths = false;

	*ret_help = false;
	for (size_t i = 1; arguments[i]; i++) {
		const char *argument = arguments[i];

		if (!only_paths && (!strcmp(argument, "--help") || !strcmp(argument, "-h"))) {
			fputs(usage, stdout);
			*ret_help = true;
			return CLI_EXIT_OK;
		}
		if (!only_paths && !strcmp(argument, "--")) {
			only_paths = true;
		} else if (!only_paths && argument[0] == '-' && argument[1]) {
			int status = take(arguments, &i, options);

			if (status)
				return status;
		} else if (taken == path_count) {
			return fail(arguments[0], argument, "one too many:");
		} else {
			paths[taken++] = argument;
		}
	}
	if (taken == path_count)
		return CLI_EXIT_OK;
	fprintf(stderr, "opstrobe %s: a trace is missing; 'opstrobe %s --help' tells how it is called\n", arguments[0],
	        arguments[0]);
	return CLI_EXIT_USAGE;
}
