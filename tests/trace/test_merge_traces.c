/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging traces, and parts of traces: every event is found where the refs point.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "base/alloc.h"
#include "random.h"
#include "rich.h"

/* Returns a trace of `count` events (names "0", "1", … in order of adding) and as many memory records on two threads, at random
 * times within [start, start + 1000]. */
static struct ops_trace *random_trace(struct random *random, int64_t start, uint32_t count, uint32_t first_number)
{
	struct ops_builder *b = ops_builder_new();
	struct ops_trace *trace;

	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 9, .number = first_number});
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 10, .number = first_number + 1});
	for (uint32_t i = 0; i < count; i++) {
		struct ops_new_event event = {OPS_NEW_EVENT, .track = random_below(random, 2)};
		char name[16];

		event.start_ns = start + random_below(random, 500);
		event.end_ns = event.start_ns + random_below(random, 500);
		event.name = ops_builder_string(b, name, (size_t)snprintf(name, sizeof(name), "%u", i));
		event.forward_thread = first_number;
		event.sequence_nr = i;
		ops_builder_event(b, &event);
		ops_builder_memory(b, &(struct ops_memory_record){.time_ns = start + random_below(random, 20), .address = i,
		                                                  .track = event.track});
		if (random_below(random, 2))
			ops_builder_memory_stack(b, event.name);
	}
	ops_builder_info(b, &(struct ops_trace_info){.start_ns = start, .stop_ns = start + 1000, .pid = 9, .lost = 1});
	assert_int_equal(ops_builder_finish(b, &trace, NULL), OPS_OK);
	return trace;
}

static void assert_same_stack(const struct ops_trace *a, uint32_t i, const struct ops_trace *b, uint32_t j)
{
	const uint32_t *stacks = ops_trace_memory_stacks(a), *others = ops_trace_memory_stacks(b);
	uint32_t stack = stacks ? stacks[i] : OPS_NONE, other = others ? others[j] : OPS_NONE;

	assert_int_equal(stack == OPS_NONE, other == OPS_NONE);
	if (stack != OPS_NONE)
		assert_string_equal(ops_trace_string(a, stack).bytes, ops_trace_string(b, other).bytes);
}

static void assert_same_thing(const struct ops_trace *a, uint32_t ref, const struct ops_trace *b, uint32_t new_ref)
{
	const struct ops_events *x = ops_trace_events(a), *y = ops_trace_events(b);
	size_t count;

	assert_int_equal(ref & OPS_MEMORY_REF, new_ref & OPS_MEMORY_REF);
	if (ref & OPS_MEMORY_REF) {
		const struct ops_memory_record *old = &ops_trace_memory(a, &count)[ref & ~OPS_MEMORY_REF];
		const struct ops_memory_record *new = &ops_trace_memory(b, &count)[new_ref & ~OPS_MEMORY_REF];
		assert_int_equal(old->time_ns, new->time_ns);
		assert_int_equal(old->address, new->address);
		assert_same_stack(a, ref & ~OPS_MEMORY_REF, b, new_ref & ~OPS_MEMORY_REF);
		return;
	}
	assert_int_equal(x->start_ns[ref], y->start_ns[new_ref]);
	assert_int_equal(x->end_ns[ref], y->end_ns[new_ref]);
	assert_int_equal(x->sequence_nr[ref], y->sequence_nr[new_ref]);
	assert_string_equal(ops_trace_string(a, x->name[ref]).bytes, ops_trace_string(b, y->name[new_ref]).bytes);
}

