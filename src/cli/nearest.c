/* SPDX-License-Identifier: Apache-2.0
 *
 * See nearest.h.
 */
#include "nearest.h"

#include <stddef.h>
#include <string.h>

#include "cli.h"

#define NAME_SIZE_MAX 63

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein's distance: how many letters must be inserted, removed or replaced to turn one name into the other. */
static size_t edit_distance(const char *from, const char *to)
{
	size_t row[NAME_SIZE_MAX + 1];
	size_t width = strlen(to);

	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 1; from[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			size_t above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (from[i - 1] != to[j - 1]));
			diagonal = above;
		}
	}
	return row[width];
}

/* NULL if none resembles it. */
static const char *find_nearest(const char *name, const char *const *names)
{
	const char *nearest = NULL;
	const char *const *at;
	size_t size = strlen(name), nearest_distance = size < 9 ? 3 : size / 3;

	if (size > NAME_SIZE_MAX)
		return NULL;
	for (at = names; *at; at++) {
		size_t distance = strlen(*at) <= NAME_SIZE_MAX ? edit_distance(name, *at) : size;

		if (distance < nearest_distance && distance < size) {
			nearest_distance = distance;
			nearest = *at;
		}
	}
	for (at = names; !nearest && size > 3 && *at; at++)
		nearest = strstr(*at, name) ? *at : NULL;
	return nearest;
}

int cli_suggest(const char *name, const char *const *names, const char *list_command)
{
	const char *nearest = find_nearest(name, names);

	if (nearest)
		cli_say("did you mean '%s'?\n", nearest);
	else
		cli_say("'%s' lists them\n", list_command);
	return CLI_EXIT_USAGE;
}
