/* SPDX-License-Identifier: Apache-2.0
 *
 * write/chrome_json: the exact text of every kind of row, hostile names, many names, time bases, gzip.
 * tests/python/test_chrome_json.py tests the files with other programs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <cmocka.h>

#include <opstrobe/version.h>
#include <opstrobe/write.h>

#include "../trace/rich.h"
#include "base/json.h"
#include "folder.h"

static struct ops_trace *finish(struct ops_builder *builder)
{
	struct ops_error error = {0};
	struct ops_trace *trace = NULL;

	if (ops_builder_finish(builder, &trace, &error) != OPS_OK)
		fail_msg("%s", error.text);
	return trace;
}

static void write_to(const struct ops_trace *trace, const char *path)
{
	struct ops_error error = {0};

	if (ops_write_chrome_json(trace, path, NULL, &error) != OPS_OK)
		fail_msg("%s", error.text);
}

/* Writes, checks that it is JSON, and gives the text; the trace is gone afterwards. */
static struct ops_buffer write_whole(struct ops_trace *take_trace)
{
	struct ops_error error = {0};
	struct ops_buffer whole;

	write_to(take_trace, "out.json");
	whole = read_whole("out.json");
	if (ops_json_validate(whole.bytes, whole.size, &error) != OPS_OK)
		fail_msg("%s", error.text);
	ops_trace_unref(take_trace);
	return whole;
}

static void expect_inside(const struct ops_buffer *whole, const char *text)
{
	if (!memmem(whole->bytes, whole->size, text, strlen(text)))
		fail_msg("missing: %s", text);
}

/* By hand: a search that a sanitizer checks to the end of the text for every hit takes minutes. */
static size_t count_inside(const struct ops_buffer *whole, const char *text)
{
	size_t size = strlen(text);
	size_t count = 0;

	for (size_t at = 0; at + size <= whole->size; at++)
		count += whole->bytes[at] == text[0] && memcmp(whole->bytes + at, text, size) == 0;
	return count;
}

static void set_metadata(struct ops_trace *trace, const char *key, const char *json)
{
	assert_int_equal(ops_trace_set_metadata(trace, key, strlen(key), json, strlen(json), NULL), OPS_OK);
}

static uint32_t string(struct ops_builder *builder, const char *text)
{
	return ops_builder_string(builder, text, strlen(text));
}

static struct ops_builder *one_thread(void)
{
	struct ops_builder *builder = ops_builder_new();

	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 2, .number = 1});
	ops_builder_info(builder, &(struct ops_trace_info){.start_ns = 0, .stop_ns = 1000, .pid = 1});
	return builder;
}

/* --- every row ----------------------------------------------------------------------------------------------------- */

#define PLACE "\"pid\":9,\"tid\":9,"
#define INPUTS(size)                                                                                                   \
	"\"Concrete Inputs\":[\"\",\"1\"],\"Input type\":[\"float\",\"Scalar\"],\"Input Strides\":[[1],[]],"           \
	"\"Input Dims\":[[" size "],[]],"

