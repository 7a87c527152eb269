/* SPDX-License-Identifier: Apache-2.0
 *
 * write/memory_*: a memory timeline as files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/write.h>

#include "../analyze/scene.h"
#include "../base/failing.h"
#include "base/alloc.h"
#include "folder.h"

static const struct ops_memory_device cpu = {0, -1};

static void report(struct ops_builder *b, int64_t time_ns, uint64_t address, int64_t bytes)
{
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = time_ns, .address = address, .bytes = bytes,
	                                                  .device_index = -1});
}

/* Four blocks: a parameter from before, one that goes, two within one microsecond; one on another device. */
static struct ops_memory_timeline *sample(void)
{
	struct ops_builder *b = scene_open();
	struct ops_role_record parameter = {.time_ns = 1000, .storage = {.address = 16, .bytes = 100, .role = OPS_ROLE_PARAMETER}};
	struct ops_new_event event = scene_event(b, 0, "aten::add_", 6000, 7000);
	const struct ops_storage written = {.address = 16, .bytes = 100, .written = 1};
	struct ops_memory_timeline *timeline;
	struct ops_trace *trace;

	parameter.name = scene_string(b, "<b>&\"w\"");
	ops_builder_role(b, &parameter);
	report(b, 3500, 32, 8);
	report(b, 4100, 48, 1);
	report(b, 4200, 64, 2);
	event.storages = ops_builder_string(b, (const char *)&written, sizeof(written));
	ops_builder_event(b, &event);
	report(b, 9000, 32, -8);
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = 9500, .address = 16, .bytes = 7, .device_type = 1});
	trace = scene_close(b);
	assert_int_equal(ops_memory_timeline_new(trace, &timeline, NULL), OPS_OK);
	ops_trace_unref(trace);
	return timeline;
}

static void assert_file(const char *path, const char *text)
{
	struct ops_buffer whole = read_whole(path);

	assert_string_equal(whole.bytes, text);
	free(whole.bytes);
}

static void test_times_and_sizes(void **state)
{
	struct ops_memory_timeline *timeline = sample();

	(void)state;
	assert_int_equal(ops_write_memory_timeline(timeline, "a.json", OPS_MEMORY_JSON, cpu, NULL), OPS_OK);
	assert_file("a.json", "[[3, 3, 4, 6, 9], [[0, 100, 0, 0, 0, 0, 0, 0, 0], [0, 100, 0, 0, 0, 0, 0, 0, 8], "
	                      "[0, 100, 0, 0, 0, 0, 0, 0, 11], [0, 100, 0, 0, 0, 0, 0, 0, 11], "
	                      "[0, 100, 0, 0, 0, 0, 0, 0, 3]]]");
	assert_int_equal(ops_write_memory_timeline(timeline, "a.json", OPS_MEMORY_JSON, (struct ops_memory_device){0, 0}, NULL),
	                 OPS_OK);
	assert_file("a.json", "[[], []]");
	ops_memory_timeline_free(timeline);
}

static void test_raw_timeline(void **state)
{
	struct ops_memory_timeline *timeline = sample();

	(void)state;
	assert_int_equal(ops_write_memory_timeline(timeline, "a.raw.json", OPS_MEMORY_RAW, cpu, NULL), OPS_OK);
	assert_file("a.raw.json", "[[-1, 1, 100, 0], [3500, 2, 8, 7], [4100, 2, 1, 7], [4200, 2, 2, 7], [6000, 3, -100, 0], "
	                          "[6000, 3, 100, 0], [9000, 4, -8, 7]]");
	ops_memory_timeline_free(timeline);
}

static void page(void **state)
{
	struct ops_memory_timeline *timeline = sample();
	struct ops_buffer whole;

	(void)state;
	assert_int_equal(ops_write_memory_timeline(timeline, "a.html", OPS_MEMORY_HTML, cpu, NULL), OPS_OK);
	whole = read_whole("a.html");
	assert_non_null(strstr(whole.bytes, "&#60;b&#62;&#38;&#34;w&#34;"));
	assert_null(strstr(whole.bytes, "<b>"));
	assert_null(strstr(whole.bytes, "http"));
	assert_non_null(strstr(whole.bytes, "<title>Parameter</title>"));
	assert_null(strstr(whole.bytes, "<title>GRADIENT</title>"));
	free(whole.bytes);
	ops_memory_timeline_free(timeline);
}

static void failures(void **state)
{
	struct ops_memory_timeline *timeline = sample();
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_write_memory_timeline(timeline, "no/a.json", OPS_MEMORY_JSON, cpu, &error), OPS_IO);
	assert_int_equal(error.os_errno, 2);
	assert_int_equal(count_files(), 0);
	ops_memory_timeline_free(timeline);
}

static void write_all(void *context)
{
	for (enum ops_memory_format format = OPS_MEMORY_HTML; format <= OPS_MEMORY_RAW; format++) {
		enum ops_code code = ops_write_memory_timeline(context, "a.gz", format, cpu, NULL);

		assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	}
}

static void allocation_failures(void **state)
{
	struct ops_memory_timeline *timeline = sample();

	(void)state;
	assert_true(fail_each(write_all, timeline) > 10);
	assert_int_equal(count_files(), 1);
	ops_memory_timeline_free(timeline);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_and_sizes), TEST(test_raw_timeline), TEST(page), TEST(failures), TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
