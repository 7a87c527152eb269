/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts arguments of the command line to members of a JSON object.
 */
#include "arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds `members`, text without braces, to the object. */
static bool arguments_add(struct cli_arguments *arguments, const char *members, size_t size)
{
	size_t old = arguments->text ? strlen(arguments->text) - 1 : 0;
	char *text;

	if (!size)
		return true;
	text = realloc(arguments->text, old + size + 4);
	if (!text)
		return false;
	arguments->text = text;
	if (!old)
		text[old++] = '{';
	else
		text[old++] = ',';
	memcpy(text + old, members, size);
	memcpy(text + old + size, "}", 2);
	return true;
}

bool cli_arguments_merge(struct cli_arguments *arguments, const char *object)
{
	const char *end = object + strlen(object);

	object += strspn(object, " \t\r\n");
	while (end > object && strchr(" \t\r\n", end[-1]))
		end--;
	if (end - object < 2 || *object != '{' || end[-1] != '}')
		return false;
	object++;
	object += strspn(object, " \t\r\n");
	for (end--; end > object && strchr(" \t\r\n", end[-1]);)
		end--;
	return arguments_add(arguments, object, (size_t)(end - object));
}

static bool arguments_is_number(const char *value)
{
	char *end;

	if (!strchr("-0123456789", *value) || !*value)
		return false;
	strtod(value, &end);
	return !*end;
}

/* Returns whether a value is a list of numbers, such as ranks: "0,1,5". */
static bool is_list(const char *value)
{
	return strchr(value, ',') && strspn(value, "-0123456789,") == strlen(value);
}

/* Returns whether a value is enclosed in one pair of quotes, unlike '"a" in name'. */
static bool is_quoted(const char *value)
{
	const char *at = value + 1;

	while (*at && *at != '"')
		at += at[0] == '\\' && at[1] ? 2 : 1;
	return *value == '"' && *at && !at[1];
}

/* Returns whether a value is a JSON list. Names of ranges may begin like one: "[param|forward]". */
static bool begins_list(const char *value)
{
	static const char *const words[] = {"true", "false", "null"};

	if (*value++ != '[')
		return false;
	value += strspn(value, " \t\r\n");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(value, words[i], strlen(words[i])))
			return true;
	return *value && strchr("]\"-0123456789[{", *value);
}

static bool is_json(const char *value)
{
	return arguments_is_number(value) || !strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null") ||
	       is_quoted(value) || begins_list(value) || *value == '{';
}

static char *arguments_append_text(char *to, const char *value)
{
	*to++ = '"';
	for (; *value; value++) {
		if ((unsigned char)*value < 0x20)
			to += sprintf(to, "\\u%04x", (unsigned)*value);
		else if (*value == '"' || *value == '\\')
			to += sprintf(to, "\\%c", *value);
		else
			*to++ = *value;
	}
	*to++ = '"';
	return to;
}

char *cli_arguments_quote(const char *value)
{
	char *text = malloc(6 * strlen(value) + 3);

	if (text)
		*arguments_append_text(text, value) = '\0';
	return text;
}

bool cli_arguments_set(struct cli_arguments *arguments, const char *name, size_t size, const char *value)
{
	char *text = malloc(6 * (size + strlen(value)) + 16), *end;
	bool done;

	if (!text)
		return false;
	text[0] = '"';
	for (size_t i = 0; i < size; i++)
		text[1 + i] = name[i] == '-' ? '_' : name[i];
	end = text + size + 1;
	end += sprintf(end, "\":");
	if (is_list(value) || (size == 5 && !memcmp(name, "ranks", 5) && arguments_is_number(value)))
		end += sprintf(end, "[%s]", value);
	else if (*value && is_json(value))
		end += sprintf(end, "%s", value);
	else
		end = arguments_append_text(end, value);
	done = arguments_add(arguments, text, (size_t)(end - text));
	free(text);
	return done;
}

void cli_arguments_release(struct cli_arguments *arguments)
{
	free(arguments->text);
	arguments->text = NULL;
}
