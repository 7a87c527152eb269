/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays files of records (replay/records.h): each result is compared with a file next to it; records that no GPU would send are
 * tested separately. With OPSTROBE_REWRITE in the environment the files are written again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cupti.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/merge.h>
#include <opstrobe/internal/views.h>
#include <opstrobe/write.h>

#include "asking.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "describe.h"
#include "gpu/cupti.h"
#include "replay/replaying.h"

/* --- files ---------------------------------------------------------------------------------------------------------- */

static void path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", getenv("OPSTROBE_REPLAYS"), name);
}

static struct loaded load_named(const char *name)
{
	char path[4096];

	path_of(path, sizeof(path), name);
	return load_file(path);
}

static struct ops_trace *replay(const char *name)
{
	struct loaded file = load_named(name);
	struct ops_trace *trace = replay_bytes(file.bytes, file.size);

	free(file.bytes);
	return trace;
}

/* --- expected ------------------------------------------------------------------------------------------------------- */

static void compare(const struct ops_buffer *text, const char *name)
{
	struct loaded expected;
	char path[4096];
	size_t line = 1;

	if (getenv("OPSTROBE_REWRITE")) {
		FILE *file;

		path_of(path, sizeof(path), name);
		file = fopen(path, "wb");
		assert_non_null(file);
		fwrite(text->bytes, 1, text->size - 1, file);
		fclose(file);
	}
	expected = load_named(name);
	for (size_t i = 0; i < text->size - 1 && i < expected.size; i++) {
		if (text->bytes[i] != expected.bytes[i])
			fail_msg("%s differs in line %zu, from '%.80s'", name, line, text->bytes + i);
		line += text->bytes[i] == '\n';
	}
	assert_int_equal(text->size - 1, expected.size);
	free(expected.bytes);
}

static void expect(const char *name)
{
	struct ops_trace *trace;
	struct ops_buffer text;
	char file[64];

	snprintf(file, sizeof(file), "%s.cupti", name);
	trace = replay(file);
	text = describe(trace);
	snprintf(file, sizeof(file), "%s.txt", name);
	compare(&text, file);
	ops_buffer_release(&text);
	ops_trace_unref(trace);
}

/* --- files as expected ---------------------------------------------------------------------------------------------- */

static void a_training_step_is_as_expected(void **state)
{
	(void)state;
	expect("training-13.5");
}

/* The same records in the structures of older libraries give the same, except for members that those lack. */
static void assert_older_say_the_same(const char *newest, const char *const older[2])
{
	struct ops_trace *expected = replay(newest);
	struct ops_buffer text = describe(expected);

	assert_non_null(strstr(text.bytes, ",\"priority\":-2"));
	for (char *at; (at = strstr(text.bytes, ",\"priority\":-2"));)
		memmove(at, at + 14, strlen(at + 14) + 1);
	for (size_t i = 0; i < 2; i++) {
		struct ops_trace *trace = replay(older[i]);
		struct ops_buffer said = describe(trace);

		assert_string_equal(said.bytes, text.bytes);
		ops_buffer_release(&said);
		ops_trace_unref(trace);
	}
	ops_buffer_release(&text);
	ops_trace_unref(expected);
}

static void older_libraries_say_the_same(void **state)
{
	(void)state;
	assert_older_say_the_same("training-13.5.cupti", (const char *const[]){"training-11.8.cupti", "training-12.9.cupti"});
	assert_older_say_the_same("memory-13.5.cupti", (const char *const[]){"memory-11.8.cupti", "memory-12.9.cupti"});
}

static void graphs_and_extras_are_as_expected(void **state)
{
	(void)state;
	expect("graph-13.5");
	expect("nodes-13.5");
	expect("extras-13.5");
	expect("memory-13.5");
}

static void a_drifting_clock_is_corrected(void **state)
{
	struct ops_trace *trace = replay("drift-12.9.cupti");
	const struct ops_events *e = ops_trace_events(trace);
	int64_t at_ns = ops_trace_info(trace)->start_ns;

	(void)state;
	for (uint32_t row = 0; row < e->count; row++) {
		if (e->kind[row] != OPS_EVENT_KERNEL)
			continue;
		at_ns += 10000000000;
		assert_in_range(e->start_ns[row], at_ns - 1000, at_ns + 1000);
		assert_int_not_equal(e->id[row], 0); /* under its operator */
	}
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 5);
	ops_trace_unref(trace);
}

