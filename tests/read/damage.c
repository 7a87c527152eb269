/* SPDX-License-Identifier: Apache-2.0
 *
 * Files cut short and with bits flipped: an error that says what it is, or a trace that keeps its promises and can be
 * looked at. Of a compressed file both the file and its text are damaged.
 *
 *     damage FILE…
 *
 * DAMAGE_CUTS, DAMAGE_FLIPS (how many of each file) and DAMAGE_SECONDS (of processor time, for all of them) make a run
 * longer than that of the test. What is damaged follows from DAMAGE_SEED alone.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zlib.h>

#include <opstrobe/read.h>

#include "look_at.h"

static uint64_t random_state;
static unsigned long tried, recovered, refused;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 16) % limit;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static void try(const uint8_t *bytes, size_t size)
{
	/* Of its own size, so that a sanitizer sees what is read behind it. */
	char *copy = malloc(size ? size : 1);
	struct ops_trace *trace = NULL;
	struct ops_error error;

	expect(copy != NULL, "out of memory");
	memcpy(copy, bytes, size);
	tried++;
	if (ops_trace_read_memory(copy, size, NULL, &trace, &error)) {
		expect(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED, error.text);
		expect(!trace && *error.text, "an error without words");
		refused++;
	} else {
		look_at(trace, expect);
		ops_trace_unref(trace);
		recovered++;
	}
	free(copy);
}

static int in_time(void)
{
	return (unsigned long)(clock() / CLOCKS_PER_SEC) < setting("DAMAGE_SECONDS", 20);
}

static void damage(uint8_t *bytes, size_t size)
{
	unsigned long cuts = setting("DAMAGE_CUTS", 1000), flips = setting("DAMAGE_FLIPS", 2000);

	try(bytes, size);
	for (unsigned long i = 0; i < cuts && in_time(); i++)
		try(bytes, (size_t)(cuts >= size ? i % (size + 1) : random_below(size)));
	for (unsigned long i = 0; i < flips && size && in_time(); i++) {
		size_t places[8], count = 1 + (size_t)random_below(8);
		uint8_t before[8];

		for (size_t k = 0; k < count; k++) {
			places[k] = (size_t)random_below(size);
			before[k] = bytes[places[k]];
			bytes[places[k]] ^= (uint8_t)(1u << random_below(8));
		}
		try(bytes, size);
		for (size_t k = count; k-- > 0;)
			bytes[places[k]] = before[k];
	}
}

/* All of a file, decompressed if it is and that is wanted. */
static uint8_t *load(const char *path, int as_text, size_t *ret_size)
{
	gzFile file = as_text ? gzopen(path, "rb") : NULL;
	FILE *plain = as_text ? NULL : fopen(path, "rb");
	size_t room = 1 << 16, size = 0;
	uint8_t *bytes = malloc(room);

	expect((file || plain) && bytes, path);
	for (;;) {
		int more = file ? gzread(file, bytes + size, (unsigned)(room - size))
		                : (int)fread(bytes + size, 1, room - size, plain);

		if (more <= 0)
			break;
		size += (size_t)more;
		bytes = size == room ? realloc(bytes, room *= 2) : bytes;
		expect(bytes != NULL, "out of memory");
	}
	if (file)
		gzclose(file);
	else
		fclose(plain);
	*ret_size = size;
	return bytes;
}

int main(int count, char **paths)
{
	random_state = setting("DAMAGE_SEED", 1);
	for (int i = 1; i < count; i++) {
		size_t size, text_size;
		uint8_t *bytes = load(paths[i], 0, &size), *text = load(paths[i], 1, &text_size);

		damage(bytes, size);
		if (size != text_size || memcmp(bytes, text, size))
			damage(text, text_size);
		free(bytes);
		free(text);
	}
	printf("%d files: %lu tried, %lu read, %lu refused\n", count - 1, tried, recovered, refused);
	return recovered && refused ? 0 : 1;
}