static const char rich_text[] =
	"{\n\"schemaVersion\":1,\n\"trace_id\":\"AB\",\n\"deviceProperties\":[],\n\"host_name\":\"host\",\n"
	"\"opstrobe\":{\"version\":\"" OPS_VERSION "\",\"lost\":3,\"recorded\":true,\"row_ids\":false,\"pid\":9,\"start_ns\":0,"
	"\"stop_ns\":1000,\"tracks\":[[0,9,9,9,1,\"main\"],[0,9,10,10,2,\"\"],[1,0,7,7,0,\"\"]],\n"
	"\"storages\":[[64,12],[-1,17592186044415,1,2],[128,12],[0,0]],\n"
	"\"roles\":[[5,1,1,\"fc.weight\",0],[6,4,5,\"\",1]]},\n\"displayTimeUnit\":\"ms\",\n"
	"\"baseTimeNanoseconds\":0,\n\"traceEvents\":[\n"
	"{\"ph\":\"M\",\"name\":\"process_labels\",\"ts\":0.000,\"pid\":9,\"tid\":0,\"args\":{\"labels\":\"CPU\"}},\n"
	"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":0.000,\"pid\":9,\"tid\":0,\"args\":{\"sort_index\":9}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0.000," PLACE "\"args\":{\"name\":\"thread 9 (main)\"}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"ts\":0.000," PLACE "\"args\":{\"sort_index\":9}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0.000,\"pid\":9,\"tid\":10,\"args\":{\"name\":\"thread 10\"}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"ts\":0.000,\"pid\":9,\"tid\":10,\"args\":{\"sort_index\":10}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0.000,\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7 \"}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"ts\":0.000,\"pid\":0,\"tid\":7,\"args\":{\"sort_index\":7}},\n"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"step\"," PLACE "\"ts\":0.000,\"dur\":1.000,"
	"\"args\":{\"Record function id\":0,\"Args\":\"n=1\",\"finished\":false,\"Ev Idx\":0}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\"," PLACE "\"ts\":0.010,\"dur\":0.080,\"args\":{"
	"\"Sequence number\":5,\"Fwd thread id\":0,\"Record function id\":0," INPUTS("3") "\"Storages\":[-1,2,1],\"Ev Idx\":1}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\"," PLACE "\"ts\":0.020,\"dur\":0.060,\"args\":{"
	"\"Record function id\":0,\"Ev Idx\":2}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::addmm.out\"," PLACE "\"ts\":0.030,\"dur\":0.040,\"args\":{"
	"\"Sequence number\":5,\"Fwd thread id\":0,\"Record function id\":0,\"Overload Name\":\"out\"," INPUTS("4")
	"\"Storages\":[-3,2,3],\"Ev Idx\":3}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::is_leaf\"," PLACE "\"ts\":0.095,\"dur\":0.001,\"args\":{"
	"\"Record function id\":0,\"Ev Idx\":4}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"AddBackward0\",\"pid\":9,\"tid\":10,\"ts\":0.200,\"dur\":0.100,"
	"\"args\":{\"External id\":77,\"Sequence number\":5,\"Fwd thread id\":1,\"Record function id\":0,\"Scope\":1,"
	"\"Ev Idx\":5}},\n"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"load\"," PLACE "\"ts\":0.250,\"dur\":0.150,"
	"\"args\":{\"Record function id\":0,\"Async\":true,\"End track\":1,\"Ev Idx\":6}},\n"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"mark\"," PLACE "\"ts\":0.500,\"s\":\"t\","
	"\"args\":{\"Ev Idx\":7}},\n"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\"," PLACE "\"ts\":0.050,\"args\":{"
	"\"Total Reserved\":0,\"Total Allocated\":0,\"Bytes\":8,\"Device Id\":-1,\"Device Type\":0,\"Addr\":64,"
	"\"Ev Idx\":8}},\n"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\"," PLACE "\"ts\":0.051,\"args\":{"
	"\"Total Reserved\":0,\"Total Allocated\":0,\"Bytes\":-8,\"Device Id\":-1,\"Device Type\":0,\"Addr\":64,"
	"\"Call stack\":\"a.py(1): f;\",\"Ev Idx\":9}},\n"
	"{\"ph\":\"C\",\"name\":\"loss\"," PLACE "\"ts\":0.060,\"args\":{\"value\":0.5}},\n"
	"{\"ph\":\"C\",\"name\":\"loss\"," PLACE "\"ts\":0.061,\"args\":{\"value\":1.5}},\n"
	"{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"," PLACE "\"ts\":0.030,\"id\":1},\n"
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"pid\":9,\"tid\":10,\"ts\":0.200,\"id\":1},\n"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","
	"\"ts\":0.000,\"dur\":1.000,\"args\":{\"Op count\":0}},\n"
	"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":0.000,\"pid\":\"Spans\",\"tid\":0,"
	"\"args\":{\"sort_index\":536870912}},\n"
	"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\",\"pid\":\"Traces\","
	"\"tid\":\"Trace PyTorch Profiler\",\"ts\":0.000},\n"
	"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"3 records lost\"," PLACE "\"ts\":1.000},\n"
	"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":1.000}\n"
	"],\n\"traceName\":\"out.json\"\n}\n";

static void one_of_everything(void **state)
{
	struct ops_trace *trace = finish(rich_builder());
	struct ops_buffer whole;

	(void)state;
	set_metadata(trace, "trace_id", "\"AB\"");
	whole = write_whole(trace);
	assert_string_equal(whole.bytes, rich_text);
	ops_buffer_release(&whole);
}

static void any_number_of_times(void **state)
{
	struct ops_trace *trace = finish(rich_builder());

	(void)state;
	write_to(trace, "out.json");
	write_to(trace, "out.json");
	write_to(trace, "other.json");
	ops_trace_unref(trace);
	assert_int_equal(count_files(), 2);
}

static void nothing_recorded(void **state)
{
	struct ops_buffer whole = write_whole(finish(ops_builder_new()));

	(void)state;
	expect_inside(&whole, "Record Window End");
	assert_int_equal(count_inside(&whole, "\"cat\":\"cpu_op\""), 0);
	ops_buffer_release(&whole);
}

