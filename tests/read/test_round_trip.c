/* SPDX-License-Identifier: Apache-2.0
 *
 * What was written is read back unchanged: recordings, synthetic traces, and traces that were read from other programs' files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include <opstrobe/internal/analyze.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>
#include <opstrobe/write.h>

#include "../trace/calls.h"
#include "../trace/rich.h"
#include "../write/folder.h"
#include "compare.h"
#include "sample.h"

static struct ops_trace *write_and_read(const struct ops_trace *trace, const char *path)
{
	struct ops_trace *again = NULL;
	struct ops_error error;
	size_t notes;

	if (ops_write_chrome_json(trace, path, NULL, &error) || ops_trace_read(path, NULL, &again, &error) ||
	    ops_trace_check(again, &error))
		fail_msg("%s", error.text);
	ops_trace_notes(again, &notes);
	assert_int_equal(notes, 0);
	return again;
}

/* Read back it is the same, and so it is written again. */
static void assert_comes_back(const struct ops_trace *trace)
{
	struct ops_trace *again = write_and_read(trace, "trace.json");
	struct ops_buffer first = read_whole("trace.json"), second;

	assert_same_trace(trace, again);
	assert_int_equal(ops_write_chrome_json(again, "trace.json", NULL, NULL), OPS_OK);
	second = read_whole("trace.json");
	assert_string_equal(first.bytes, second.bytes);
	ops_buffer_release(&first);
	ops_buffer_release(&second);
	ops_trace_unref(again);
	again = write_and_read(trace, "trace.json.gz");
	assert_same_trace(trace, again);
	ops_trace_unref(again);
}

static struct ops_trace *finish(struct ops_builder *builder)
{
	struct ops_trace *trace = NULL;

	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	return trace;
}

/* --- by hand -------------------------------------------------------------------------------------------------------- */

static void one_of_everything(void **state)
{
	struct ops_trace *trace = finish(rich_builder());

	(void)state;
	assert_int_equal(ops_trace_set_metadata(trace, "a", 1, "{\"b\":[1,null]}", 14, NULL), OPS_OK);
	assert_comes_back(trace);
	ops_trace_unref(trace);
}

/* A value that is not a list of storages is an argument like any other; other values of tables and roles are ignored. */
static void odd_storages(void **state)
{
	static const char text[] =
		"{\"opstrobe\":{\"tracks\":[[0,1,1,1,1,\"\"]],\"storages\":[[4096,8],[8192,8,1,1],[1],[4096,9]],"
		"\"roles\":[[1,2,1,\"w\",0],[2,[-1,5],4,\"\",0],[3,3,1,\"out of the table\",0],[4,1,1,\"behind it\",0]]},"
		"\"traceEvents\":["
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":9,\"args\":{\"Storages\":[1,-2,[7,3]]}},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1,\"args\":{\"Storages\":[1,3]}},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":4,\"dur\":1,\"args\":{\"Storages\":\"x\"}}]}";
	struct ops_trace *trace = NULL;
	const struct ops_role_record *roles;
	struct ops_storage storage;
	struct ops_string json;
	size_t count;

	(void)state;
	assert_int_equal(ops_trace_read_memory(text, sizeof(text) - 1, NULL, &trace, NULL), OPS_OK);
	assert_true(ops_event_storage(trace, 0, 1, &storage));
	assert_true(storage.address == 8192 && storage.written && storage.device_type == 1);
	assert_true(ops_event_storage(trace, 0, 2, &storage));
	assert_true(storage.address == 7 && storage.bytes == 3 && !storage.written);
	assert_false(ops_event_storage(trace, 0, 3, &storage));
	for (uint32_t row = 1; row < 3; row++) {
		assert_false(ops_event_storage(trace, row, 0, &storage));
		assert_true(ops_event_arg(trace, row, "Storages", &json));
	}
	roles = ops_trace_roles(trace, &count);
	assert_int_equal(count, 2);
	assert_true(roles[0].storage.address == 8192 && roles[0].storage.role == OPS_ROLE_PARAMETER);
	assert_true(roles[1].storage.address == UINT64_MAX && roles[1].storage.role == OPS_ROLE_BUFFER);
	ops_trace_unref(trace);
}

