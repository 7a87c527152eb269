/* SPDX-License-Identifier: Apache-2.0
 *
 * Order, tree, folding and self times, compared with a slow oracle that follows the definitions literally, on random events: with
 * few distinct times, so that ties, partial overlaps and empty events are frequent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "trace/builder.h"

#define EVENTS_MAX 48
#define TRACKS 3
#define STOP_NS 60

struct oracle {
	size_t count;
	struct ops_new_event events[EVENTS_MAX];
	uint32_t parent[EVENTS_MAX];
	int64_t self_ns[EVENTS_MAX];
	int64_t ends_ns[EVENTS_MAX]; /* where a later event closes it */
	bool hidden[EVENTS_MAX];
	bool takes[EVENTS_MAX];
	bool removed[EVENTS_MAX];
	uint32_t aten_is_leaf;
};

/* --- the oracle ----------------------------------------------------------------------------------------------------- */

static bool comes_before(const struct ops_new_event *a, const struct ops_new_event *b)
{
	return a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->end_ns > b->end_ns);
}

static void sort_events(struct oracle *o)
{
	for (size_t i = 1; i < o->count; i++)
		for (size_t at = i; at > 0 && comes_before(&o->events[at], &o->events[at - 1]); at--) {
			struct ops_new_event event = o->events[at];

			o->events[at] = o->events[at - 1];
			o->events[at - 1] = event;
		}
}

static bool elsewhere(const struct ops_new_event *event)
{
	return event->end_track != OPS_NONE && event->end_track != event->track;
}

static void find_parents(struct oracle *o, uint32_t track)
{
	uint32_t stack[EVENTS_MAX];
	size_t depth = 0;

	for (uint32_t i = 0; i < o->count; i++) {
		const struct ops_new_event *event = &o->events[i];

		if (event->track != track || !o->takes[i])
			continue;
		o->ends_ns[i] = event->end_ns;
		while (depth && (event->start_ns >= o->events[stack[depth - 1]].end_ns ||
		                 event->end_ns > o->events[stack[depth - 1]].end_ns)) {
			depth--;
			if (event->start_ns < o->ends_ns[stack[depth]])
				o->ends_ns[stack[depth]] = event->start_ns;
		}
		o->parent[i] = depth ? stack[depth - 1] : OPS_NONE;
		stack[depth++] = i;
	}
}

static size_t child_count(const struct oracle *o, uint32_t parent)
{
	size_t children = 0;

	for (size_t i = 0; i < o->count; i++)
		children += o->takes[i] && !o->removed[i] && o->parent[i] == parent;
	return children;
}

static bool folds(const struct oracle *o, size_t i)
{
	uint32_t parent = o->parent[i];

	return o->takes[i] && !o->removed[i] && parent != OPS_NONE && o->events[i].kind == OPS_EVENT_CPU_OP &&
	       o->events[parent].kind == OPS_EVENT_CPU_OP && o->events[i].name == o->events[parent].name &&
	       child_count(o, parent) == 1;
}

/* Removes one after the other until nothing changes. */
static void fold(struct oracle *o)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < o->count; i++) {
			if (!folds(o, i))
				continue;
			o->removed[i] = changed = true;
			for (size_t j = 0; j < o->count; j++)
				if (o->parent[j] == i)
					o->parent[j] = o->parent[i];
		}
	}
}

/* Returns whether a child of event `i` runs in the nanosecond from `at`. */
static bool in_child(const struct oracle *o, uint32_t i, int64_t at)
{
	for (size_t j = 0; j < o->count; j++)
		if (o->takes[j] && !o->removed[j] && o->parent[j] == i && o->events[j].start_ns <= at && at < o->ends_ns[j])
			return true;
	return false;
}

static void solve(struct oracle *o)
{
	sort_events(o);
	for (size_t i = 0; i < o->count; i++) {
		const struct ops_new_event *event = &o->events[i];

		o->parent[i] = OPS_NONE;
		o->removed[i] = false;
		o->hidden[i] = (event->kind == OPS_EVENT_CPU_OP && event->name == o->aten_is_leaf) ||
		               event->kind == OPS_EVENT_TRACE || event->kind == OPS_EVENT_MARK;
		o->takes[i] = !o->hidden[i] && event->kind != OPS_EVENT_CPU_INSTANT && !(event->flags & OPS_EVENT_ASYNC) &&
		              !elsewhere(event);
	}
	for (uint32_t track = 0; track < TRACKS; track++)
		find_parents(o, track);
	fold(o);
	for (uint32_t i = 0; i < o->count; i++) {
		o->self_ns[i] = 0;
		if (!o->takes[i] || o->removed[i])
			continue;
		for (int64_t at = o->events[i].start_ns; at < o->ends_ns[i]; at++)
			o->self_ns[i] += !in_child(o, i, at);
	}
}

/* --- random events -------------------------------------------------------------------------------------------------- */