static void ids_count_from_one(void **state)
{
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;

	(void)state;
	for (int64_t i = 0; i < 3; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = i * 10, .end_ns = i * 10 + 5});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "{\"External id\":1,\"Record function id\":0,\"Ev Idx\":0}");
	expect_inside(&whole, "{\"External id\":3,\"Record function id\":0,\"Ev Idx\":2}");
	ops_buffer_release(&whole);
}

static void out_of_memory_has_no_address(void **state)
{
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;

	(void)state;
	ops_builder_memory(builder, &(struct ops_memory_record){.time_ns = 7, .bytes = 1 << 20, .total_allocated = 5,
	                                                        .total_reserved = 6, .device_type = 1, .device_index = 2,
	                                                        .out_of_memory = 1});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "\"name\":\"[OutOfMemory]\",\"pid\":1,\"tid\":2,\"ts\":0.007,\"args\":{\"Total Reserved\":6,"
	                      "\"Total Allocated\":5,\"Bytes\":1048576,\"Device Id\":2,\"Device Type\":1,\"Ev Idx\":0}}");
	ops_buffer_release(&whole);
}

static void odd_counter_values(void **state)
{
	static const double values[] = {NAN, INFINITY, -INFINITY, -0.1};
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;

	(void)state;
	for (int64_t i = 0; i < 4; i++)
		ops_builder_counter(builder, &(struct ops_counter_record){.time_ns = i, .value = values[i]});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "\"ts\":0.000,\"args\":{\"value\":\"NaN\"}}");
	expect_inside(&whole, "\"ts\":0.001,\"args\":{\"value\":\"Infinity\"}}");
	expect_inside(&whole, "\"ts\":0.002,\"args\":{\"value\":\"-Infinity\"}}");
	expect_inside(&whole, "\"ts\":0.003,\"args\":{\"value\":-0.1}}");
	ops_buffer_release(&whole);
}

static void spans_that_cut_others_are_pairs(void **state)
{
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;

	(void)state;
	ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 0, .end_ns = 100,
	                                                   .name = string(builder, "load"), .flags = OPS_EVENT_ASYNC,
	                                                   .kind = OPS_EVENT_USER_ANNOTATION, .scope = 7});
	ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 50, .end_ns = 150,
	                                                   .name = string(builder, "op")});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "{\"ph\":\"b\",\"cat\":\"user_annotation\",\"name\":\"load\",\"pid\":1,\"tid\":2,\"ts\":0.000,"
	                      "\"id\":1,\"args\":{\"External id\":1,\"Record function id\":0,\"Ev Idx\":0}},\n"
	                      "{\"ph\":\"e\",\"cat\":\"user_annotation\",\"name\":\"load\",\"pid\":1,\"tid\":2,\"ts\":0.100,"
	                      "\"id\":1},\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\"");
	ops_buffer_release(&whole);
}

/* --- threads and metadata ------------------------------------------------------------------------------------------- */

static void a_thread_is_named_once(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_buffer whole;

	(void)state;
	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 5, .name = string(builder, "first"), .number = 1});
	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 6, .name = string(builder, "a\"b\xff"), .number = 2});
	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 5, .name = string(builder, "again"), .number = 3});
	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = -7, .number = 4});
	ops_builder_info(builder, &(struct ops_trace_info){.pid = 1, .process_name = "py\"thon"});
	whole = write_whole(finish(builder));
	assert_int_equal(count_inside(&whole, "\"name\":\"thread_name\""), 3);
	assert_int_equal(count_inside(&whole, "\"name\":\"thread_sort_index\""), 3);
	expect_inside(&whole, "\"tid\":5,\"args\":{\"name\":\"thread 5 (first)\"}}");
	expect_inside(&whole, "\"tid\":6,\"args\":{\"name\":\"thread 6 (a\\\"b\\\\xff)\"}}");
	expect_inside(&whole, "\"tid\":7,\"args\":{\"name\":\"thread 7\"}}");
	expect_inside(&whole, "\"tid\":0,\"args\":{\"name\":\"py\\\"thon\"}}");
	ops_buffer_release(&whole);
}

