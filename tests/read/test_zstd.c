/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces compressed with zstd: complete, in frames, truncated, damaged, and with lack of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include <opstrobe/read.h>

#include "../base/failing.h"
#include "compare.h"
#include "reading.h"
#include "sample.h"

/* More than the compressed form of the sample, twice, and a few bytes. */
#define ROOM (2 * sizeof(sample) + 2000)

static char packed[ROOM];

/* Puts a frame behind `size` bytes of `packed`; returns how many there are then. */
static size_t pack(size_t size, const char *text, size_t text_size)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t frame;

	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	frame = ZSTD_compress2(context, packed + size, ROOM - size, text, text_size);
	assert_false(ZSTD_isError(frame));
	ZSTD_freeCCtx(context);
	return size + frame;
}

static struct ops_trace *read_packed(size_t size)
{
	struct ops_trace *trace = NULL;
	struct ops_error error = {.text = ""};

	if (ops_trace_read_memory(packed, size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static void zstd_says_the_same(void **state)
{
	struct ops_trace *plain, *trace;

	(void)state;
	assert_int_equal(ops_trace_read_memory(sample, sizeof(sample) - 1, NULL, &plain, NULL), OPS_OK);
	trace = read_packed(pack(0, sample, sizeof(sample) - 1));
	assert_same_trace(plain, trace);
	ops_trace_unref(trace);
	ops_trace_unref(plain);
}

/* One to skip comes first, as pzstd writes it, and one without content in between. */
static void frames_follow_each_other(void **state)
{
	static const char skipped[] = "\x50\x2a\x4d\x18\x04\x00\x00\x00skip";
	struct ops_trace *trace;
	size_t size = sizeof(skipped) - 1;

	(void)state;
	memcpy(packed, skipped, size);
	size = pack(size, sample, 1000);
	size = pack(size, "", 0);
	size = pack(size, sample + 1000, sizeof(sample) - 1001);
	trace = read_packed(size);
	assert_int_equal(ops_trace_events(trace)->count, 13);
	assert_false(is_noted(trace, OPS_NOTE_GZIP_TRUNCATED));
	ops_trace_unref(trace);
	memcpy(packed + size, "anything", 8);
	trace = read_packed(size + 8);
	assert_int_equal(ops_trace_events(trace)->count, 13);
	assert_true(is_noted(trace, OPS_NOTE_GZIP_TRAILING));
	ops_trace_unref(trace);
}

/* A frame of blocks: those that are whole are read. */
static void zstd_cut_short(void **state)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_outBuffer out = {packed, ROOM, 0};
	struct ops_trace *trace;

	(void)state;
	for (size_t at = 0; at < sizeof(sample) - 1; at += 300) {
		size_t rest = sizeof(sample) - 1 - at;
		ZSTD_inBuffer in = {sample + at, rest < 300 ? rest : 300, 0};

		assert_false(ZSTD_isError(ZSTD_compressStream2(context, &out, &in, rest <= 300 ? ZSTD_e_end : ZSTD_e_flush)));
	}
	ZSTD_freeCCtx(context);
	trace = read_packed(out.pos - 200);
	assert_true(is_noted(trace, OPS_NOTE_GZIP_TRUNCATED));
	assert_true(is_noted(trace, OPS_NOTE_TRUNCATED));
	assert_true(ops_trace_events(trace)->count > 5);
	ops_trace_unref(trace);
}

static void damage_names_the_byte(void **state)
{
	size_t size = pack(0, sample, sizeof(sample) - 1);
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	packed[size - 1] ^= 1; /* the checksum */
	assert_int_equal(ops_trace_read_memory(packed, size, NULL, &trace, &error), OPS_CORRUPT);
	assert_non_null(strstr(error.text, "compressed byte"));
	packed[size - 1] ^= 1;
	for (size_t i = 4; i < size; i++) {
		packed[i] ^= 0x41;
		if (ops_trace_read_memory(packed, size, NULL, &trace, &error) == OPS_OK)
			ops_trace_unref(trace);
		packed[i] ^= 0x41;
	}
}

/* The frame needs a window of 256 MiB: too much. */
static void windows_are_bounded(void **state)
{
	static const char wide[] = "\x28\xb5\x2f\xfd\x00\x90\x11\x00\x00[]";
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_trace_read_memory(wide, sizeof(wide) - 1, NULL, &trace, &error), OPS_CORRUPT);
	assert_non_null(strstr(error.text, "memory"));
}

static void read_once(void *context)
{
	struct ops_trace *trace = NULL;
	enum ops_code code = ops_trace_read_memory(packed, *(size_t *)context, NULL, &trace, NULL);

	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	ops_trace_unref(trace);
}

static void survives_allocation_failures(void **state)
{
	size_t size = pack(0, sample, sizeof(sample) - 1);

	(void)state;
	assert_true(fail_each(read_once, &size) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zstd_says_the_same),        cmocka_unit_test(frames_follow_each_other),
		cmocka_unit_test(zstd_cut_short),            cmocka_unit_test(damage_names_the_byte),
		cmocka_unit_test(windows_are_bounded),       cmocka_unit_test(survives_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