/* A file has room for that many; the others are lost, and counted. */
static void more_roles_than_fit(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_role_record role = {.storage = {.address = 4096, .role = OPS_ROLE_PARAMETER}};
	const size_t given = 1000, name_bytes = 100000;
	struct ops_trace *trace, *again;
	char *name = malloc(name_bytes);
	size_t count;

	(void)state;
	memset(name, 'n', name_bytes);
	role.name = ops_builder_string(builder, name, name_bytes);
	role.track = ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
	for (size_t i = 0; i < given; i++, role.time_ns++)
		ops_builder_role(builder, &role);
	trace = finish(builder);
	again = write_and_read(trace, "trace.json");
	ops_trace_roles(again, &count);
	assert_in_range(count, 300, 400);
	assert_int_equal(ops_trace_info(again)->lost, given - count);
	ops_trace_unref(again);
	ops_trace_unref(trace);
	free(name);
}

static void python_calls(void **state)
{
	struct ops_trace *trace = finish(calls_builder());
	struct ops_buffer text;

	(void)state;
	assert_comes_back(trace);
	assert_int_equal(ops_write_chrome_json(trace, "trace.json", NULL, NULL), OPS_OK);
	text = read_whole("trace.json");
	assert_non_null(strstr(text.bytes, "\"args\":{\"Python id\":1,\"Function\":0,\"Ev Idx\":0}"));
	assert_non_null(strstr(text.bytes, "\"args\":{\"Python parent id\":1,\"Python id\":2,\"Function\":1,"
	                                   "\"CallFrom\":\"a \\\"b\\\"(1).py:6\",\"Ev Idx\":2}"));
	assert_non_null(strstr(text.bytes, "\"Python module id\":4"));
	ops_buffer_release(&text);
	ops_trace_unref(trace);
}

/* As torch 2.15 writes them: the caller is kept as it is said, and its line known. */
static void calls_of_torch(void **state)
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a.py(3): f\",\"pid\":1,\"tid\":1,"
		"\"ts\":1,\"dur\":9,\"args\":{\"Python id\":1,\"CallFrom\":\"c:/b.py:12\",\"Ev Idx\":0}},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"b.py(3): g\",\"pid\":1,\"tid\":1,"
		"\"ts\":2,\"dur\":1,\"args\":{\"Python id\":2,\"Python parent id\":1,\"CallFrom\":\"odd\",\"Ev Idx\":1}}]}";
	struct ops_function_text function;
	struct ops_trace *trace = NULL, *again;
	struct ops_string json;

	(void)state;
	assert_int_equal(ops_trace_read_memory(text, sizeof(text) - 1, NULL, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->call_line[0], 12);
	assert_int_equal(ops_trace_events(trace)->call_line[1], 0);
	assert_true(ops_event_arg(trace, 0, "CallFrom", &json));
	assert_true(ops_event_function(trace, 1, &function));
	assert_int_equal(function.line, 3);
	again = write_and_read(trace, "trace.json");
	assert_same_events(trace, again);
	ops_trace_unref(again);
	ops_trace_unref(trace);
}

static void of_another_file(void **state)
{
	struct ops_trace *trace = NULL;

	(void)state;
	assert_int_equal(ops_trace_read_memory(sample, sizeof(sample) - 1, NULL, &trace, NULL), OPS_OK);
	assert_comes_back(trace);
	ops_trace_unref(trace);
}

