/* SPDX-License-Identifier: Apache-2.0
 *
 * The pager; see pager.h. It is started when the result is complete, so that standard output is the terminal until then: its
 * width and colours are known, Ctrl-C ends the command, and progress can use the screen.
 */
#include "pager.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_FOUND 127 /* exit status of a shell */

static struct {
	FILE *terminal; /* NULL: the output is not captured */
	char *text;
	size_t size;
} kept;

/* Returns the shell command, or NULL for no pager. */
static const char *pager(void)
{
	const char *terminal = getenv("TERM"), *name = getenv("PAGER");

	if (!terminal || !strcmp(terminal, "dumb"))
		return NULL;
	if (!name)
		return "less";
	return *name && strcmp(name, "cat") != 0 ? name : NULL;
}

void cli_pager_begin(void)
{
	FILE *memory = isatty(STDOUT_FILENO) && pager() ? open_memstream(&kept.text, &kept.size) : NULL;

	if (!memory)
		return;
	kept.terminal = stdout;
	stdout = memory;
}

static bool pager_fits(void)
{
	struct winsize size = {0};
	size_t lines = 0;

	for (size_t i = 0; i < kept.size; i++)
		lines += kept.text[i] == '\n';
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || lines < size.ws_row;
}

/* Returns false if the pager does not exist. A user may leave it before the end, and Ctrl-C is handled by the pager. */
static bool pager_show(const char *command)
{
	FILE *pipe;
	int status;

	setenv("LESS", "FRX", 0); /* quit if everything fits, show colours, and leave the text on the screen */
	setenv("LV", "-c", 0);
	pipe = popen(command, "w"); /* NOLINT(bugprone-command-processor): $PAGER is a command line by convention */
	if (!pipe)
		return false;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	fwrite(kept.text, 1, kept.size, pipe);
	status = pclose(pipe);
	return status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_NOT_FOUND;
}

void cli_pager_end(void)
{
	if (!kept.terminal)
		return;
	fclose(stdout);
	stdout = kept.terminal;
	if (pager_fits() || !pager_show(pager()))
		fwrite(kept.text, 1, kept.size, stdout);
	free(kept.text);
}
