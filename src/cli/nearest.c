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

/* The Levenshtein distance: number of letters to insert, remove or replace to turn one name into the other. */
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

/* Returns the length of the longest common substring of two names. */
static size_t shared_size(const char *a, const char *b)
{
	size_t row[NAME_SIZE_MAX + 2] = {0};
	size_t width = strlen(b), longest = 0;

	for (size_t i = 0; a[i]; i++)
		for (size_t j = width; j-- > 0;) {
			row[j + 1] = a[i] == b[j] ? row[j] + 1 : 0;
			longest = row[j + 1] > longest ? row[j + 1] : longest;
		}
	return longest;
}

/* Returns the name that is fewer than `limit` edits away; NULL if there is none. */
static const char *find_by_edits(const char *name, const char *const *names, size_t limit)
{
	const char *nearest = NULL;
	size_t size = strlen(name);

	for (; *names; names++) {
		size_t distance = strlen(*names) <= NAME_SIZE_MAX ? edit_distance(name, *names) : limit;

		if (distance < limit && distance < size) {
			limit = distance;
			nearest = *names;
		}
	}
	return nearest;
}

/* Returns the name with the longest common substring, which must be at least half of either name. Returns NULL if there is none
 * of at least four letters. */
static const char *find_by_piece(const char *name, const char *const *names)
{
	const char *nearest = NULL;
	size_t size = strlen(name), most = 3;

	for (; *names; names++) {
		size_t length = strlen(*names), shared = length <= NAME_SIZE_MAX ? shared_size(name, *names) : 0;

		if (shared > most && 2 * shared >= (size < length ? size : length)) {
			most = shared;
			nearest = *names;
		}
	}
	return nearest;
}

/* Returns the name for a typing error, a part of the name or a longer form of it, or several errors in a long name. Returns NULL
 * if none is similar. */
static const char *find_nearest(const char *name, const char *const *names)
{
	const char *nearest;

	if (strlen(name) > NAME_SIZE_MAX)
		return NULL;
	nearest = find_by_edits(name, names, 3);
	if (!nearest)
		nearest = find_by_piece(name, names);
	return nearest ? nearest : find_by_edits(name, names, strlen(name) / 3);
}

int cli_suggest(const char *name, const char *const *names, const char *list_command)
{
	const char *nearest = find_nearest(name, names);

	if (nearest)
		cli_log("did you mean '%s'?\n", nearest);
	else
		cli_log("'%s' lists them\n", list_command);
	return CLI_EXIT_USAGE;
}
