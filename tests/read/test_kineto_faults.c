/* SPDX-License-Identifier: Apache-2.0
 *
 * Lack of memory, all kinds of compressed data, and files with flipped bits: there is a result in every case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>

#include <opstrobe/read.h>

#include "../base/failing.h"
#include "../trace/random.h"
#include "compare.h"
#include "reading.h"
#include "sample.h"

/* --- compressed ----------------------------------------------------------------------------------------------------- */

struct bytes {
	char *bytes;
	size_t size;
};

static struct bytes compress_text(const char *text, size_t size)
{
	struct bytes out = {.size = size + 1000};
	z_stream stream = {0};

	out.bytes = malloc(out.size);
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (unsigned char *)(uintptr_t)text;
	stream.avail_in = (unsigned)size;
	stream.next_out = (unsigned char *)out.bytes;
	stream.avail_out = (unsigned)out.size;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	out.size -= stream.avail_out;
	deflateEnd(&stream);
	return out;
}

static enum ops_code read_bytes(struct bytes bytes, struct ops_trace **ret_trace, struct ops_error *error)
{
	return ops_trace_read_memory(bytes.bytes, bytes.size, NULL, ret_trace, error);
}

static void gzip_says_the_same(void **state)
{
	struct bytes packed = compress_text(sample, sizeof(sample) - 1);
	struct ops_trace *plain, *trace;

	(void)state;
	assert_int_equal(ops_trace_read_memory(sample, sizeof(sample) - 1, NULL, &plain, NULL), OPS_OK);
	assert_int_equal(read_bytes(packed, &trace, NULL), OPS_OK);
	assert_same_trace(plain, trace);
	ops_trace_unref(trace);
	ops_trace_unref(plain);
	free(packed.bytes);
}

