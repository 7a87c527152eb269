/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded calls of modules, and modules in files: what was written is read back, and invalid data are harmless.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>
#include <opstrobe/write.h>

#include "../base/failing.h"
#include "../trace/modules.h"
#include "../write/folder.h"
#include "compare.h"

/* --- recorded ------------------------------------------------------------------------------------------------------- */

static struct ops_slot *call(int64_t id)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	if (!slot)
		return NULL;
	*slot = (struct ops_slot){.sequence_nr = id, .kind = OPS_SLOT_MODULE, .end_thread = thread->number,
	                          .start_ticks = ops_ticks(collector->tsc)};
	ops_publish(thread);
	return slot;
}

static void end(struct ops_slot *slot)
{
	if (slot)
		ops_slot_close(slot, ops_ticks(ops_collector_get()->tsc), slot->end_thread);
}

#define TEXT(text) {text, sizeof(text) - 1}

static const struct ops_text aliases[] = {TEXT("tied"), TEXT("a\0b")};
static const struct ops_recorded_module modules[] = {
	{.id = 7, .name = TEXT("nn.Module: Net_0"), .class_name = TEXT("m.Net"), .path = TEXT("Net"), .parent = OPS_NONE,
	 .number = 0, .address = 1, .parameter_count = 3},
	{.id = -1, .name = TEXT(""), .class_name = TEXT("List"), .path = TEXT("layers"), .parent = 0, .number = OPS_NONE},
	{.id = 2, .name = TEXT("nn.Module: Net_1"), .class_name = TEXT("other.Net"), .path = TEXT("layers.0"), .parent = 1,
	 .number = 1, .aliases = aliases, .alias_count = 2},
};

/* A recording of Net calling layers.0 and one that is not known; one call stays open. */
static struct ops_recording *record(void)
{
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_slot *outer;

	if (ops_session_start(NULL, &session, NULL))
		return NULL;
	outer = call(7);
	end(call(2));
	end(call(3));
	end(call(-1));
	end(outer);
	call(2);
	if (ops_session_stop(session, &recording, NULL))
		ops_session_discard(session); /* memory is out */
	return recording;
}

static void calls_become_rows(void **state)
{
	struct ops_recording *recording = record();
	struct ops_trace *trace = NULL;
	const struct ops_events *events;
	const struct ops_module *found;
	const struct ops_module_alias *paths;
	size_t count;

	(void)state;
	assert_int_equal(ops_recording_set_modules(recording, modules, 3, NULL), OPS_OK);
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	events = ops_trace_events(trace);
	assert_int_equal(events->count, 3);
	assert_int_equal(ops_trace_info(trace)->lost, 2);
	assert_string_equal(ops_trace_string(trace, events->name[0]).bytes, "nn.Module: Net_0");
	assert_string_equal(ops_trace_string(trace, events->name[1]).bytes, "nn.Module: Net_1");
	assert_int_equal(events->kind[1], OPS_EVENT_PYTHON_FUNCTION);
	assert_int_equal(events->module[1], 2);
	assert_int_equal(events->python_module[1], 1);
	assert_int_equal(events->parent[1], 0);
	assert_int_equal(events->module[2], 2);
	assert_int_equal(events->flags[2], OPS_EVENT_UNFINISHED);
	found = ops_trace_modules(trace, &count);
	assert_int_equal(count, 3);
	assert_int_equal(found[0].parameter_count, 3);
	assert_int_equal(found[2].parent, 1);
	assert_string_equal(ops_trace_string(trace, found[2].class_name).bytes, "other.Net");
	paths = ops_trace_module_aliases(trace, &count);
	assert_int_equal(count, 2);
	assert_int_equal(paths[1].module, 2);
	assert_int_equal(ops_trace_string(trace, paths[1].path).size, 3);
	ops_trace_unref(trace);
}

