/* SPDX-License-Identifier: Apache-2.0
 *
 * write/overlap: what is marked, and that the other spans nest, on random traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "../trace/random.h"
#include "base/bits.h"
#include "trace/builder.h"
#include "write/overlap.h"

struct span {
	int64_t start_ns;
	int64_t end_ns;
	uint16_t flags;
	char expected; /* 'x' marked */
	uint8_t kind;
};

static struct ops_trace *make_trace(const struct span *spans, size_t count)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace = NULL;

	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 1});
	for (size_t i = 0; i < count; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = spans[i].start_ns,
		                                                   .end_ns = spans[i].end_ns, .flags = spans[i].flags,
		                                                   .kind = spans[i].kind});
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	return trace;
}

static void expect_marks(const struct span *spans, size_t count)
{
	struct ops_trace *trace = make_trace(spans, count);
	uint8_t *marks = ops_overlap_marks(trace, &(uint32_t){0}, 1);

	for (size_t i = 0; i < count; i++)
		assert_int_equal(ops_bit(marks, i), spans[i].expected == 'x');
	ops_free(marks);
	ops_trace_unref(trace);
}

#define EXPECT_MARKS(...)                                                                                              \
	expect_marks((const struct span[]){__VA_ARGS__}, sizeof((const struct span[]){__VA_ARGS__}) / sizeof(struct span))

static void known_shapes(void **state)
{
	const uint16_t async = OPS_EVENT_ASYNC;

	(void)state;
	EXPECT_MARKS({0, 100, 0, 0, 0}, {0, 50, 0, 0, 0}, {50, 100, 0, 0, 0}, {100, 100, 0, 0, 0}, {100, 120, 0, 0, 0});
	EXPECT_MARKS({0, 100, 0, 0, 0}, {50, 150, 0, 'x', 0}, {60, 90, 0, 0, 0});
	EXPECT_MARKS({0, 100, async, 'x', 0}, {50, 150, 0, 0, 0}, {60, 90, 0, 0, 0});
	EXPECT_MARKS({0, 100, 0, 0, 0}, {50, 150, async, 'x', 0}, {110, 160, 0, 0, 0});
	EXPECT_MARKS({0, 100, async, 0, 0}, {50, 90, async, 0, 0}, {60, 80, 0, 0, 0});
	EXPECT_MARKS({0, 100, async, 0, 0}, {50, 150, async, 'x', 0});
	EXPECT_MARKS({0, 100, async, 'x', 0}, {10, 90, async, 'x', 0}, {50, 150, 0, 0, 0});
	EXPECT_MARKS({0, 100, 0, 0, 0}, {40, 90, async, 0, 0}, {50, 150, 0, 'x', 0});
}

/* The frame that ends one step and begins the next gives way to both. */
static void frames_give_way(void **state)
{
	const uint8_t frame = OPS_EVENT_PYTHON_FUNCTION, range = OPS_EVENT_USER_ANNOTATION;

	(void)state;
	EXPECT_MARKS({0, 900, 0, 0, frame}, {0, 100, 0, 0, range}, {20, 80, 0, 0, frame}, {90, 110, 0, 'x', frame},
	             {95, 105, 0, 'x', frame}, {96, 99, 0, 0, frame}, {101, 200, 0, 0, range}, {102, 104, 0, 0, frame});
	EXPECT_MARKS({0, 100, 0, 'x', frame}, {10, 90, 0, 'x', frame}, {50, 150, 0, 0, range});
	EXPECT_MARKS({0, 100, 0, 'x', frame}, {50, 150, 0, 0, OPS_EVENT_CPU_OP});
	EXPECT_MARKS({0, 100, 0, 0, frame}, {50, 150, OPS_EVENT_ASYNC, 'x', range});
	EXPECT_MARKS({0, 100, 0, 0, range}, {10, 90, 0, 0, frame}, {50, 150, 0, 'x', range});
}

static void threads_are_apart(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace = NULL;
	uint8_t *marks;

	(void)state;
	for (int64_t i = 0; i < 3; i++)
		ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = i % 2});
	for (uint32_t i = 0; i < 3; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = i * 10, .end_ns = i * 10 + 25,
		                                                   .track = i});
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	/* The first track and the third are one row of the viewer. */
	marks = ops_overlap_marks(trace, (const uint32_t[]){0, 1, 0}, 2);
	assert_false(ops_bit(marks, 0));
	assert_false(ops_bit(marks, 1));
	assert_true(ops_bit(marks, 2));
	ops_free(marks);
	ops_trace_unref(trace);
}

static void what_is_left_nests(void **state)
{
	struct random random = {1};

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct span spans[60];
		size_t count = random_below(&random, 60);
		const struct ops_events *events;
		struct ops_trace *trace;
		uint8_t *marks;

		for (size_t i = 0; i < count; i++) {
			spans[i].start_ns = random_below(&random, 100);
			spans[i].end_ns = spans[i].start_ns + random_below(&random, 40);
			spans[i].flags = random_below(&random, 2) ? OPS_EVENT_ASYNC : 0;
			spans[i].kind = random_below(&random, 2) ? OPS_EVENT_PYTHON_FUNCTION : OPS_EVENT_USER_ANNOTATION;
		}
		trace = make_trace(spans, count);
		events = ops_trace_events(trace);
		marks = ops_overlap_marks(trace, &(uint32_t){0}, 1);
		for (size_t a = 0; a < count; a++)
			for (size_t b = a + 1; b < count; b++)
				if (!ops_bit(marks, a) && !ops_bit(marks, b))
					assert_true(events->start_ns[b] >= events->end_ns[a] ||
					            events->end_ns[b] <= events->end_ns[a]);
		ops_free(marks);
		ops_trace_unref(trace);
	}
}

static void mark_failing(void *context)
{
	ops_free(ops_overlap_marks(context, &(uint32_t){0}, 1));
}

static void survives_every_failure(void **state)
{
	struct ops_trace *trace = make_trace((const struct span[]){{0, 10, 0, 0, 0}, {2, 8, 0, 0, 0}}, 2);

	(void)state;
	assert_int_equal(fail_each(mark_failing, trace), 3);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_shapes),
		cmocka_unit_test(frames_give_way),
		cmocka_unit_test(threads_are_apart),
		cmocka_unit_test(what_is_left_nests),
		cmocka_unit_test(survives_every_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