static void metadata_as_it_was_set(void **state)
{
	struct ops_trace *trace = finish(one_thread());
	struct ops_buffer whole;

	(void)state;
	set_metadata(trace, "k\"e\ny", "{\"a\":[1,null]}");
	set_metadata(trace, "host_name", "\"mine\"");
	set_metadata(trace, "deviceProperties", "[{\"id\":0}]");
	/* What the file says itself cannot be said twice. */
	set_metadata(trace, "traceEvents", "[]");
	set_metadata(trace, "traceName", "\"no\"");
	set_metadata(trace, "schemaVersion", "7");
	set_metadata(trace, "baseTimeNanoseconds", "7");
	set_metadata(trace, "displayTimeUnit", "7");
	set_metadata(trace, "opstrobe", "7");
	whole = write_whole(trace);
	expect_inside(&whole, "{\n\"schemaVersion\":1,\n\"k\\\"e\\ny\":{\"a\":[1,null]},\n\"host_name\":\"mine\",\n"
	                      "\"deviceProperties\":[{\"id\":0}],\n\"opstrobe\":");
	assert_int_equal(count_inside(&whole, "\"host_name\""), 1);
	assert_int_equal(count_inside(&whole, "\"deviceProperties\""), 1);
	assert_int_equal(count_inside(&whole, "\"traceEvents\""), 1);
	assert_int_equal(count_inside(&whole, "\"traceName\""), 1);
	assert_int_equal(count_inside(&whole, ":7,"), 0);
	ops_buffer_release(&whole);
}

static void times_count_from_the_grid(void **state)
{
	const int64_t grid_ns = INT64_C(7889238) * 1000000000;
	const int64_t start_ns = 227 * grid_ns + 4362172295567859;
	struct ops_builder *builder = ops_builder_new();
	struct ops_buffer whole;

	(void)state;
	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 2});
	ops_builder_info(builder, &(struct ops_trace_info){.start_ns = start_ns, .stop_ns = start_ns + 1000, .pid = 1});
	ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = start_ns + 1, .end_ns = start_ns + 42});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "\"baseTimeNanoseconds\":1790857026000000000,");
	expect_inside(&whole, "\"ts\":4362172295567.860,\"dur\":0.041,");
	ops_buffer_release(&whole);
}

/* In the hours where doubles are too coarse another point of the grid is taken, for starts and stops alike. */
static void fuzzy_times_have_another_base(void **state)
{
	static const struct {
		int64_t start_us;
		int64_t length_us;
		const char *base;
	} cases[] = {
		{4398046511103, 0, "1790857026000000000"},         {4398046511103, 1, "1794801645000000000"},
		{4403974000000, 1000, "1794801645000000000"},      {4503599627370, 1000, "1794801645000000000"},
		{4503599627371, 1000, "1790857026000000000"},      {3944619000000, 500000000000, "1794801645000000000"},
		{3944618999999, 500000000000, "1790857026000000000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t start_ns = 1790857026000000000 + cases[i].start_us * 1000;
		struct ops_builder *builder = ops_builder_new();
		struct ops_buffer whole;

		ops_builder_info(builder, &(struct ops_trace_info){.start_ns = start_ns,
		                                                   .stop_ns = start_ns + cases[i].length_us * 1000});
		whole = write_whole(finish(builder));
		expect_inside(&whole, cases[i].base);
		ops_buffer_release(&whole);
	}
}

/* --- names --------------------------------------------------------------------------------------------------------- */

static void hostile_names_are_complete(void **state)
{
	struct ops_builder *builder = one_thread();
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct ops_buffer whole;
	uint32_t nul = ops_builder_string(builder, "a\0b", 3);
	uint32_t quote = string(builder, "q\"\\/\n\t\x01");
	uint32_t bytes = string(builder, "caf\xc3\xa9 \xff \xed\xa0\xbd");

	(void)state;
	event.name = nul;
	event.overload = quote;
	event.args = bytes;
	ops_builder_event(builder, &event);
	ops_builder_counter(builder, &(struct ops_counter_record){.name = quote});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "\"name\":\"a\\u0000b.q\\\"\\\\/\\n\\t\\u0001\",");
	expect_inside(&whole, "\"Overload Name\":\"q\\\"\\\\/\\n\\t\\u0001\",\"Args\":\"caf\xc3\xa9 \\\\xff \\\\ud83d\",");
	expect_inside(&whole, "{\"ph\":\"C\",\"name\":\"q\\\"\\\\/\\n\\t\\u0001\",");
	ops_buffer_release(&whole);
}

/* The bytes of a name that no JSON string can hold, spelled out and to be had back. */
static void ill_formed_names_keep_their_bytes(void **state)
{
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;
	uint32_t names[] = {string(builder, "a\"\xff\xc3\xa9"), string(builder, "\xed\xa0\xbd"), string(builder, "caf\xc3\xa9")};

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = i, .end_ns = i, .name = names[i]});
	whole = write_whole(finish(builder));
	expect_inside(&whole, "\"name\":\"a\\\"\\\\xff\xc3\xa9\",");
	expect_inside(&whole, "\"Raw name\":\"a\\\"\xc3\xbf\xc3\x83\xc2\xa9\",");
	expect_inside(&whole, "\"name\":\"\\\\ud83d\",");
	expect_inside(&whole, "\"Raw name\":\"\xc3\xad\xc2\xa0\xc2\xbd\",");
	assert_int_equal(count_inside(&whole, "\"Raw name\""), 2);
	ops_buffer_release(&whole);
}

