/* SPDX-License-Identifier: Apache-2.0
 *
 * trace/stretch, and ranks side by side: the contents of a part of a trace, and the processes of ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>
#include <opstrobe/read.h>

#include "../read/compare.h"
#include "../read/reading.h"
#include "base/alloc.h"

static const char text[] =
	"[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":5,\"tid\":1,\"ts\":0,\"dur\":100},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":10,\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"launch\",\"pid\":5,\"tid\":1,\"ts\":12,\"dur\":3,"
	"\"args\":{\"correlation\":7}},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"pid\":5,\"tid\":1,\"ts\":100,\"dur\":100},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel_AllReduce\",\"pid\":0,\"tid\":7,\"ts\":150,\"dur\":20,"
	"\"args\":{\"correlation\":7,\"device\":0}},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":5,\"tid\":2,\"ts\":160,\"dur\":20},"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"args\":{\"name\":\"python\"}}]";

static bool has(const struct ops_trace *trace, const char *name)
{
	const struct ops_events *e = ops_trace_events(trace);

	for (size_t row = 0; row < e->count; row++)
		if (!strcmp(ops_trace_string(trace, e->name[row]).bytes, name))
			return true;
	return false;
}

static struct ops_trace *cut(const struct ops_trace *trace, struct ops_trace_cut how)
{
	struct ops_trace *part;
	struct ops_error error;

	assert_int_equal(ops_trace_cut(trace, &how, &part, &error), OPS_OK);
	if (ops_trace_check(part, &error))
		fail_msg("%s", error.text);
	return part;
}

/* The span of the whole session would make a step of 100 µs look as long as all of it. */
static void the_span_of_the_session_is_clipped(void **state)
{
	static const char rows[] =
		"[{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","
		"\"ts\":0,\"dur\":1000},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"pid\":5,\"tid\":1,\"ts\":100,\"dur\":100},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":150,\"dur\":80},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":5,\"tid\":1,\"ts\":500,\"dur\":80}]";
	struct ops_trace *trace = read_text(rows), *part;
	const struct ops_events *e;
	bool found = false;
	int64_t from, to;

	(void)state;
	assert_true(ops_trace_steps(trace, 2, 2, &from, &to));
	part = cut(trace, (struct ops_trace_cut){from, to, NULL, 0});
	e = ops_trace_events(part);
	for (size_t row = 0; row < e->count; row++) {
		if (e->kind[row] != OPS_EVENT_TRACE)
			continue;
		found = true;
		assert_int_equal(e->start_ns[row], 100000);
		assert_int_equal(e->end_ns[row], 230000); /* `a` goes on after the step */
	}
	assert_true(found);
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

static void device_work_goes_with_its_call(void **state)
{
	struct ops_trace *trace = read_text(text), *part;
	int64_t from, to;

	(void)state;
	assert_false(ops_trace_steps(trace, 3, 9, &from, &to));
	assert_true(ops_trace_steps(trace, 1, 1, &from, &to));
	part = cut(trace, (struct ops_trace_cut){from, to, NULL, 0});
	assert_int_equal(ops_trace_events(part)->count, 4);
	assert_true(has(part, "ncclKernel_AllReduce") && has(part, "a") && has(part, "launch") && !has(part, "b"));
	ops_trace_unref(part);
	assert_true(ops_trace_steps(trace, 2, 2, &from, &to));
	part = cut(trace, (struct ops_trace_cut){from, to, NULL, 0});
	assert_int_equal(ops_trace_events(part)->count, 2);
	assert_true(has(part, "ProfilerStep#2") && has(part, "b"));
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

static void rows_have_numbers_in_the_complete_trace(void **state)
{
	struct ops_trace *trace = read_text(text), *part;
	int64_t from, to;

	(void)state;
	assert_true(ops_trace_steps(trace, 2, 2, &from, &to));
	part = cut(trace, (struct ops_trace_cut){from, to, NULL, 0});
	for (uint32_t row = 0; row < ops_trace_events(part)->count; row++) {
		uint32_t whole = ops_trace_whole_row(part, row);

		assert_int_not_equal(whole, row);
		assert_int_equal(ops_trace_events(trace)->start_ns[whole], ops_trace_events(part)->start_ns[row]);
		assert_int_equal(ops_trace_whole_row(trace, whole), whole);
	}
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

static void steps_of_old_files_are_operators(void **state)
{
	static const char old[] = "[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#5\",\"pid\":5,\"tid\":1,"
	                          "\"ts\":3,\"dur\":4}]";
	struct ops_trace *trace;
	struct ops_error error;
	int64_t from, to;

	(void)state;
	assert_int_equal(ops_trace_read_memory(old, sizeof(old) - 1, NULL, &trace, &error), OPS_OK);
	assert_true(ops_trace_steps(trace, 5, 5, &from, &to));
	assert_int_equal(to - from, 4000);
	ops_trace_unref(trace);
}

static void threads_take_their_device_work(void **state)
{
	struct ops_trace *trace = read_text(text), *part;
	const int64_t first = 1, second = 2;

	(void)state;
	part = cut(trace, (struct ops_trace_cut){INT64_MIN, INT64_MAX, &first, 1});
	assert_int_equal(ops_trace_events(part)->count, 5);
	assert_false(has(part, "b"));
	ops_trace_unref(part);
	part = cut(trace, (struct ops_trace_cut){INT64_MIN, INT64_MAX, &second, 1});
	assert_int_equal(ops_trace_events(part)->count, 1);
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

static enum ops_code add_ref(void *traces, size_t i, struct ops_trace **ret_trace, struct ops_error *error);

/* What a merged trace says of its place among the ranks: what both of them say. */
static void place_is(const char *first, const char *second, const char *expected)
{
	static const char *const names[] = {"rank 0", "rank 1"};
	const char *const places[] = {first, second};
	struct ops_trace *ranks[2], *merged;
	struct ops_clock_shift shifts[2];
	struct ops_string place;
	char row[512];

	for (int i = 0; i < 2; i++) {
		snprintf(row, sizeof(row), "{%s \"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
		         "\"dur\": 1}]}", places[i]);
		ranks[i] = read_text(row);
	}
	assert_int_equal(ops_trace_merge_ranks(&(struct ops_trace_source){add_ref, ranks}, names, 2, false, shifts, &merged, NULL),
	                 OPS_OK);
	assert_int_equal(ops_trace_find_metadata(merged, "distributedInfo", &place), expected != NULL);
	if (expected)
		assert_string_equal(place.bytes, expected);
	ops_trace_unref(merged);
	ops_trace_unref(ranks[0]);
	ops_trace_unref(ranks[1]);
}

static void merged_ranks_have_no_rank(void **state)
{
	(void)state;
	place_is("\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 2, \"pg_config\": [{\"ranks\": [0]}]},",
	         "\"distributedInfo\": {\"rank\": 1, \"backend\": \"nccl\", \"world_size\": 2, \"pg_config\": [{\"ranks\": [1]}]},",
	         "{\"backend\":\"nccl\",\"world_size\":2}");
	place_is("\"distributedInfo\": {\"rank\": 0},", "\"distributedInfo\": {\"rank\": 1},", NULL);
	place_is("\"distributedInfo\": {\"rank\": 0},", "", NULL);
	place_is("", "\"distributedInfo\": {\"rank\": 1},", NULL);
	place_is("", "", NULL);
}

/* Two ranks with the same process, device and correlations, one of them late by 30 us. */
static enum ops_code add_ref(void *traces, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	(void)error;
	*ret_trace = ((struct ops_trace **)traces)[i];
	ops_trace_ref(*ret_trace);
	return OPS_OK;
}

/* Ranks from a source make the trace that they make together. */
static void streamed_is_the_same(struct ops_trace **ranks, const struct ops_trace *merged)
{
	static const char *const names[] = {"rank 0", "rank 1"};
	struct ops_clock_shift shifts[2];
	struct ops_trace *streamed;
	struct ops_error error;

	assert_int_equal(ops_trace_merge_ranks(&(struct ops_trace_source){add_ref, ranks}, names, 2, true, shifts, &streamed,
	                                       &error), OPS_OK);
	assert_int_equal(shifts[0].shift_ns, 0);
	assert_int_equal(shifts[1].shift_ns, -30000);
	assert_int_equal(shifts[1].collectives, 1);
	assert_same_trace(merged, streamed);
	ops_trace_unref(streamed);
}

static void ranks_stay_apart(void **state)
{
	struct ops_trace *ranks[2] = {read_text(text), NULL}, *merged;
	struct ops_clock_shift shifts[2];
	struct ops_error error;
	const struct ops_track *tracks;
	const struct ops_events *e;
	int64_t correlations[2] = {-1, -1};
	size_t count, kernels = 0;

	(void)state;
	struct ops_trace_part late = {.trace = ranks[0], .whole = true, .shift_ns = 30000};
	assert_int_equal(ops_trace_merge(&late, 1, NULL, &ranks[1], &error), OPS_OK);
	assert_int_equal(ops_trace_align((const struct ops_trace *const *)ranks, 2, shifts, &error), OPS_OK);
	assert_int_equal(shifts[1].shift_ns, -30000);
	assert_int_equal(shifts[1].collectives, 1);
	struct ops_trace_part parts[2] = {
		{.trace = ranks[0], .whole = true, .rank_name = "rank 0"},
		{.trace = ranks[1], .whole = true, .rank_name = "rank 1", .shift_ns = shifts[1].shift_ns}};
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &merged, &error), OPS_OK);
	if (ops_trace_check(merged, &error))
		fail_msg("%s", error.text);
	tracks = ops_trace_tracks(merged, &count);
	assert_int_equal(count, 6);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 3; k < 6; k++)
			assert_true(tracks[i].pid != tracks[k].pid);
	e = ops_trace_events(merged);
	for (size_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_KERNEL) {
			assert_int_equal(e->start_ns[row] - ops_trace_events(ranks[0])->start_ns[0], 150000);
			correlations[kernels++] = e->correlation[row];
		}
	assert_int_equal(kernels, 2);
	assert_true(correlations[0] != correlations[1]);
	assert_true(ops_trace_find_string(merged, "rank 1: python", 14) != OPS_NONE);
	streamed_is_the_same(ranks, merged);
	ops_trace_unref(merged);
	ops_trace_unref(ranks[0]);
	ops_trace_unref(ranks[1]);
}

/* Returns by how many operations of that name two ranks are aligned. */
static uint64_t aligned_by(const char *category, const char *name)
{
	char trace[512];
	struct ops_trace *ranks[2];
	struct ops_clock_shift shifts[2];
	struct ops_error error;

	snprintf(trace, sizeof(trace),
	         "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, \"ts\": 10, \"dur\": 5, "
	         "\"args\": {\"stream\": 7}}]}", category, name);
	ranks[0] = read_text(trace);
	ranks[1] = read_text(trace);
	assert_int_equal(ops_trace_align((const struct ops_trace *const *)ranks, 2, shifts, &error), OPS_OK);
	ops_trace_unref(ranks[0]);
	ops_trace_unref(ranks[1]);
	return shifts[1].collectives;
}

static void collectives_align_ranks(void **state)
{
	(void)state;
	assert_int_equal(aligned_by("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), 1);
	assert_int_equal(aligned_by("kernel", "void vllm::cross_device_reduce_1stage<float, 2>"), 1);
	assert_int_equal(aligned_by("kernel", "ncclDevKernel_SendRecv"), 0);
	assert_int_equal(aligned_by("kernel", "deep_ep::intranode::dispatch"), 0);
	assert_int_equal(aligned_by("kernel", "gemm"), 0);
	assert_int_equal(aligned_by("cpu_op", "gloo:all_reduce"), 1);
	assert_int_equal(aligned_by("user_annotation", "mpi:all_reduce"), 1);
	assert_int_equal(aligned_by("cpu_op", "gloo:send 0->1"), 0);
}

/* The time of `main` before the step would be its self time in the step. `fit` only begins in it. */
static void functions_around_the_range_are_clipped(void **state)
{
	static const char rows[] =
		"[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"main\",\"pid\":5,\"tid\":1,\"ts\":0,\"dur\":1000},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train\",\"pid\":5,\"tid\":1,\"ts\":50,\"dur\":800},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"pid\":5,\"tid\":1,\"ts\":100,\"dur\":100},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":120,\"dur\":30},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"fit\",\"pid\":5,\"tid\":2,\"ts\":150,\"dur\":80}]";
	static const struct {
		const char *name;
		int64_t start_us, end_us, self_us;
		bool cut;
	} wanted[] = {{"main", 100, 230, 0, true}, {"train", 100, 230, 30, true}, {"a", 120, 150, 30, false}, {"fit", 150, 230, 80, false}};
	struct ops_trace *trace = read_text(rows), *part;
	const struct ops_events *e;
	int64_t from, to;

	(void)state;
	assert_true(ops_trace_steps(trace, 2, 2, &from, &to));
	part = cut(trace, (struct ops_trace_cut){from, to, NULL, 0});
	e = ops_trace_events(part);
	assert_int_equal(e->count, 5);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		uint32_t row = 0;

		while (strcmp(ops_trace_string(part, e->name[row]).bytes, wanted[i].name) != 0)
			row++;
		assert_int_equal(e->start_ns[row], wanted[i].start_us * 1000);
		assert_int_equal(e->end_ns[row], wanted[i].end_us * 1000);
		assert_int_equal(e->self_ns[row], wanted[i].self_us * 1000);
		assert_int_equal((e->flags[row] & OPS_EVENT_CUT) != 0, wanted[i].cut);
	}
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

/* `main` and `train` end between the last call and the end of the trace. A range without an end clips their start alone. */
static void functions_around_an_open_range_are_clipped_at_its_end(void **state)
{
	static const char rows[] =
		"[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"main\",\"pid\":5,\"tid\":1,\"ts\":0,\"dur\":1000},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train\",\"pid\":5,\"tid\":1,\"ts\":50,\"dur\":800},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"load\",\"pid\":5,\"tid\":1,\"ts\":80,\"dur\":140},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":120,\"dur\":30},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":5,\"tid\":1,\"ts\":700,\"dur\":30}]";
	static const struct {
		int64_t from_us, to_us; /* 0: open */
		const char *name;
		int64_t start_us, end_us;
	} wanted[] = {{500, 0, "main", 700, 1000},  {500, 0, "train", 700, 850}, {200, 0, "main", 80, 1000}, {200, 0, "load", 80, 220},
	              {0, 300, "main", 0, 220},     {0, 300, "train", 50, 220},  {0, 2000, "main", 0, 1000}, {500, 2000, "train", 700, 850}};
	struct ops_trace *trace = read_text(rows);

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct ops_trace *part = cut(trace, (struct ops_trace_cut){wanted[i].from_us ? wanted[i].from_us * 1000 : INT64_MIN,
		                                                          wanted[i].to_us ? wanted[i].to_us * 1000 : INT64_MAX, NULL, 0});
		const struct ops_events *e = ops_trace_events(part);
		uint32_t row = 0;

		while (strcmp(ops_trace_string(part, e->name[row]).bytes, wanted[i].name) != 0)
			row++;
		assert_int_equal(e->start_ns[row], wanted[i].start_us * 1000);
		assert_int_equal(e->end_ns[row], wanted[i].end_us * 1000);
		ops_trace_unref(part);
	}
	ops_trace_unref(trace);
}

static void survives_failures(void **state)
{
	struct ops_trace *trace = read_text(text), *made = NULL;
	const struct ops_trace *both[2] = {trace, trace};
	const struct ops_trace_part parts[2] = {{.trace = trace, .whole = true, .rank_name = "a"},
	                                        {.trace = trace, .whole = true, .rank_name = "b"}};
	struct ops_trace_cut all = {INT64_MIN, INT64_MAX, NULL, 0};
	struct ops_clock_shift shifts[2];
	struct ops_error error;
	uint64_t count = 1;

	(void)state;
	for (uint64_t nth = 1; nth <= count; nth++) {
		ops_alloc_fail_at(nth, false);
		if (ops_trace_cut(trace, &all, &made, &error) == OPS_OK)
			ops_trace_unref(made);
		if (ops_trace_merge(parts, 2, NULL, &made, &error) == OPS_OK)
			ops_trace_unref(made);
		ops_trace_align(both, 2, shifts, &error);
		if (ops_trace_merge_ranks(&(struct ops_trace_source){add_ref, both}, (const char *const[]){"a", "b"}, 2, true, shifts,
		                          &made, &error) == OPS_OK)
			ops_trace_unref(made);
		count = ops_alloc_count();
	}
	ops_alloc_fail_at(0, false);
	assert_true(count > 50);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_span_of_the_session_is_clipped),
		cmocka_unit_test(device_work_goes_with_its_call),
		cmocka_unit_test(rows_have_numbers_in_the_complete_trace),
		cmocka_unit_test(steps_of_old_files_are_operators),
		cmocka_unit_test(threads_take_their_device_work),
		cmocka_unit_test(merged_ranks_have_no_rank),
		cmocka_unit_test(ranks_stay_apart),
		cmocka_unit_test(collectives_align_ranks),
		cmocka_unit_test(functions_around_the_range_are_clipped),
		cmocka_unit_test(functions_around_an_open_range_are_clipped_at_its_end),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