/* Merges two random traces, whole or some events of them, and looks for each ref. */
static void merge_two(struct random *random, bool whole, int64_t second_start)
{
	struct ops_trace *traces[2] = {random_trace(random, 5000, 40, 1), random_trace(random, second_start, 30, 1)};
	struct ops_trace_part parts[2];
	uint32_t refs[2][50], moved[100];
	struct ops_trace *merged;
	struct ops_error error;

	for (size_t p = 0; p < 2; p++) {
		for (size_t i = 0; i < 50; i++)
			refs[p][i] = random_below(random, p ? 30 : 40) | (random_below(random, 2) ? OPS_MEMORY_REF : 0);
		parts[p] = (struct ops_trace_part){.trace = traces[p], .refs = refs[p], .ref_count = 50, .whole = whole};
	}
	assert_int_equal(ops_trace_merge(parts, 2, moved, &merged, &error), OPS_OK);
	if (ops_trace_check(merged, &error))
		fail_msg("%s", error.text);
	for (size_t i = 0; i < 100; i++)
		assert_same_thing(traces[i / 50], refs[i / 50][i % 50], merged, moved[i]);
	if (whole) {
		assert_int_equal(ops_trace_events(merged)->count, 70);
		for (size_t p = 0; second_start > 6000 && p < 2; p++) { /* apart in time: nothing changes for anyone */
			const struct ops_events *old = ops_trace_events(traces[p]), *new = ops_trace_events(merged);
			for (size_t row = 0; row < old->count; row++) {
				uint32_t parent = old->parent[row];
				assert_int_equal(old->self_ns[row], new->self_ns[row + 40 * p]);
				assert_int_equal(new->parent[row + 40 * p], parent == OPS_NONE ? OPS_NONE : parent + 40 * p);
			}
		}
	}
	assert_int_equal(ops_trace_info(merged)->lost, 2);
	assert_int_equal(ops_trace_info(merged)->start_ns, second_start < 5000 ? second_start : 5000);
	ops_trace_unref(merged);
	ops_trace_unref(traces[0]);
	ops_trace_unref(traces[1]);
}

static void test_refs(void **state)
{
	struct random random = {1};

	(void)state;
	for (int i = 0; i < 200; i++) {
		merge_two(&random, true, 9000);
		merge_two(&random, true, 5300);
		merge_two(&random, true, 1000);
		merge_two(&random, false, 9000);
		merge_two(&random, false, 5000);
	}
}

static size_t tracks_of_two(int64_t second_start, uint32_t second_number)
{
	struct random random = {2};
	struct ops_trace *traces[2] = {random_trace(&random, 5000, 5, 1),
	                               random_trace(&random, second_start, 5, second_number)};
	const struct ops_trace_part parts[2] = {{.trace = traces[0], .whole = true}, {.trace = traces[1], .whole = true}};
	const struct ops_track *tracks;
	struct ops_trace *merged;
	size_t count;

	assert_int_equal(ops_trace_merge(parts, 2, NULL, &merged, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(merged, NULL), OPS_OK);
	tracks = ops_trace_tracks(merged, &count);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(tracks[i].number, tracks[j].number);
	ops_trace_unref(merged);
	ops_trace_unref(traces[0]);
	ops_trace_unref(traces[1]);
	return count;
}

static void test_tracks(void **state)
{
	(void)state;
	assert_int_equal(tracks_of_two(9000, 1), 2); /* the same threads, later */
	assert_int_equal(tracks_of_two(9000, 2), 4); /* the second's first thread has the number of the first's second */
	assert_int_equal(tracks_of_two(5000, 1), 4); /* at the same time */
}

static void test_one_of_everything(void **state)
{
	struct ops_trace *trace, *copy;
	struct ops_trace_part part = {.whole = true};
	const struct ops_events *old, *new;
	size_t n, m;

	(void)state;
	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "k", 1, "1", 1, NULL), OPS_OK);
	part.trace = trace;
	assert_int_equal(ops_trace_merge(&part, 1, NULL, &copy, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(copy, NULL), OPS_OK);
	old = ops_trace_events(trace);
	new = ops_trace_events(copy);
	assert_int_equal(old->count, new->count);
	assert_memory_equal(old->flags, new->flags, old->count * sizeof(*old->flags));
	assert_memory_equal(old->self_ns, new->self_ns, old->count * sizeof(*old->self_ns));
	assert_memory_equal(old->id, new->id, old->count * sizeof(*old->id));
	assert_string_equal(ops_trace_string(copy, new->args[0]).bytes, "n=1");
	assert_string_equal(ops_trace_string(copy, new->overload[3]).bytes, "out");
	ops_trace_counters(trace, &n);
	ops_trace_counters(copy, &m);
	assert_int_equal(n, m);
	ops_trace_links(trace, &n);
	ops_trace_links(copy, &m);
	assert_int_equal(n, m);
	assert_int_equal(ops_trace_metadata_count(copy), 1);
	assert_string_equal(ops_trace_info(copy)->host_name, "host");
	ops_trace_unref(copy);
	ops_trace_unref(trace);
}

