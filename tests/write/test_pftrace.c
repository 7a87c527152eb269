/* SPDX-License-Identifier: Apache-2.0
 *
 * write/pftrace: the packets of a file are complete, and on errors the old file is kept. Their contents are checked with
 * Perfetto's own reader, from Python.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/write.h>

#include "../base/failing.h"
#include "../trace/rich.h"
#include "folder.h"

static struct ops_trace *rich_trace(void)
{
	struct ops_trace *trace = NULL;

	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	return trace;
}

static uint64_t read_varint(const struct ops_buffer *file, size_t *at)
{
	uint64_t value = 0;

	for (int shift = 0; *at < file->size; shift += 7) {
		uint8_t byte = (uint8_t)file->bytes[(*at)++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return value;
}

static void packets_fill_the_file(void **state)
{
	struct ops_trace *trace = rich_trace();
	size_t packets = 0, at = 0;
	struct ops_buffer file;

	(void)state;
	assert_int_equal(ops_write_pftrace(trace, "out.pftrace", NULL, NULL), OPS_OK);
	file = read_whole("out.pftrace");
	for (; at < file.size; packets++) {
		assert_int_equal(read_varint(&file, &at), 1 << 3 | 2);
		at += read_varint(&file, &at);
	}
	assert_int_equal(at, file.size);
	assert_true(packets > 2 * ops_trace_events(trace)->count);
	assert_non_null(memmem(file.bytes, file.size, "a.py(1): f;", 11)); /* the stack of a memory record */
	ops_buffer_release(&file);
	ops_trace_unref(trace);
}

static void write_failing(void *context)
{
	struct ops_error error = {0};
	enum ops_code code = ops_write_pftrace(context, "out.pftrace.gz", NULL, &error);
	struct ops_buffer whole;

	if (code == OPS_OK) {
		put_file("out.pftrace.gz", "old");
		return;
	}
	assert_int_equal(code, OPS_NO_MEMORY);
	whole = read_whole("out.pftrace.gz");
	assert_string_equal(whole.bytes, "old");
	ops_buffer_release(&whole);
	assert_int_equal(count_files(), 1);
}

static void survives_every_failure(void **state)
{
	struct ops_trace *trace = rich_trace();

	(void)state;
	put_file("out.pftrace.gz", "old");
	assert_true(fail_each(write_failing, trace) >= 15);
	ops_trace_unref(trace);
}

static int cancel(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return 1;
}

static void cancelling_and_wrong_levels(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_pftrace_options options = {.size = sizeof(options), .progress = cancel};

	(void)state;
	assert_int_equal(ops_write_pftrace(trace, "out.pftrace", &options, NULL), OPS_STATE);
	options = (struct ops_pftrace_options){.size = sizeof(options), .compression_level = 10};
	assert_int_equal(ops_write_pftrace(trace, "out.pftrace", &options, NULL), OPS_INVALID);
	assert_int_equal(ops_write_pftrace(trace, "no/out.pftrace", NULL, NULL), OPS_IO);
	assert_int_equal(count_files(), 0);
	ops_trace_unref(trace);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(packets_fill_the_file),
		IN_FOLDER(survives_every_failure),
		IN_FOLDER(cancelling_and_wrong_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