/* Threads with numbers that the system reused, names of any bytes, ranges that cut others, scopes, spans to another thread. */
static void odd_recordings(void **state)
{
	struct ops_builder *b = ops_builder_new();
	struct ops_trace *trace;
	struct ops_new_event event;

	(void)state;
	ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 5, .number = 2, .name = rich_string(b, "a\"b)")});
	ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = -6, .number = 1});
	ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 5, .number = 9, .name = rich_string(b, "again")});
	for (uint32_t i = 0; i < 60; i++) {
		event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = i * 10, .end_ns = i * 10 + i % 7 * 9,
		                               .name = i % 3 ? rich_string(b, "x\\") : ops_builder_string(b, "a\xff\0\xc3", 4),
		                               .track = i % 3, .kind = i % 2 ? OPS_EVENT_USER_ANNOTATION : OPS_EVENT_CPU_OP,
		                               .scope = i % 9, .flags = i % 5 ? 0 : OPS_EVENT_ASYNC};
		if (i % 11 == 0)
			event.end_track = (i + 1) % 3;
		if (i % 4 == 0)
			event.sequence_nr = i / 8, event.forward_thread = i % 8 ? i % 3 : 0;
		if (i % 13 == 0)
			event.overload = rich_string(b, "out");
		ops_builder_event(b, &event);
		ops_builder_memory(b, &(struct ops_memory_record){.time_ns = i * 10, .bytes = i, .track = i % 3,
		                                                  .address = UINT64_MAX >> 1, .device_type = 1});
		if (i % 3 == 1)
			ops_builder_memory_stack(b, rich_string(b, i % 2 ? "a.py(1): \"f\";" : ""));
		ops_builder_counter(b, &(struct ops_counter_record){.time_ns = i, .value = i / 3.0, .track = i % 3,
		                                                    .name = rich_string(b, "c")});
	}
	ops_builder_info(b, &(struct ops_trace_info){.start_ns = -5, .stop_ns = 5000, .pid = 1, .lost = 3,
	                                             .host_name = "h", .process_name = "p"});
	trace = finish(b);
	assert_comes_back(trace);
	ops_trace_unref(trace);
}

/* --- recorded ------------------------------------------------------------------------------------------------------- */

static void *work(void *context)
{
	(void)context;
	for (int i = 0; i < 50; i++) {
		struct ops_range outer = ops_range_begin("outer", 5);
		struct ops_range inner = ops_range_begin_args(i % 2 ? "inner" : "other", 5, "an \"argument\"", 13);

		ops_counter("loss", 4, 1.0 / (i + 1));
		ops_instant("mark", 4);
		ops_range_end(inner);
		ops_range_end(outer);
	}
	return NULL;
}

static char *table_of(const struct ops_trace *trace)
{
	struct ops_averages_options by_name = {0};
	struct ops_event_costs costs;
	struct ops_average *rows;
	uint32_t *refs;
	size_t count, row_count;
	struct ops_buffer text = {0};

	assert_int_equal(ops_event_costs_init(&costs, trace, true, NULL), OPS_OK);
	assert_int_equal(ops_function_events(trace, &refs, &count, NULL), OPS_OK);
	assert_int_equal(ops_averages(trace, &costs, refs, count, &by_name, &rows, &row_count, NULL), OPS_OK);
	for (size_t i = 0; i < row_count; i++) {
		struct ops_string name = ops_average_name(trace, &rows[i]);
		ops_buffer_printf(&text, "%.*s %llu %lld %lld\n", (int)name.size, name.bytes, (unsigned long long)rows[i].count,
		                  (long long)rows[i].cpu_time_total_ns, (long long)rows[i].self_cpu_time_total_ns);
	}
	ops_free(rows);
	ops_free(refs);
	ops_event_costs_release(&costs);
	return text.bytes;
}

static void a_recording(void **state)
{
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL, *again;
	char *before, *after;
	pthread_t threads[3];

	(void)state;
	assert_int_equal(ops_session_start(NULL, &session, NULL), OPS_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	work(NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->count, 600);
	assert_comes_back(trace);
	again = write_and_read(trace, "again.json");
	before = table_of(trace);
	after = table_of(again);
	assert_string_equal(before, after);
	free(before);
	free(after);
	ops_trace_unref(again);
	ops_trace_unref(trace);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(one_of_everything),
		IN_FOLDER(odd_storages),
		IN_FOLDER(more_roles_than_fit),
		IN_FOLDER(python_calls),
		IN_FOLDER(calls_of_torch),
		IN_FOLDER(of_another_file),
		IN_FOLDER(odd_recordings),
		IN_FOLDER(a_recording),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