static struct ops_new_event random_event(struct random *random, const uint32_t *names, size_t number)
{
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.start_ns = random_below(random, STOP_NS),
		.name = names[random_below(random, 4)],
		.track = random_below(random, TRACKS),
		.id = number + 1,
		.kind = (uint8_t)(random_below(random, 3) ? OPS_EVENT_CPU_OP : random_below(random, OPS_EVENT_KIND_COUNT)),
	};
	uint32_t longest = (uint32_t)(STOP_NS - event.start_ns);

	event.end_ns = event.start_ns + (random_below(random, 6) ? random_below(random, longest + 1) : 0);
	if (event.kind == OPS_EVENT_CPU_INSTANT || event.kind == OPS_EVENT_MARK)
		event.end_ns = event.start_ns;
	else if (random_below(random, 12) == 0)
		event.end_ns = STOP_NS, event.flags |= OPS_EVENT_UNFINISHED;
	if (random_below(random, 15) == 0)
		event.flags |= OPS_EVENT_ASYNC;
	if (random_below(random, 15) == 0)
		event.end_track = random_below(random, TRACKS);
	return event;
}

static struct ops_builder *new_builder(void)
{
	struct ops_builder *builder = ops_builder_new();

	for (uint32_t track = 0; track < TRACKS; track++)
		ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = track, .number = track + 1});
	ops_builder_info(builder, &(struct ops_trace_info){.stop_ns = STOP_NS});
	return builder;
}

static struct ops_trace *random_trace(uint64_t seed, struct oracle *o)
{
	struct ops_builder *builder = new_builder();
	struct random random = {seed};
	uint32_t names[4] = {ops_builder_string(builder, "a", 1), ops_builder_string(builder, "b", 1),
	                     ops_builder_string(builder, "aten::is_leaf", 13), 0};
	struct ops_trace *trace;

	names[3] = names[0];
	o->aten_is_leaf = names[2];
	o->count = random_below(&random, EVENTS_MAX + 1);
	for (size_t i = 0; i < o->count; i++) {
		o->events[i] = random_event(&random, names, i);
		ops_builder_event(builder, &o->events[i]);
	}
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	return trace;
}

static void compare(const struct ops_trace *trace, const struct oracle *o)
{
	const struct ops_events *e = ops_trace_events(trace);

	assert_int_equal(e->count, o->count);
	for (size_t i = 0; i < o->count; i++) {
		const struct ops_new_event *event = &o->events[i];
		uint16_t flags = event->flags;

		flags |= elsewhere(event) ? OPS_EVENT_ASYNC : 0;
		flags |= o->hidden[i] ? OPS_EVENT_HIDDEN : 0;
		flags |= o->removed[i] ? OPS_EVENT_FOLDED : 0;
		assert_int_equal(e->id[i], event->id);
		assert_int_equal(e->start_ns[i], event->start_ns);
		assert_int_equal(e->end_ns[i], event->end_ns);
		assert_int_equal(e->name[i], event->name);
		assert_int_equal(e->kind[i], event->kind);
		assert_int_equal(e->track[i], event->track);
		assert_int_equal(e->flags[i], flags);
		assert_int_equal(e->parent[i], o->parent[i]);
		assert_int_equal(e->self_ns[i], o->self_ns[i]);
		if (e->end_track)
			assert_int_equal(e->end_track[i], elsewhere(event) ? event->end_track : event->track);
	}
}

static void test_like_the_oracle(void **state)
{
	struct oracle o;
	size_t folded = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct ops_trace *trace = random_trace(seed, &o);
		struct ops_error error;

		solve(&o);
		compare(trace, &o);
		if (ops_trace_check(trace, &error))
			fail_msg("seed %d: %s", (int)seed, error.text);
		for (size_t i = 0; i < o.count; i++)
			folded += o.removed[i];
		ops_trace_unref(trace);
	}
	assert_true(folded > 500); /* the random events do fold */
}

/* --- cases by hand -------------------------------------------------------------------------------------------------- */

struct simple {
	const char *name;
	int64_t start_ns;
	int64_t end_ns;
	uint8_t kind;
};

static struct ops_trace *simple_trace(const struct simple *events, size_t count)
{
	struct ops_builder *builder = new_builder();
	struct ops_trace *trace;

	for (size_t i = 0; i < count; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = events[i].start_ns,
		                                                   .end_ns = events[i].end_ns, .kind = events[i].kind,
		                                                   .name = ops_builder_string(builder, events[i].name,
		                                                                              strlen(events[i].name))});
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	return trace;
}

/* An operator that redispatches to itself is one; what it calls then hangs below the one that stays. */
static void test_folds_redispatch(void **state)
{
	const struct simple events[] = {
		{"f", 0, 100, 0}, {"f", 10, 90, 0}, {"f", 20, 80, 0}, {"g", 30, 40, 0}, {"g", 50, 60, 0},
	};
	struct ops_trace *trace = simple_trace(events, 5);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->flags[0], 0);
	assert_int_equal(e->flags[1], OPS_EVENT_FOLDED);
	assert_int_equal(e->flags[2], OPS_EVENT_FOLDED);
	for (size_t row = 1; row < 5; row++)
		assert_int_equal(e->parent[row], 0);
	assert_int_equal(e->self_ns[0], 80);
	assert_int_equal(e->self_ns[1], 0);
	assert_int_equal(e->self_ns[3], 10);
	ops_trace_unref(trace);
}