/* Whoever does not say what modules were called has lost their calls. */
static void calls_of_nothing_are_lost(void **state)
{
	struct ops_trace *trace = NULL;

	(void)state;
	assert_int_equal(ops_trace_from_recording(record(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->count, 0);
	assert_int_equal(ops_trace_info(trace)->lost, 5);
	ops_trace_unref(trace);
}

static void record_and_read(void *context)
{
	struct ops_recording *recording = record();
	struct ops_trace *trace = NULL;
	enum ops_code code;

	(void)context;
	if (!recording)
		return;
	code = ops_recording_set_modules(recording, modules, 3, NULL);
	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	if (ops_trace_from_recording(recording, &trace, NULL) == OPS_OK)
		assert_int_equal(ops_trace_events(trace)->count + ops_trace_info(trace)->lost >= 5, 1);
	else
		ops_recording_free(recording);
	ops_trace_unref(trace);
}

static void without_memory(void **state)
{
	(void)state;
	assert_true(fail_each(record_and_read, NULL) > 20);
}

/* --- written and read ----------------------------------------------------------------------------------------------- */

static void come_back(void **state)
{
	struct ops_trace *trace = NULL, *again = NULL;

	(void)state;
	assert_int_equal(ops_builder_finish(modules_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_write_chrome_json(trace, "trace.json", NULL, NULL), OPS_OK);
	assert_int_equal(ops_trace_read("trace.json", NULL, &again, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(again, NULL), OPS_OK);
	assert_same_trace(trace, again);
	ops_trace_unref(again);
	ops_trace_unref(trace);
}

/* A list of modules ends where it makes no sense, and rows of modules that are not there keep what they say. */
static void nonsense_in_files(void **state)
{
#define MODULE(parent) "[\"n\",0,\"c\",\"p\"," parent ",1,2,3,4,5,[\"q\"]]"
	static const struct {
		const char *list;
		size_t count;
	} cases[] = {
		{"[]", 0}, {"{}", 0}, {"3", 0}, {"[3]", 0}, {"[[]]", 0}, {"[" MODULE("null") "]", 1},
		{"[" MODULE("0") "]", 0}, {"[" MODULE("-1") "]", 0}, {"[" MODULE("null") "," MODULE("0") "]", 2},
		{"[" MODULE("null") "," MODULE("1") "," MODULE("null") "]", 1},
		{"[[\"n\",-1,\"c\",\"p\",null,1,2,3,4,5,[]]]", 0}, {"[[\"n\",0,\"c\",\"p\",null,1,2,-3,4,5,[]]]", 0},
		{"[[1,0,\"c\",\"p\",null,1,2,3,4,5,[]]]", 0}, {"[[\"n\",0,\"c\",\"p\",null,1,2,3,4,5,7]]", 0},
		{"[[\"n\",null,\"c\",\"p\",null,1,2,3,4,5,[7]]]", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ops_trace *trace = NULL;
		struct ops_error error;
		struct ops_string json;
		char text[1024];
		size_t count;
		int size = snprintf(text, sizeof(text),
		                    "{\"opstrobe\":{\"recorded\":false,\"pid\":1,\"start_ns\":0,\"stop_ns\":9,\"tracks\":[],"
		                    "\"modules\":%s},\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"n\","
		                    "\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,\"args\":{\"Python module id\":0,\"Module\":0}}]}",
		                    cases[i].list);

		if (ops_trace_read_memory(text, (size_t)size, NULL, &trace, &error) || ops_trace_check(trace, &error))
			fail_msg("%s: %s", cases[i].list, error.text);
		ops_trace_modules(trace, &count);
		if (count != cases[i].count)
			fail_msg("%s: %zu modules", cases[i].list, count);
		assert_int_equal(ops_event_arg(trace, 0, "Module", &json), count == 0);
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_become_rows),
		cmocka_unit_test(calls_of_nothing_are_lost),
		cmocka_unit_test(without_memory),
		cmocka_unit_test_setup_teardown(come_back, enter_folder, leave_folder),
		cmocka_unit_test(nonsense_in_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