/* Names around the bounds of what is kept and of the sink's room. */
static void long_names_are_complete(void **state)
{
	static const size_t sizes[] = {4094, 4095, 4096, 4097, 65535, 65536, 300000, 10000000};
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;
	char *name = malloc(10000000);
	size_t total = 0;

	(void)state;
	memset(name, '"', 10000000);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ops_new_event event = {OPS_NEW_EVENT};

		event.name = event.args = ops_builder_string(builder, name, sizes[i]);
		for (int repeat = 0; repeat < 2; repeat++)
			ops_builder_event(builder, &event);
		total += sizes[i] * 4;
	}
	whole = write_whole(finish(builder));
	assert_int_equal(count_inside(&whole, "\\\""), total);
	free(name);
	ops_buffer_release(&whole);
}

/* More names and input lists than are kept. */
static void many_names_are_complete(void **state)
{
	const uint32_t count = 80000;
	struct ops_builder *builder = one_thread();
	struct ops_buffer whole;
	char text[64];

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = i % (count / 2), .end_ns = i % (count / 2)};

		snprintf(text, sizeof(text), "name %u.", i % (count / 2) * 2);
		event.name = string(builder, text);
		snprintf(text, sizeof(text), "args %u.", i);
		event.args = string(builder, text);
		event.inputs = rich_inputs(builder, i + 1000000);
		ops_builder_event(builder, &event);
	}
	whole = write_whole(finish(builder));
	for (uint32_t i = 0; i < count; i += 977) {
		snprintf(text, sizeof(text), "\"name %u.\"", i % (count / 2) * 2);
		assert_int_equal(count_inside(&whole, text), 2);
		snprintf(text, sizeof(text), "\"args %u.\"", i);
		assert_int_equal(count_inside(&whole, text), 1);
		snprintf(text, sizeof(text), "\"Input Dims\":[[%u],[]]", i + 1000000);
		assert_int_equal(count_inside(&whole, text), 1);
	}
	assert_int_equal(count_inside(&whole, "\"cat\":\"cpu_op\""), count);
	ops_buffer_release(&whole);
}

/* --- gzip ---------------------------------------------------------------------------------------------------------- */

static void gz_holds_the_same(void **state)
{
	struct ops_chrome_json_options options = {.size = sizeof(options), .compression_level = 1};
	struct ops_trace *trace = finish(rich_builder());
	struct ops_buffer plain;
	char unpacked[2][16384];

	(void)state;
	write_to(trace, "out.json");
	plain = read_whole("out.json");
	for (int i = 0; i < 2; i++) {
		gzFile file;

		assert_int_equal(ops_write_chrome_json(trace, "out.json.gz", i ? &options : NULL, NULL), OPS_OK);
		file = gzopen("out.json.gz", "rb");
		assert_int_equal(gzread(file, unpacked[i], sizeof(unpacked[i])), plain.size + 3);
		assert_false(gzdirect(file));
		gzclose(file);
		/* All the same but the name of the file. */
		assert_memory_equal(unpacked[i], plain.bytes, plain.size - strlen("\"\n}\n"));
		assert_memory_equal(unpacked[i] + plain.size - 4, ".gz\"\n}\n", 7);
	}
	ops_buffer_release(&plain);
	ops_trace_unref(trace);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(one_of_everything),
		IN_FOLDER(any_number_of_times),
		IN_FOLDER(nothing_recorded),
		IN_FOLDER(ids_count_from_one),
		IN_FOLDER(out_of_memory_has_no_address),
		IN_FOLDER(odd_counter_values),
		IN_FOLDER(spans_that_cut_others_are_pairs),
		IN_FOLDER(a_thread_is_named_once),
		IN_FOLDER(metadata_as_it_was_set),
		IN_FOLDER(times_count_from_the_grid),
		IN_FOLDER(fuzzy_times_have_another_base),
		IN_FOLDER(hostile_names_are_complete),
		IN_FOLDER(ill_formed_names_keep_their_bytes),
		IN_FOLDER(long_names_are_complete),
		IN_FOLDER(many_names_are_complete),
		IN_FOLDER(gz_holds_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