/* A user's recursion stays, and so do names that torch hides when a user gives them. */
static void test_keeps_names_of_users(void **state)
{
	const struct simple events[] = {
		{"rec", 0, 100, OPS_EVENT_USER_ANNOTATION},
		{"rec", 10, 90, OPS_EVENT_USER_ANNOTATION},
		{"aten::is_leaf", 20, 80, OPS_EVENT_USER_ANNOTATION},
		{"aten::is_leaf", 30, 70, OPS_EVENT_CPU_OP},
		{"[memory]", 40, 60, OPS_EVENT_CPU_OP},
	};
	struct ops_trace *trace = simple_trace(events, 5);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->flags[1], 0);
	assert_int_equal(e->parent[1], 0);
	assert_int_equal(e->flags[2], 0);
	assert_int_equal(e->flags[3], OPS_EVENT_HIDDEN);
	assert_int_equal(e->flags[4], 0);
	assert_int_equal(e->parent[4], 2);
	assert_int_equal(e->self_ns[2], 40);
	ops_trace_unref(trace);
}

/* What only partly overlaps ends the rows below it, also for those that come later, and has their time from there on. */
static void test_partial_overlap(void **state)
{
	const struct simple events[] = {{"a", 0, 50, 0}, {"b", 40, 60, 0}, {"c", 45, 50, 0}, {"d", 55, 58, 0}};
	struct ops_trace *trace = simple_trace(events, 4);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->parent[1], OPS_NONE);
	assert_int_equal(e->parent[2], 1);
	assert_int_equal(e->parent[3], 1);
	assert_int_equal(e->self_ns[0], 40);
	assert_int_equal(e->self_ns[1], 12);
	ops_trace_unref(trace);
}

/* A step that ends in the function that begins the next one leaves what runs in a function to it. */
static void test_steps_between_functions(void **state)
{
	const struct simple rows[] = {
		{"main", 0, 100, OPS_EVENT_PYTHON_FUNCTION}, {"train", 0, 40, OPS_EVENT_PYTHON_FUNCTION},
		{"ProfilerStep#1", 30, 80, OPS_EVENT_USER_ANNOTATION}, {"zero_grad", 32, 38, OPS_EVENT_CPU_OP},
		{"train", 45, 90, OPS_EVENT_PYTHON_FUNCTION}, {"mm", 50, 70, OPS_EVENT_CPU_OP},
		{"ProfilerStep#2", 80, 95, OPS_EVENT_USER_ANNOTATION}, {"zero_grad", 82, 88, OPS_EVENT_CPU_OP},
	};
	static const uint32_t parents[] = {OPS_NONE, 0, OPS_NONE, 1, 0, 4, OPS_NONE, 4};
	static const int64_t self_ns[] = {15, 34, 0, 6, 19, 20, 0, 6};
	struct ops_trace *trace = simple_trace(rows, 8);

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(ops_trace_events(trace)->parent[i], parents[i]);
		assert_int_equal(ops_trace_events(trace)->self_ns[i], self_ns[i]);
	}
	ops_trace_unref(trace);
}

/* Ranges of coroutines that take turns overlap: no time counts in two of them. */
static void test_children_that_overlap(void **state)
{
	const struct simple events[] = {{"loop", 0, 100, 0}, {"a", 10, 80, 0}, {"b", 20, 90, 0}, {"c", 30, 60, 0},
	                                {"d", 85, 95, 0}};
	struct ops_trace *trace = simple_trace(events, 5);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->parent[1], 0);
	assert_int_equal(e->parent[2], 0);
	assert_int_equal(e->parent[3], 2);
	assert_int_equal(e->parent[4], 0);
	assert_int_equal(e->self_ns[0], 15);
	assert_int_equal(e->self_ns[1], 10);
	assert_int_equal(e->self_ns[2], 35);
	ops_trace_unref(trace);
}

/* A file may have times that are further apart than a number of nanoseconds goes. */
static void test_no_time_is_negative(void **state)
{
	const struct simple events[] = {{"a", INT64_MIN, INT64_MAX, 0}, {"b", INT64_MIN, INT64_MAX - 1, 0}, {"c", 5, 7, 0}};
	struct ops_trace *trace = simple_trace(events, 3);
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->parent[1], 0);
	assert_int_equal(e->self_ns[0], 0);
	assert_int_equal(e->self_ns[1], INT64_MAX - 2);
	ops_trace_unref(trace);
}

static void test_empty(void **state)
{
	struct ops_trace *trace = simple_trace(NULL, 0);

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 0);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_oracle),
		cmocka_unit_test(test_folds_redispatch),
		cmocka_unit_test(test_keeps_names_of_users),
		cmocka_unit_test(test_partial_overlap),
		cmocka_unit_test(test_steps_between_functions),
		cmocka_unit_test(test_children_that_overlap),
		cmocka_unit_test(test_no_time_is_negative),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