static void members_follow_each_other(void **state)
{
	struct bytes first = compress_text(sample, 1000), second = compress_text(sample + 1000, sizeof(sample) - 1001);
	struct bytes both = {malloc(first.size + second.size + 4), first.size + second.size};
	struct ops_trace *trace;

	(void)state;
	memcpy(both.bytes, first.bytes, first.size);
	memcpy(both.bytes + first.size, second.bytes, second.size);
	assert_int_equal(read_bytes(both, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->count, 13);
	ops_trace_unref(trace);
	memcpy(both.bytes + both.size, "more", 4);
	both.size += 4;
	assert_int_equal(read_bytes(both, &trace, NULL), OPS_OK);
	assert_noted(trace, OPS_NOTE_GZIP_TRAILING);
	ops_trace_unref(trace);
	free(both.bytes);
	free(first.bytes);
	free(second.bytes);
}

static void gzip_cut_short(void **state)
{
	struct bytes packed = compress_text(sample, sizeof(sample) - 1);
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	packed.size -= 200;
	assert_int_equal(read_bytes(packed, &trace, NULL), OPS_OK);
	assert_noted(trace, OPS_NOTE_GZIP_TRUNCATED);
	assert_noted(trace, OPS_NOTE_TRUNCATED);
	assert_true(ops_trace_events(trace)->count > 5);
	ops_trace_unref(trace);
	packed.size += 200;
	packed.bytes[packed.size - 6] ^= 1; /* the checksum */
	assert_int_equal(read_bytes(packed, &trace, &error), OPS_CORRUPT);
	assert_non_null(strstr(error.text, "compressed byte"));
	packed.bytes[packed.size / 2] ^= 0xff;
	assert_int_equal(read_bytes(packed, &trace, &error), OPS_CORRUPT);
	free(packed.bytes);
}

/* With libzstd it is damaged, and without it nothing that can be read. */
static void other_compressions(void **state)
{
	struct ops_trace *trace;
	struct ops_error error;
	enum ops_code code = ops_trace_read_memory("\x28\xb5\x2f\xfd.......", 11, NULL, &trace, &error);

	(void)state;
	assert_true(code == OPS_CORRUPT || code == OPS_UNSUPPORTED);
	assert_non_null(strstr(error.text, "zstd"));
}

/* Much that comes out of little, and nothing of use in it, takes no memory. */
static void a_flood_of_space(void **state)
{
	size_t size = 64u << 20;
	char *text = malloc(size);
	struct bytes packed;
	struct ops_trace *trace;

	(void)state;
	memset(text, ' ', size);
	memcpy(text + size - 2, "[]", 2);
	packed = compress_text(text, size);
	free(text);
	assert_int_equal(read_bytes(packed, &trace, NULL), OPS_OK);
	ops_trace_unref(trace);
	free(packed.bytes);
}

static void a_string_without_end(void **state)
{
	size_t size = 140u << 20;
	char *text = malloc(size);
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	memset(text, 'a', size);
	memcpy(text, "[{\"", 3);
	assert_int_equal(ops_trace_read_memory(text, size, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "cannot read trace: byte 1: a value of more than 64 MiB");
	free(text);
}

/* What only Opstrobe's own files say. */
static const char own[] =
	"{\"opstrobe\":{\"recorded\":true,\"start_ns\":0,\"stop_ns\":9000,\"tracks\":[[0,1,1,1,1,\"\"]],"
	"\"functions\":[[\"f\",\"a.py\",3]],\"modules\":[[\"nn.Module: A_0\",0,\"m.A\",\"A\",null,64,1,4,1,4,[\"b\"]]],"
	"\"storages\":[[4096,8],[8192,8,1,1]],\"roles\":[[1,2,1,\"w\",0],[2,[0,0],5,\"\",0]]},\"traceEvents\":["
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":9,"
	"\"args\":{\"Storages\":[1,-2,[7,3]]}},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a.py(3): f\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1,"
	"\"args\":{\"Python id\":1,\"Module\":0,\"Function\":0,\"CallFrom\":\"b.py:2\"}}]}";

/* --- memory that runs out ------------------------------------------------------------------------------------------- */

struct file {
	struct bytes bytes;
	size_t rows;
};

static void read_once(void *context)
{
	const struct file *file = context;
	struct ops_trace *trace = NULL;
	enum ops_code code = read_bytes(file->bytes, &trace, NULL);

	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	assert_int_equal(code == OPS_OK, trace != NULL);
	if (!trace)
		return;
	assert_int_equal(ops_trace_events(trace)->count, file->rows);
	ops_trace_unref(trace);
}

static void memory_runs_out(void **state)
{
	struct file plain = {{malloc(sizeof(sample)), sizeof(sample) - 1}, 13};
	struct file packed = {compress_text(sample, sizeof(sample) - 1), 13};
	struct file of_our_own = {compress_text(own, sizeof(own) - 1), 2};

	(void)state;
	memcpy(plain.bytes.bytes, sample, sizeof(sample));
	assert_true(fail_each(read_once, &plain) > 50);
	assert_true(fail_each(read_once, &packed) > 50);
	assert_true(fail_each(read_once, &of_our_own) > 20);
	free(plain.bytes.bytes);
	free(packed.bytes.bytes);
	free(of_our_own.bytes.bytes);
}

/* --- damage --------------------------------------------------------------------------------------------------------- */

#define MUTATIONS 20000

static void damage(char *text, size_t *size, struct random *random)
{
	static const char pieces[] = "{}[],:\"\\0-e.nX\x80\n";
	size_t at = random_below(random, (uint32_t)*size);
	size_t run = 1 + random_below(random, 40);

	switch (random_below(random, 4)) {
	case 0:
		text[at] = (char)(text[at] ^ 1 << random_below(random, 8));
		break;
	case 1:
		text[at] = pieces[random_below(random, sizeof(pieces) - 1)];
		break;
	case 2: /* cut something out */
		if (run > *size - at)
			run = *size - at;
		memmove(text + at, text + at + run, *size - at - run);
		*size -= run;
		break;
	default: /* one piece over another */
		if (run > *size - at)
			run = *size - at;
		memmove(text + at, text + random_below(random, (uint32_t)(*size - run + 1)), run);
	}
}

static void assert_stands_damage(const char *whole, size_t whole_size)
{
	struct random random = {1};
	size_t read = 0;

	for (int i = 0; i < MUTATIONS; i++) {
		char text[sizeof(sample) + sizeof(own)];
		size_t size = whole_size;
		struct ops_trace *trace = NULL;
		struct ops_error error;

		memcpy(text, whole, whole_size);
		for (uint32_t times = 1 + random_below(&random, 4); times && size; times--)
			damage(text, &size, &random);
		if (ops_trace_read_memory(text, size, NULL, &trace, &error)) {
			assert_int_equal(error.code, OPS_CORRUPT);
			continue;
		}
		if (ops_trace_check(trace, &error))
			fail_msg("%s: %.*s", error.text, (int)size, text);
		read++;
		ops_trace_unref(trace);
	}
	assert_in_range(read, MUTATIONS / 10, MUTATIONS - 1);
}

static void any_damage(void **state)
{
	(void)state;
	assert_stands_damage(sample, sizeof(sample) - 1);
	assert_stands_damage(own, sizeof(own) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_says_the_same),
		cmocka_unit_test(members_follow_each_other),
		cmocka_unit_test(gzip_cut_short),
		cmocka_unit_test(other_compressions),
		cmocka_unit_test(a_flood_of_space),
		cmocka_unit_test(a_string_without_end),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(any_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
