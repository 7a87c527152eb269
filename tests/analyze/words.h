/* SPDX-License-Identifier: Apache-2.0
 *
 * The input format of the programs here that a script drives: words separated by white space. A text is 'x' and its bytes in
 * hexadecimal, so that it may contain anything; "-" means no text.
 */
#ifndef OPS_TEST_WORDS_H
#define OPS_TEST_WORDS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "cannot go on: %s\n", what);
	exit(2);
}

static inline int64_t read_int(void)
{
	int64_t value;

	require(scanf("%" SCNd64, &value) == 1, "a number is missing");
	return value;
}

/* Reads a text, NUL-terminated and to be freed; NULL for no text. */
static inline char *read_text(size_t *ret_size)
{
	char *word = NULL;
	unsigned byte;

	require(scanf("%ms", &word) == 1, "a text is missing");
	if (strcmp(word, "-") == 0) {
		free(word);
		return NULL;
	}
	require(word[0] == 'x', "not a text");
	*ret_size = strlen(word + 1) / 2;
	for (size_t i = 0; i < *ret_size; i++) {
		require(sscanf(word + 1 + 2 * i, "%2x", &byte) == 1, "not hexadecimal");
		word[i] = (char)byte;
	}
	word[*ret_size] = '\0';
	return word;
}

#endif
