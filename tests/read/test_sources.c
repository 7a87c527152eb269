/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of traces: files that are not traces, pipes, files that change while they are read, compressed data of several members,
 * and texts in other encodings.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <zlib.h>

#include <opstrobe/read.h>

#include "base/buffer.h"
#include "reading.h"

#define ROW "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1},\n"
#define ROWS 20000 /* more text than the reader takes at once */

static char path[] = "sources-XXXXXX";

static void write_file(const char *bytes, size_t size, const char *mode)
{
	FILE *file = fopen(path, mode);

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Rows from one to another, with the brackets of the list where they belong. */
static struct ops_buffer rows(int from, int to)
{
	struct ops_buffer text = {0};

	if (from == 0)
		ops_buffer_append_text(&text, "[");
	for (int i = from; i < to; i++)
		ops_buffer_printf(&text, ROW, i);
	if (to == ROWS)
		ops_buffer_append_text(&text, "{}]");
	assert_false(text.failed);
	return text;
}

static void assert_rows(struct ops_trace *trace, size_t count)
{
	assert_int_equal(ops_trace_events(trace)->count, count);
	ops_trace_unref(trace);
}

/* --- texts ---------------------------------------------------------------------------------------------------------- */

static void encodings(void **state)
{
	static const char utf8[] = "\xef\xbb\xbf[]", utf16[] = "\xff\xfe[\0]\0", big[] = "\xfe\xff\0[\0]";
	static const char utf32[] = "\xff\xfe\0\0[\0\0\0]\0\0";
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_trace_read_memory(utf8, sizeof(utf8) - 1, NULL, &trace, &error), OPS_OK);
	assert_rows(trace, 0);
	assert_int_equal(ops_trace_read_memory(utf16, sizeof(utf16) - 1, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "cannot read trace: byte 0: not a trace: neither '{' nor '['");
	assert_int_equal(ops_trace_read_memory(big, sizeof(big) - 1, NULL, &trace, NULL), OPS_CORRUPT);
	assert_int_equal(ops_trace_read_memory(utf32, sizeof(utf32) - 1, NULL, &trace, NULL), OPS_CORRUPT);
}

/* --- files ---------------------------------------------------------------------------------------------------------- */

static void assert_refused(enum ops_code code, const char *why)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;
	char message[200];

	snprintf(message, sizeof(message), "cannot read trace '%s': %s", path, why);
	assert_int_equal(ops_trace_read(path, NULL, &trace, &error), code);
	assert_string_equal(error.text, message);
	assert_null(trace);
}

static void files_that_are_not_traces(void **state)
{
	uid_t user = geteuid();

	(void)state;
	write_file("", 0, "w");
	assert_refused(OPS_CORRUPT, "byte 0: the file is empty");
	write_file(" \n", 2, "w");
	assert_refused(OPS_CORRUPT, "byte 2: the file is empty");
	assert_int_equal(chmod(path, 0), 0);
	/* Nothing is forbidden to root. */
	assert_int_equal(user == 0 ? seteuid(65534) : 0, 0);
	assert_refused(OPS_IO, "cannot open: permission denied");
	assert_int_equal(user == 0 ? seteuid(0) : 0, 0);
	assert_int_equal(unlink(path), 0);
	assert_refused(OPS_IO, "cannot open: no such file or directory");
	assert_int_equal(mkdir(path, 0777), 0);
	assert_refused(OPS_IO, "cannot read byte 0: is a directory");
	assert_int_equal(rmdir(path), 0);
}

static void *write_into_pipe(void *context)
{
	const struct ops_buffer *text = context;

	write_file(text->bytes, text->size, "w");
	return NULL;
}

static void a_pipe(void **state)
{
	struct ops_buffer text = rows(0, ROWS);
	struct ops_trace *trace;
	pthread_t writer;

	(void)state;
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_into_pipe, &text), 0);
	assert_int_equal(ops_trace_read(path, NULL, &trace, NULL), OPS_OK);
	pthread_join(writer, NULL);
	assert_rows(trace, ROWS);
	unlink(path);
	ops_buffer_release(&text);
}

/* --- files that change ---------------------------------------------------------------------------------------------- */

/* The reader has taken the first piece. */
static int append_rest(void *context, const struct ops_read_progress *progress)
{
	int *calls = context;

	(void)progress;
	if ((*calls)++ == 0) {
		struct ops_buffer rest = rows(ROWS - 100, ROWS);

		write_file(rest.bytes, rest.size, "a");
		ops_buffer_release(&rest);
	}
	return 0;
}

static int cut_short(void *context, const struct ops_read_progress *progress)
{
	int *calls = context;

	if ((*calls)++ == 0) {
		assert_true(progress->bytes < progress->bytes_total);
		assert_int_equal(truncate(path, (off_t)progress->bytes), 0);
	}
	return 0;
}

static void a_file_that_grows(void **state)
{
	struct ops_buffer text = rows(0, ROWS - 100);
	int calls = 0;
	struct ops_read_options options = {.size = sizeof(options), .progress = append_rest, .progress_context = &calls};
	struct ops_trace *trace;

	(void)state;
	write_file(text.bytes, text.size, "w");
	assert_int_equal(ops_trace_read(path, &options, &trace, NULL), OPS_OK);
	assert_true(calls > 1);
	assert_rows(trace, ROWS);
	ops_buffer_release(&text);
}

