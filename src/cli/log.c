/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of commands on standard error. Paths and arguments may contain escape sequences and line breaks; these are escaped
 * before they reach a terminal.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <opstrobe/error.h>

#define TEXT_MAX 8192 /* a path and a message about it */

void cli_log(const char *format, ...)
{
	char text[TEXT_MAX];
	bool ends = *format && format[strlen(format) - 1] == '\n';
	va_list values;
	size_t size;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	size = strlen(text);
	if (ends && size && text[size - 1] == '\n')
		text[size - 1] = '\0';
	ops_make_plain(text);
	fputs(text, stderr);
	fputs(ends ? "\n" : "", stderr);
}

void cli_put_heading(const char *path, bool is_first)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "%s", path);
	ops_make_plain(text);
	printf("%s--- %s ---\n", is_first ? "" : "\n", text);
}
