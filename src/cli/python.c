/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and starts Python, for commands that are implemented in it.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `python -c` (and `-m`) add the current directory to the path: a file `queue.py` in it would break the imports of Opstrobe,
 * though not those of the program to run. So it is removed before anything is imported. */
static const char start_up[] =
	"import sys\n"
	"if sys.path[:1] == ['']: del sys.path[0]\n"
	"try:\n"
	"    import opstrobe\n"
	"except ModuleNotFoundError as error:\n"
	"    if error.name != 'opstrobe': raise\n"
	"    sys.exit(f'opstrobe: {sys.executable} has no package opstrobe: install it there, or set OPSTROBE_PYTHON')\n"
	"from %s import main\n"
	"main()\n";

/* Returns the directory of this executable, with links resolved. Returns false if it is unknown. */
static bool own_directory(char *directory, size_t room)
{
	ssize_t size = readlink("/proc/self/exe", directory, room - 1);
	char *slash;

	if (size <= 0)
		return false;
	directory[size] = '\0';
	slash = strrchr(directory, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* Executes Python: the requested one, else the one next to this executable, the one it was built for, or any other. Returns only
 * if there is none, with the name of the last one tried in command[0], which is static or from the environment. */
static void start_python(char **command)
{
	char directory[PATH_MAX];
	char path[PATH_MAX + 16];
	const char *asked = getenv("OPSTROBE_PYTHON");

	if (asked && *asked) {
		command[0] = (char *)asked;
		execvp(command[0], command);
		return;
	}
	if (own_directory(directory, sizeof(directory))) {
		snprintf(path, sizeof(path), "%s/python3", directory);
		command[0] = path;
		execv(command[0], command);
	}
#ifdef OPS_PYTHON
	command[0] = OPS_PYTHON;
	execvp(command[0], command);
#endif
	command[0] = "python3";
	execvp(command[0], command);
}

int cli_hand_over(const char *module, char **arguments)
{
	char code[sizeof(start_up) + 64];
	char **command;
	size_t count = 0;

	while (arguments[count])
		count++;
	command = calloc(count + 3, sizeof(*command));
	if (!command) {
		fputs("opstrobe: out of memory\n", stderr);
		return CLI_EXIT_FAILED;
	}
	snprintf(code, sizeof(code), start_up, module);
	command[1] = "-c";
	command[2] = code;
	for (size_t i = 1; i < count; i++)
		command[i + 2] = arguments[i];
	start_python(command);
	cli_log("opstrobe: cannot start Python '%s': %s; set OPSTROBE_PYTHON to the Python that has opstrobe\n",
	        command[0], strerror(errno));
	free(command);
	return CLI_EXIT_FAILED;
}