static const char *track_name(const struct ops_trace *trace, uint32_t row)
{
	size_t count;

	return ops_trace_string(trace, ops_trace_tracks(trace, &count)[ops_trace_events(trace)->track[row]].name).bytes;
}

/* The file of a recording says the same of its devices as the recording. */
static void read_back_is_the_same(const char *name)
{
	struct ops_trace *trace = replay(name), *back;
	const struct ops_events *said, *says;
	struct ops_buffer waits = {0}, waits_read = {0};
	char path[] = "/tmp/opstrobe-replay-XXXXXX";
	struct ops_error error;
	int file = mkstemp(path);

	assert_true(file >= 0);
	close(file);
	if (ops_write_chrome_json(trace, path, NULL, &error) || ops_trace_read(path, NULL, &back, &error))
		fail_msg("%s", error.text);
	unlink(path);
	said = ops_trace_events(trace);
	says = ops_trace_events(back);
	for (uint32_t row = 0; row < said->count; row++) {
		assert_int_equal(says->kind[row], said->kind[row]);
		assert_string_equal(ops_event_category(back, row).bytes, ops_event_category(trace, row).bytes);
		assert_string_equal(track_name(back, row), track_name(trace, row));
		assert_int_equal(says->start_ns[row], said->start_ns[row]);
		assert_int_equal(says->correlation[row], said->correlation[row]);
		assert_int_equal(launch_of(back, row), launch_of(trace, row));
		put_waits(&waits, trace, row);
		put_waits(&waits_read, back, row);
		ops_buffer_printf(&waits, "; ");
		ops_buffer_printf(&waits_read, "; ");
	}
	assert_int_equal(waits_read.size, waits.size);
	assert_memory_equal(waits_read.bytes, waits.bytes, waits.size);
	assert_int_equal(ops_trace_check(back, &error), OPS_OK);
	ops_buffer_release(&waits);
	ops_buffer_release(&waits_read);
	ops_trace_unref(trace);
	ops_trace_unref(back);
}

static void a_file_read_back_is_the_same(void **state)
{
	(void)state;
	read_back_is_the_same("training-13.5.cupti");
	read_back_is_the_same("extras-13.5.cupti");
	read_back_is_the_same("graph-13.5.cupti");
	read_back_is_the_same("memory-13.5.cupti");
	read_back_is_the_same("nodes-13.5.cupti");
}

/* What was recorded and is cut or put together keeps what ties work to its launch. */
static void a_part_keeps_correlations(void **state)
{
	struct ops_trace *trace = replay("training-13.5.cupti"), *part;
	const struct ops_events *e;
	size_t tied = 0;

	(void)state;
	assert_int_equal(ops_trace_select(trace, OPS_SELECT_MEMORY, &part, NULL), OPS_OK);
	e = ops_trace_events(part);
	assert_int_equal(e->count, ops_trace_events(trace)->count);
	for (uint32_t row = 0; row < e->count; row++) {
		assert_int_equal(e->correlation[row], ops_trace_events(trace)->correlation[row]);
		tied += e->correlation[row] > 0;
	}
	assert_true(tied > 0);
	ops_trace_unref(trace);
	ops_trace_unref(part);
}

/* --- records that no GPU would send --------------------------------------------------------------------------------- */

/* Changes a record in place and its size; false leaves it out. */
typedef bool change_record(uint8_t *record, size_t *size);

/* Replays a file with every record changed, in reverse order if requested, and with a number of dropped records. */
static struct ops_trace *replay_changed(const char *name, change_record *change, bool backwards, uint64_t dropped)
{
	struct loaded file = load_named(name), changed = {0};
	struct records records;
	struct records_section section, found[256];
	struct ops_trace *trace;
	uint32_t version;
	size_t count = 0;
	FILE *out = open_memstream(&changed.bytes, &changed.size);

