/* SPDX-License-Identifier: Apache-2.0
 *
 * Information about commands for shells and manuals: the words that may follow, and a manual page. Both are derived from the
 * table of commands and the output of --help, so that there is no second description to maintain.
 */
#include "complete.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <opstrobe/version.h>

#define HELP_ROOM 65536

/* --- help ----------------------------------------------------------------------------------------------------------- */

/* Returns the output of `opstrobe NAME --help`, run in a child process because some commands replace the process; "" if it fails.
 * Freed by the caller; NULL if out of memory. */
static char *help_of(const struct cli_command *command)
{
	char *words[] = {(char *)command->name, "--help", NULL}, *text = calloc(1, HELP_ROOM);
	int ends[2], status = 1;
	size_t size = 0;
	ssize_t more;
	pid_t child;

	if (!text || pipe(ends))
		return text;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		close(ends[0]);
		status = command->function(words);
		fflush(stdout);
		_exit(status);
	}
	close(ends[1]);
	while (child > 0 && size < HELP_ROOM - 1 && (more = read(ends[0], text + size, HELP_ROOM - 1 - size)) > 0)
		size += (size_t)more;
	close(ends[0]);
	if (child <= 0 || waitpid(child, &status, 0) < 0 || status)
		size = 0;
	text[size] = 0;
	return text;
}

/* Parses an option at the start of a line of help: "  --format text|json  what it is", or "  -o, --output FILE". Returns false for
 * other lines. `*ret_values` is the text after its name. */
static bool option_of(const char *line, char name[64], char values[128])
{
	const char *at = line + strspn(line, " ");
	size_t size;

	if (at == line || *at != '-')
		return false;
	if (at[1] != '-') { /* the long name, if there is one, follows the short one */
		const char *comma = strstr(at, ", --"), *end = strchr(at, '\n');

		if (!comma || (end && comma > end))
			return false;
		at = comma + 2;
	}
	size = strcspn(at, " =\n[,");
	if (size <= 2 || size >= 64)
		return false;
	snprintf(name, 64, "%.*s", (int)size, at);
	at += size;
	at += *at == ' ' || *at == '=';
	snprintf(values, 128, "%.*s", (int)strcspn(at, " \n"), at);
	return true;
}

/* --- completion ----------------------------------------------------------------------------------------------------- */

static void offer(const char *word, const char *begun)
{
	if (!strncmp(word, begun, strlen(begun)))
		puts(word);
}

/* Offers the words of "text|json"; "FILE" is not a word. */
static void offer_values(const char *values, const char *begun)
{
	char copy[128];

	if (!strchr(values, '|'))
		return;
	snprintf(copy, sizeof(copy), "%s", values);
	for (char *rest = copy, *word; (word = strsep(&rest, "|"));)
		offer(word, begun);
}

/* Offers the options of a command, or the values of the preceding option. */
static void offer_words(const struct cli_command *command, const char *before, const char *begun)
{
	char *help = help_of(command), name[64], values[128];

	for (const char *line = help; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
		if (!option_of(line, name, values))
			continue;
		if (before && !strcmp(before, name))
			offer_values(values, begun);
		else if (begun[0] == '-')
			offer(name, begun);
	}
	free(help);
}

int cli_complete(const struct cli_command *commands, size_t count, char **words)
{
	const char *begun, *before = NULL;
	size_t last = 0;

	if (!words[0])
		return CLI_EXIT_USAGE;
	while (words[last + 1])
		last++;
	begun = words[last];
	if (last > 0)
		before = words[last - 1];
	for (size_t i = 0; i < count; i++) {
		if (last == 0)
			offer(commands[i].name, begun);
		else if (!strcmp(commands[i].name, words[0]))
			offer_words(&commands[i], before && before[0] == '-' ? before : NULL, begun);
	}
	return CLI_EXIT_OK;
}

/* --- manual page ---------------------------------------------------------------------------------------------------- */

/* Writes text so that roff shows it literally. */
static void put_roff(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
			fputs("\\&", stdout);
		if (text[i] == '\\')
			fputs("\\e", stdout);
		else if (text[i] == '-')
			fputs("\\-", stdout);
		else
			putchar(text[i]);
	}
}

static void put_command(const struct cli_command *command)
{
	char *help = help_of(command);

	printf(".SS ");
	put_roff(command->name, strlen(command->name));
	printf("\n");
	put_roff(command->summary, strlen(command->summary));
	printf("\n.PP\n");
	if (help && *help) {
		printf(".nf\n");
		put_roff(help, strlen(help));
		printf(".fi\n");
	} else {
		printf("Its options are listed by\n.B opstrobe %s \\-\\-help\n", command->name);
	}
	free(help);
}

int cli_man(const struct cli_command *commands, size_t count)
{
	printf(".TH OPSTROBE 1 \"\" \"opstrobe " OPS_VERSION "\"\n"
	       ".SH NAME\nopstrobe \\- profile PyTorch programs, and read their traces\n"
	       ".SH SYNOPSIS\n.B opstrobe\n.I command\n[options]\n.br\n.B opstrobe\n.I trace ...\n"
	       ".SH DESCRIPTION\nA trace alone is shown as by the command\n.BR views .\n"
	       "A trace is a file of torch.profiler or Opstrobe, plain or compressed by gzip or zstd; a directory means the traces "
	       "in it,\na pattern for all that match, and \\- for standard input.\n"
	       ".SH COMMANDS\n");
	for (size_t i = 0; i < count; i++)
		put_command(&commands[i]);
	printf(".SH EXIT STATUS\n0: success. 1: failure. 2: wrong usage. 3: a regression, by\n"
	       ".B diff \\-\\-exit\\-on\\-regression\nor\n.BR ab ,\nor a fix that changes results, by\n.BR prove .\n"
	       "4: inconclusive, by\n.BR ab .\n"
	       ".SH ENVIRONMENT\n.B NO_COLOR\nswitches colours off;\n.B OPSTROBE_PYTHON\nis the Python that records.\n");
	return CLI_EXIT_OK;
}