/* A process that the first one started is named, and has neither metadata nor memory in the new trace. */
static void test_started_process(void **state)
{
	struct random random = {3};
	struct ops_trace *traces[2] = {random_trace(&random, 5000, 40, 1), random_trace(&random, 5100, 30, 1)}, *merged;
	struct ops_trace_part parts[2] = {{.trace = traces[0], .whole = true}, {.trace = traces[1], .whole = true, .process_name = "worker 7"}};
	const struct ops_process *processes;
	size_t count, own_count;

	(void)state;
	assert_int_equal(ops_trace_set_metadata(traces[0], "a", 1, "1", 1, NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(traces[1], "a", 1, "2", 1, NULL), OPS_OK);
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &merged, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(merged, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(merged)->count, 70);
	ops_trace_memory(traces[0], &own_count);
	ops_trace_memory(merged, &count);
	assert_int_equal(count, own_count);
	assert_int_equal(ops_trace_metadata_count(merged), 1);
	processes = ops_trace_processes(merged, &count);
	assert_int_equal(count, 2);
	assert_string_equal(ops_trace_string(merged, processes[0].name).bytes, ops_trace_info(traces[0])->process_name);
	assert_string_equal(ops_trace_string(merged, processes[1].name).bytes, "worker 7");
	ops_trace_unref(merged);
	ops_trace_unref(traces[0]);
	ops_trace_unref(traces[1]);
}

/* Merges traces with these sampled stacks (NULL: none), the second one as a process of the first, and returns those of the result. */
static void check_samples(const char *first, const char *second, const char *wanted)
{
	static const char key[] = "python_samples";
	struct random random = {3};
	struct ops_trace *traces[2] = {random_trace(&random, 5000, 4, 1), random_trace(&random, 5100, 3, 1)}, *merged;
	struct ops_trace_part parts[2] = {{.trace = traces[0], .whole = true}, {.trace = traces[1], .whole = true, .process_name = "worker 7"}};
	const char *texts[2] = {first, second};
	struct ops_string json;

	for (int i = 0; i < 2; i++)
		if (texts[i])
			assert_int_equal(ops_trace_set_metadata(traces[i], key, strlen(key), texts[i], strlen(texts[i]), NULL), OPS_OK);
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &merged, NULL), OPS_OK);
	assert_int_equal(ops_trace_find_metadata(merged, key, &json), wanted != NULL);
	if (wanted) {
		assert_int_equal(json.size, strlen(wanted));
		assert_memory_equal(json.bytes, wanted, json.size);
	}
	ops_trace_unref(merged);
	ops_trace_unref(traces[0]);
	ops_trace_unref(traces[1]);
}

static void test_samples_of_started_processes(void **state)
{
	(void)state;
	check_samples(NULL, NULL, NULL);
	check_samples("{\"a\":1}", NULL, "{\"a\":1}");
	check_samples(NULL, "{\"b\":2}", "[{\"b\":2}]");
	check_samples("{\"a\":1}", "{\"b\":2}", "[{\"a\":1},{\"b\":2}]");
	check_samples("[{\"a\":1},{\"b\":2}]", "[{\"c\":3}]", "[{\"a\":1},{\"b\":2},{\"c\":3}]");
}

static void test_out_of_memory(void **state)
{
	struct ops_trace *trace;
	bool done = false;

	(void)state;
	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	for (uint64_t nth = 1; !done; nth++) {
		const uint32_t refs[] = {3, OPS_MEMORY_REF | 1, 0};
		uint32_t moved[3] = {1, 1, 1};
		struct ops_trace_part part = {.trace = trace, .refs = refs, .ref_count = 3, .whole = true};
		struct ops_trace *merged = NULL;
		enum ops_code code;

		ops_alloc_fail_at(nth, false);
		code = ops_trace_merge(&part, 1, moved, &merged, NULL);
		done = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !merged && !done));
		assert_int_equal(moved[1], code ? 1 : refs[1]);
		ops_trace_unref(merged);
	}
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refs),
		cmocka_unit_test(test_tracks),
		cmocka_unit_test(test_one_of_everything),
		cmocka_unit_test(test_started_process), cmocka_unit_test(test_samples_of_started_processes),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