	assert_true(records_open(&records, file.bytes, file.size, &version));
	records_write_head(out, version);
	while (records_next(&records, &section))
		if (section.kind == RECORDS_RECORD)
			found[count++] = section;
		else
			records_write(out, section.kind, NULL, 0, section.bytes, section.size);
	for (size_t i = 0; i < count; i++) {
		uint8_t record[RECORD_BYTES_MAX] = {0};
		size_t size;

		section = found[backwards ? count - 1 - i : i];
		size = section.size;
		memcpy(record, section.bytes, size);
		if (!change || change(record, &size))
			records_write(out, RECORDS_RECORD, NULL, 0, record, size);
	}
	if (dropped)
		records_write(out, RECORDS_DROPPED, &dropped, sizeof(dropped), NULL, 0);
	fclose(out);
	trace = replay_bytes(changed.bytes, changed.size);
	free(changed.bytes);
	free(file.bytes);
	return trace;
}

static uint32_t kind_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

static bool halve(uint8_t *record, size_t *size)
{
	(void)record;
	*size /= 2;
	return true;
}

static void records_that_are_too_short_are_lost(void **state)
{
	struct ops_trace *trace = replay_changed("training-13.5.cupti", halve, false, 0);

	(void)state;
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL) + count_kind(trace, OPS_EVENT_RUNTIME), 0);
	assert_int_equal(ops_trace_info(trace)->lost, 28); /* half an event is as long as events once were */
	ops_trace_unref(trace);
}

static bool make_unknown(uint8_t *record, size_t *size)
{
	uint32_t kind = kind_of(record) * 1000;

	(void)size;
	memcpy(record, &kind, sizeof(kind));
	return true;
}

/* How many rows have a category. */
static size_t count_category(const struct ops_trace *trace, const char *category)
{
	size_t count = 0;

	for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++)
		count += strcmp(ops_event_category(trace, row).bytes, category) == 0;
	return count;
}

static bool shorten_by_a_byte(uint8_t *record, size_t *size)
{
	(void)record;
	*size -= 1;
	return true;
}

/* Half a record of a node that records an event is one of an event that is not timed yet, all but a byte one of no node. */
static void short_records_of_nodes_are_ignored(void **state)
{
	struct ops_trace *half = replay_changed("nodes-13.5.cupti", halve, false, 0);
	struct ops_trace *most = replay_changed("nodes-13.5.cupti", shorten_by_a_byte, false, 0);

	(void)state;
	assert_int_equal(count_category(half, "graph_host_node") + count_category(half, "graph_event_node"), 0);
	assert_int_equal(count_category(half, "cuda_event"), 0);
	assert_int_equal(ops_trace_info(half)->lost, 11); /* three calls, four kernels, four nodes of the host */
	assert_int_equal(count_category(most, "graph_host_node") + count_category(most, "graph_event_node"), 0);
	assert_int_equal(count_category(most, "cuda_event"), 2);
	ops_trace_unref(half);
	ops_trace_unref(most);
}

/* A library before 13.5 has something else where the node is in the record, or nothing. */
static void older_libraries_do_not_name_the_node_of_an_event(void **state)
{
	struct loaded file = load_named("nodes-13.5.cupti");
	struct ops_trace *trace;
	uint32_t version = 130400;

	(void)state;
	memcpy(file.bytes + offsetof(struct records_head, version), &version, sizeof(version));
	trace = replay_bytes(file.bytes, file.size);
	assert_int_equal(count_category(trace, "graph_event_node"), 0);
	assert_int_equal(count_category(trace, "cuda_event"), 2);
	assert_int_equal(count_category(trace, "graph_host_node"), 4);
	ops_trace_unref(trace);
	free(file.bytes);
}

static void unknown_kinds_are_passed_over(void **state)
{
	struct ops_trace *trace = replay_changed("training-13.5.cupti", make_unknown, false, 0);

	(void)state;
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL) + count_kind(trace, OPS_EVENT_RUNTIME), 0);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);
}

