/* SPDX-License-Identifier: Apache-2.0
 *
 * Truncated files and files with flipped bits: the result is an error with a reason, or a valid trace that can be inspected, with
 * at most twice the memory that the complete file takes, and in limited time. Of a compressed file both the file and its text are
 * damaged.
 *
 *     damage FILE…
 *
 * The environment makes a run longer than that of the test: DAMAGE_CUTS and DAMAGE_FLIPS are the numbers of inputs made from each
 * file; at most DAMAGE_BITS bits are flipped in one; DAMAGE_SECONDS of CPU time are spent on a file; for files larger than
 * DAMAGE_LOOK bytes, only every sixteenth trace is inspected. The damage only depends on DAMAGE_SEED. An input that fails is
 * saved in the file damaged-input.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include <opstrobe/read.h>

#include "look_at.h"

/* Of processor time, for one input: many times what the slowest takes with sanitizers. */
#define SECONDS_MAX 60
/* What a window, a decompressor and its thread may take of small files. */
#define FIXED_BYTES (4 << 20)

/* --- memory --------------------------------------------------------------------------------------------------------- */

/* Everything the library allocates passes here: the linker's --wrap sees to it. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes_each);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes_each);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);

static int64_t bytes_held, bytes_peak;

static void *count_bytes(void *memory, int64_t before)
{
	int64_t more = (memory ? (int64_t)malloc_usable_size(memory) : 0) - before;
	int64_t held = __atomic_add_fetch(&bytes_held, more, __ATOMIC_RELAXED);

	if (held > __atomic_load_n(&bytes_peak, __ATOMIC_RELAXED))
		__atomic_store_n(&bytes_peak, held, __ATOMIC_RELAXED);
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return count_bytes(__real_malloc(bytes), 0);
}

void *__wrap_calloc(size_t count, size_t bytes_each)
{
	return count_bytes(__real_calloc(count, bytes_each), 0);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	int64_t before = old ? (int64_t)malloc_usable_size(old) : 0;
	void *grown = __real_realloc(old, bytes);

	return grown ? count_bytes(grown, before) : NULL;
}

void __wrap_free(void *memory)
{
	count_bytes(NULL, memory ? (int64_t)malloc_usable_size(memory) : 0);
	__real_free(memory);
}

/* --- one input ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state;
static unsigned long tried, recovered, refused;
static double worst; /* of the inputs, in memory relative to that of the complete file */

/* The input in hand. */
static const uint8_t *input;
static size_t input_size;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 16) % limit;
}

static unsigned long setting(const char *name, unsigned long default_value)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : default_value;
}

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* For a debugger, of what broke something or has no end. */
static void keep_input(int signal_number)
{
	int file = open("damaged-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (file >= 0 && write(file, input, input_size) == (ssize_t)input_size)
		close(file);
	signal(SIGABRT, SIG_DFL);
	signal(signal_number, SIG_DFL);
	abort();
}

static void give_time(time_t seconds)
{
	const struct itimerval timer = {.it_value.tv_sec = seconds};

	setitimer(ITIMER_PROF, &timer, NULL);
}

static void compare_memory(int64_t peak, int64_t whole)
{
	double ratio = (double)(peak - FIXED_BYTES) / (double)whole;

	expect(ratio <= 2, "more than twice the memory of the whole file");
	if (ratio > worst)
		worst = ratio;
}

/* Gives the most memory that was held while the input was read; `whole` is that of the whole file, 0 for this itself. */
static int64_t try(const uint8_t *bytes, size_t size, int look, int64_t whole)
{
	/* Of exactly that size, so that a sanitizer sees reads beyond it. */
	uint8_t *copy = malloc(size ? size : 1);
	struct ops_trace *trace = NULL;
	struct ops_error error;
	int64_t before, peak;

	expect(copy != NULL, "out of memory");
	memcpy(copy, bytes, size);
	input = copy;
	input_size = size;
	before = bytes_peak = bytes_held;
	give_time(SECONDS_MAX);
	tried++;
	if (ops_trace_read_memory((const char *)copy, size, NULL, &trace, &error)) {
		expect(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED, error.text);
		expect(!trace && *error.text, "an error without words");
		refused++;
	}
	peak = bytes_peak - before;
	if (whole)
		compare_memory(peak, whole);
	if (trace) {
		expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
		if (look)
			read_everything(trace, expect);
		ops_trace_unref(trace);
		recovered++;
	}
	give_time(0);
	expect(bytes_held == before, "memory that is not freed");
	free(copy);
	return peak;
}

/* --- one file ------------------------------------------------------------------------------------------------------- */

static void damage(uint8_t *bytes, size_t size)
{
	unsigned long cuts = setting("DAMAGE_CUTS", 1000), flips = setting("DAMAGE_FLIPS", 2000);
	unsigned long bits = setting("DAMAGE_BITS", 8), every = size > setting("DAMAGE_LOOK", 4 << 20) ? 16 : 1;
	clock_t until = clock() + (clock_t)setting("DAMAGE_SECONDS", 3) * CLOCKS_PER_SEC;
	int64_t whole = try(bytes, size, 1, 0);

	for (unsigned long i = 0; i < cuts && clock() < until; i++)
		try(bytes, (size_t)(cuts >= size ? i % (size + 1) : random_below(size)), i % every == 0, whole);
	for (unsigned long i = 0; i < flips && size && clock() < until; i++) {
		size_t places[64], count = 1 + (size_t)random_below(bits < 64 ? bits : 64);
		uint8_t before[64];

		for (size_t k = 0; k < count; k++) {
			places[k] = (size_t)random_below(size);
			before[k] = bytes[places[k]];
			bytes[places[k]] ^= (uint8_t)(1u << random_below(8));
		}
		try(bytes, size, i % every == 0, whole);
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
	signal(SIGABRT, keep_input);
	signal(SIGSEGV, keep_input);
	signal(SIGPROF, keep_input);
	for (int i = 1; i < count; i++) {
		size_t size, text_size;
		uint8_t *bytes = load(paths[i], 0, &size), *text = load(paths[i], 1, &text_size);

		damage(bytes, size);
		if (size != text_size || memcmp(bytes, text, size))
			damage(text, text_size);
		free(bytes);
		free(text);
		printf("%s: so far %lu tried, %lu read, %lu refused, memory at most %.2f of the whole\n", paths[i], tried, recovered,
		       refused, worst);
		fflush(stdout);
	}
	return recovered && refused ? 0 : 1;
}
