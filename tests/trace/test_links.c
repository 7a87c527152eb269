/* SPDX-License-Identifier: Apache-2.0
 *
 * Links from forward operators to backward nodes, compared with a direct implementation of their definition, on random operators
 * and built by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "trace/builder.h"

#define EVENTS_MAX 80
#define TRACKS 3
#define KEYS_MAX (EVENTS_MAX * 2)

/* --- the oracle ----------------------------------------------------------------------------------------------------- */

struct stored {
	uint32_t thread;
	int64_t sequence_nr;
	uint32_t row;
};

static struct stored *find_stored(struct stored *stored, size_t *count, uint32_t thread, int64_t sequence_nr)
{
	for (size_t i = 0; i < *count; i++)
		if (stored[i].thread == thread && stored[i].sequence_nr == sequence_nr)
			return &stored[i];
	stored[*count] = (struct stored){thread, sequence_nr, OPS_NONE};
	return &stored[(*count)++];
}

/* `target[row]` becomes the row of the backward node that the row's arrow ends at, or OPS_NONE. */
static void solve(const struct ops_trace *trace, uint32_t *target)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct stored stored[KEYS_MAX];
	size_t stored_count = 0;
	size_t track_count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &track_count);
	bool visited[EVENTS_MAX] = {false};

	for (size_t row = 0; row < e->count; row++)
		target[row] = OPS_NONE;
	for (size_t n = 0; n < e->count; n++) {
		uint32_t row = OPS_NONE;
		struct stored *entry;

		for (uint32_t i = 0; i < e->count; i++) /* the first of those that end earliest */
			if (!visited[i] && (row == OPS_NONE || e->end_ns[i] < e->end_ns[row]))
				row = i;
		visited[row] = true;
		if (e->kind[row] != OPS_EVENT_CPU_OP || e->sequence_nr[row] < 0)
			continue;
		entry = find_stored(stored, &stored_count,
		                    e->forward_thread[row] ? e->forward_thread[row] : tracks[e->track[row]].number,
		                    e->sequence_nr[row]);
		if (e->forward_thread[row] == 0) {
			if (entry->row == OPS_NONE || row > entry->row)
				entry->row = row;
		} else if (entry->row != OPS_NONE && entry->row < row) {
			target[entry->row] = row;
			entry->row = OPS_NONE;
		}
	}
}

static void compare(const struct ops_trace *trace)
{
	uint32_t target[EVENTS_MAX];
	size_t expected = 0;
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);

	solve(trace, target);
	for (size_t row = 0; row < ops_trace_events(trace)->count; row++) {
		if (target[row] == OPS_NONE)
			continue;
		assert_true(expected < count);
		assert_int_equal(links[expected].from, row);
		assert_int_equal(links[expected].to, target[row]);
		assert_int_equal(links[expected].kind, OPS_LINK_FORWARD_BACKWARD);
		expected++;
	}
	assert_int_equal(count, expected);
}

/* --- traces --------------------------------------------------------------------------------------------------------- */

static struct ops_builder *new_builder(void)
{
	struct ops_builder *builder = ops_builder_new();

	for (uint32_t track = 0; track < TRACKS; track++)
		ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = track, .number = track + 1});
	return builder;
}

static struct ops_trace *finish(struct ops_builder *builder)
{
	struct ops_trace *trace;
	struct ops_error error;

	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static void test_like_the_oracle(void **state)
{
	size_t arrows = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct ops_builder *builder = new_builder();
		struct random random = {seed};
		uint32_t count = random_below(&random, EVENTS_MAX + 1);
		uint32_t keys = 2 + random_below(&random, 15);
		struct ops_trace *trace;
		size_t links;

		for (uint32_t i = 0; i < count; i++) {
			struct ops_new_event event = {
				OPS_NEW_EVENT,
				.start_ns = random_below(&random, 200),
				.track = random_below(&random, TRACKS),
				.forward_thread = random_below(&random, 2) ? random_below(&random, TRACKS + 1) : 0,
				.kind = random_below(&random, 10) ? OPS_EVENT_CPU_OP : OPS_EVENT_USER_ANNOTATION,
			};

			event.end_ns = event.start_ns + random_below(&random, 30);
			event.sequence_nr = (int64_t)random_below(&random, keys) * (seed % 3 ? 1 : 4096) - 1;
			ops_builder_event(builder, &event);
		}
		trace = finish(builder);
		compare(trace);
		ops_trace_links(trace, &links);
		arrows += links;
		ops_trace_unref(trace);
	}
	assert_true(arrows > 5000);
}

static void add(struct ops_builder *builder, uint32_t track, int64_t start_ns, int64_t end_ns, int64_t sequence_nr,
                uint32_t forward_thread)
{
	struct ops_new_event event = {
		OPS_NEW_EVENT, .start_ns = start_ns, .end_ns = end_ns, .track = track, .forward_thread = forward_thread,
	};

	event.sequence_nr = sequence_nr;
	ops_builder_event(builder, &event);
}

/* The inner of two forward operators; the node and not the wrapper around it; once, however often backward runs. */
static void test_as_autograd_does(void **state)
{
	struct ops_builder *builder = new_builder();
	struct ops_trace *trace;
	const struct ops_link *links;
	size_t count;

	(void)state;
	add(builder, 0, 0, 100, 7, 0);    /* linear */
	add(builder, 0, 10, 90, 7, 0);    /* addmm */
	add(builder, 1, 200, 300, 7, 1);  /* evaluate_function */
	add(builder, 1, 210, 290, 7, 1);  /* AddmmBackward0 */
	add(builder, 1, 410, 490, 7, 1);  /* retained, again */
	add(builder, 1, 500, 510, 7, 2);  /* another thread's 7 */
	trace = finish(builder);
	links = ops_trace_links(trace, &count);
	assert_int_equal(count, 1);
	assert_int_equal(links[0].from, 1);
	assert_int_equal(links[0].to, 3);
	ops_trace_unref(trace);
}

/* More keys than the smallest table, and one key for many rows. */
static void test_many(void **state)
{
	struct ops_builder *builder = new_builder();
	struct ops_trace *trace;
	size_t count;

	(void)state;
	for (int64_t i = 0; i < 5000; i++) {
		add(builder, 0, i * 10, i * 10 + 5, i, 0);
		add(builder, 1, 100000 + i * 10, 100000 + i * 10 + 5, 4999 - i, 1);
		add(builder, 2, i * 10, i * 10 + 5, 77, i % 2 ? 3 : 0);
	}
	trace = finish(builder);
	ops_trace_links(trace, &count);
	assert_int_equal(count, 5000 + 2500);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_oracle),
		cmocka_unit_test(test_as_autograd_does),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