static void the_order_of_records_does_not_matter(void **state)
{
	static const char *const names[] = {"training-13.5.cupti", "memory-13.5.cupti"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct ops_trace *trace = replay_changed(names[i], NULL, true, 0), *straight = replay(names[i]);
		struct ops_buffer text = describe(trace), wanted = describe(straight);

		assert_string_equal(text.bytes, wanted.bytes);
		ops_buffer_release(&text);
		ops_buffer_release(&wanted);
		ops_trace_unref(trace);
		ops_trace_unref(straight);
	}
}

/* Records of memory: one is not an operation, one has no time, one is too short for one, and the rest stays. */
static bool spoil_memory(uint8_t *record, size_t *size)
{
	CUpti_ActivityMemory4 *memory = (void *)record;

	if (kind_of(record) != CUPTI_ACTIVITY_KIND_MEMORY2)
		return true;
	if (memory->memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED)
		memory->memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_INVALID;
	else if (memory->memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED)
		memory->timestamp = 0;
	else if (memory->deviceId == 1)
		*size = offsetof(CUpti_ActivityMemory4, memoryPoolConfig);
	else if (memory->memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC)
		memory->memoryKind = 1000;
	return true;
}

static void spoilt_records_of_memory_are_passed_over_or_lost(void **state)
{
	struct ops_trace *trace = replay_changed("memory-13.5.cupti", spoil_memory, false, 0);
	struct ops_buffer text = describe(trace);

	(void)state;
	assert_int_equal(count_kind(trace, OPS_EVENT_OTHER), 9 - 3);
	assert_int_equal(ops_trace_info(trace)->lost, 2);
	assert_non_null(strstr(text.bytes, "'Memory Allocation (Unrecognized)'"));
	assert_null(strstr(text.bytes, "Pinned"));
	ops_buffer_release(&text);
	ops_trace_unref(trace);
}

static bool drop_calls(uint8_t *record, size_t *size)
{
	(void)size;
	return kind_of(record) != CUPTI_ACTIVITY_KIND_RUNTIME && kind_of(record) != CUPTI_ACTIVITY_KIND_DRIVER;
}

static void work_whose_launch_is_missing_stays_without_an_operator(void **state)
{
	struct ops_trace *trace = replay_changed("training-13.5.cupti", drop_calls, false, 7);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 5);
	for (uint32_t row = 0; row < e->count; row++) {
		if (e->kind[row] == OPS_EVENT_KERNEL)
			assert_int_equal(e->id[row], 0);
		assert_int_equal(launch_of(trace, row), OPS_NONE);
	}
	assert_int_equal(ops_trace_info(trace)->lost, 7);
	ops_trace_unref(trace);
}

static uint32_t one_correlation;

static bool correlate_alike(uint8_t *record, size_t *size)
{
	(void)size;
	switch (kind_of(record)) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		memcpy(record + offsetof(CUpti_ActivityKernel9, correlationId), &one_correlation, 4);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		memcpy(record + offsetof(CUpti_ActivityAPI, correlationId), &one_correlation, 4);
		break;
	default:
		break;
	}
	return true;
}

/* All is launched by the first call that says so, up to the largest number. */
static void one_correlation_for_all_is_the_first_call(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ops_trace *trace;
		uint32_t first = OPS_NONE;

		one_correlation = i ? UINT32_MAX : 1;
		trace = replay_changed("training-13.5.cupti", correlate_alike, false, 0);
		for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++) {
			if (ops_trace_events(trace)->kind[row] != OPS_EVENT_KERNEL)
				continue;
			first = first == OPS_NONE ? launch_of(trace, row) : first;
			assert_int_equal(launch_of(trace, row), first);
		}
		assert_int_not_equal(first, OPS_NONE);
		ops_trace_unref(trace);
	}
}

static uint64_t to_the_end(void *unused, uint64_t time)
{
	(void)unused;
	return time % 2000 ? UINT64_MAX - time : time ^ (UINT64_C(1) << 63);
}

static bool wrap_times(uint8_t *record, size_t *size)
{
	records_change_times(record, *size, to_the_end, NULL);
	return true;
}