static void a_file_that_is_cut(void **state)
{
	struct ops_buffer text = rows(0, ROWS);
	int calls = 0;
	struct ops_read_options options = {.size = sizeof(options), .progress = cut_short, .progress_context = &calls};
	struct ops_trace *trace;

	(void)state;
	write_file(text.bytes, text.size, "w");
	assert_int_equal(ops_trace_read(path, &options, &trace, NULL), OPS_OK);
	assert_noted(trace, OPS_NOTE_TRUNCATED);
	assert_in_range(ops_trace_events(trace)->count, 1, ROWS - 1);
	ops_trace_unref(trace);
	unlink(path);
	ops_buffer_release(&text);
}

/* --- compressed data ------------------------------------------------------------------------------------------------ */

/* A separate member after the others. */
static void add_member(struct ops_buffer *out, const char *bytes, size_t size)
{
	z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)size};
	size_t room = size + 1000;

	stream.next_out = malloc(room);
	stream.avail_out = (unsigned)room;
	assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	ops_buffer_append(out, stream.next_out - stream.total_out, stream.total_out);
	free(stream.next_out - stream.total_out);
	deflateEnd(&stream);
	assert_false(out->failed);
}

static void cut_in_the_second_member(void **state)
{
	struct ops_buffer first = rows(0, ROWS / 2), second = rows(ROWS / 2, ROWS), packed = {0};
	struct ops_trace *trace;
	size_t whole;

	(void)state;
	add_member(&packed, first.bytes, first.size);
	whole = packed.size;
	add_member(&packed, second.bytes, second.size);
	assert_int_equal(ops_trace_read_memory(packed.bytes, packed.size, NULL, &trace, NULL), OPS_OK);
	assert_rows(trace, ROWS);
	for (size_t cut = whole + 1; cut < packed.size; cut += (packed.size - whole) / 7) {
		assert_int_equal(ops_trace_read_memory(packed.bytes, cut, NULL, &trace, NULL), OPS_OK);
		assert_noted(trace, OPS_NOTE_GZIP_TRUNCATED);
		assert_in_range(ops_trace_events(trace)->count, ROWS / 2, ROWS);
		ops_trace_unref(trace);
	}
	ops_buffer_release(&first);
	ops_buffer_release(&second);
	ops_buffer_release(&packed);
}

static long peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss * 1024;
}

/* Half a gigabyte of nothing out of half a megabyte: refused where it says nothing, and else read in bounded memory. */
static void bombs(void **state)
{
	size_t piece = 16u << 20;
	char *nothing = calloc(1, piece);
	struct ops_buffer zeros = {0}, spaces = {0}, name = {0};
	struct ops_trace *trace;
	struct ops_error error;
	long before;

	(void)state;
	add_member(&spaces, "[", 1);
	add_member(&name, "[{\"name\":\"", 10);
	for (int i = 0; i < 32; i++) {
		add_member(&zeros, nothing, piece);
		add_member(&name, nothing, piece);
	}
	memset(nothing, ' ', piece);
	for (int i = 0; i < 32; i++)
		add_member(&spaces, nothing, piece);
	add_member(&spaces, "]", 1);
	free(nothing);
	before = peak_bytes();
	assert_int_equal(ops_trace_read_memory(zeros.bytes, zeros.size, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "cannot read trace: byte 0: not a trace: neither '{' nor '['");
	assert_int_equal(ops_trace_read_memory(spaces.bytes, spaces.size, NULL, &trace, &error), OPS_OK);
	assert_rows(trace, 0);
	assert_int_equal(ops_trace_read_memory(name.bytes, name.size, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "cannot read trace: byte 1: a value of more than 64 MiB");
	/* A window of 64 MiB and the one before it, while it grows; and what a sanitizer keeps of what was freed. */
	assert_in_range(peak_bytes() - before, 0, 300 << 20);
	ops_buffer_release(&zeros);
	ops_buffer_release(&spaces);
	ops_buffer_release(&name);
}

/* What a compressed file may become has a limit, which the environment sets. */
static void a_limit_on_what_is_unpacked(void **state)
{
	struct ops_buffer packed = {0};
	struct ops_error error = {0};
	struct ops_trace *trace;

	(void)state;
	add_member(&packed, "[", 1);
	for (int i = 0; i < 1100; i++)
		add_member(&packed, " ", 1);
	add_member(&packed, "]", 1);
	setenv("OPSTROBE_MAX_UNPACKED_GB", "0.000001", 1);
	assert_int_equal(ops_trace_read_memory(packed.bytes, packed.size, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text,
	                    "cannot read trace: more than 1e-06 GB when decompressed; OPSTROBE_MAX_UNPACKED_GB sets another limit");
	setenv("OPSTROBE_MAX_UNPACKED_GB", "0.000002", 1);
	assert_int_equal(ops_trace_read_memory(packed.bytes, packed.size, NULL, &trace, &error), OPS_OK);
	assert_rows(trace, 0);
	unsetenv("OPSTROBE_MAX_UNPACKED_GB");
	ops_buffer_release(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodings),
		cmocka_unit_test(files_that_are_not_traces),
		cmocka_unit_test(a_pipe),
		cmocka_unit_test(a_file_that_grows),
		cmocka_unit_test(a_file_that_is_cut),
		cmocka_unit_test(cut_in_the_second_member),
		cmocka_unit_test(bombs),
		cmocka_unit_test(a_limit_on_what_is_unpacked),
	};

	close(mkstemp(path));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