static void times_out_of_this_world_are_counted_with(void **state)
{
	struct ops_trace *trace = replay_changed("training-13.5.cupti", wrap_times, false, 0);
	char *views;
	size_t size;

	(void)state;
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 5);
	assert_int_equal(ops_views_json(trace, OPS_RULES_OPSTROBE, &views, &size, NULL), OPS_OK);
	ops_free(views);
	ops_trace_unref(trace);
}

static void files_that_end_early_are_read_as_far_as_they_go(void **state)
{
	struct loaded file = load_named("training-13.5.cupti");

	(void)state;
	for (size_t size = sizeof(struct records_head); size < file.size; size += 61) {
		char *part = malloc(size);

		memcpy(part, file.bytes, size);
		ops_trace_unref(replay_bytes(part, size));
		free(part);
	}
	free(file.bytes);
}

/* --- through the fake CUPTI library --------------------------------------------------------------------------------- */

static void the_collector_for_cupti_says_the_same(void **state)
{
	struct ops_trace *direct = replay("training-13.5.cupti"), *live;
	char path[4096];
	struct run run;

	(void)state;
	path_of(path, sizeof(path), "training-13.5.cupti");
	setenv("FAKE_CUPTI_RECORDS", path, 1);
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	usleep(2000); /* so long as the file */
	live = checked_trace(stop_run(&run));
	unsetenv("FAKE_CUPTI_RECORDS");
	for (enum ops_event_kind kind = OPS_EVENT_KERNEL; kind <= OPS_EVENT_OVERHEAD; kind++)
		if (kind != OPS_EVENT_GPU_USER_ANNOTATION) /* those are ranges of the host, which is another */
			assert_int_equal(count_kind(direct, kind), count_kind(live, kind));
	for (uint32_t row = 0; row < ops_trace_events(live)->count; row++)
		if (ops_trace_events(live)->kind[row] == OPS_EVENT_KERNEL)
			assert_int_not_equal(launch_of(live, row), OPS_NONE);
	ops_trace_unref(live);
	ops_trace_unref(direct);
}

/* --- advice --------------------------------------------------------------------------------------------------------- */

static void assert_advice(const char *name, const char *const *ids)
{
	struct ops_trace *trace = replay(name);
	const struct ops_rank worker = {.trace = trace, .name = "host_1"};
	char *advice, id[64];
	size_t size;

	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &advice, &size, NULL), OPS_OK);
	for (; *ids; ids++) {
		snprintf(id, sizeof(id), "{\"id\":\"%s\"", *ids);
		if (!strstr(advice, id))
			fail_msg("%s gives no %s: %s", name, *ids, advice);
	}
	ops_free(advice);
	ops_trace_unref(trace);
}

static void advice_has_its_evidence_from_recorded_work(void **state)
{
	(void)state;
	assert_advice("launches-12.9.cupti", (const char *const[]){"launch-bound", "device-idle", NULL});
	assert_advice("waiting-12.9.cupti", (const char *const[]){"pageable-copies", "synchronising-calls", "device-idle", NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_training_step_is_as_expected),
		cmocka_unit_test(older_libraries_say_the_same),
		cmocka_unit_test(graphs_and_extras_are_as_expected),
		cmocka_unit_test(a_drifting_clock_is_corrected),
		cmocka_unit_test(a_file_read_back_is_the_same),
		cmocka_unit_test(a_part_keeps_correlations),
		cmocka_unit_test(records_that_are_too_short_are_lost),
		cmocka_unit_test(short_records_of_nodes_are_ignored),
		cmocka_unit_test(older_libraries_do_not_name_the_node_of_an_event),
		cmocka_unit_test(unknown_kinds_are_passed_over),
		cmocka_unit_test(the_order_of_records_does_not_matter),
		cmocka_unit_test(spoilt_records_of_memory_are_passed_over_or_lost),
		cmocka_unit_test(work_whose_launch_is_missing_stays_without_an_operator),
		cmocka_unit_test(one_correlation_for_all_is_the_first_call),
		cmocka_unit_test(times_out_of_this_world_are_counted_with),
		cmocka_unit_test(files_that_end_early_are_read_as_far_as_they_go),
		cmocka_unit_test(the_collector_for_cupti_says_the_same),
		cmocka_unit_test(advice_has_its_evidence_from_recorded_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
