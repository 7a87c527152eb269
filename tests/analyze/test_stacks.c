/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/stacks, and averages by stack: the functions around an event, and the stacks of backward events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

static void scene_python(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event event = scene_event(b, track, name, start_ns, end_ns);

	event.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(b, &event);
}

/* An operator with a sequence number; `forward_thread` and `scope` as a backward node has them. */
static void scene_autograd(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns, int64_t end_ns,
                           int64_t sequence_nr, uint32_t forward_thread, uint8_t scope)
{
	struct ops_new_event event = scene_event(b, track, name, start_ns, end_ns);

	event.sequence_nr = sequence_nr;
	event.forward_thread = forward_thread;
	event.scope = scope;
	ops_builder_event(b, &event);
}

static struct ops_stacks *stacks_of(const struct ops_trace *trace)
{
	struct ops_stacks *stacks = NULL;

	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_int_equal(ops_stacks_new(trace, &stacks, NULL), OPS_OK);
	return stacks;
}

/* The frames of the event of that name, the innermost first, with '|' between. */
static void assert_stack(const struct ops_trace *trace, const struct ops_stacks *stacks, const char *name,
                         const char *expected)
{
	size_t count;
	const struct ops_frame *frames = ops_stack_frames(stacks, &count);
	uint32_t chain = ops_stack_of(stacks, scene_row(trace, name));
	char text[512] = "";

	for (; chain != 0; chain = frames[chain].caller) {
		assert_in_range(chain, 1, count - 1);
		assert_true(frames[chain].caller < chain);
		assert_true(frames[chain].name < ops_stack_name_count(stacks));
		strcat(strcat(text, *text ? "|" : ""), ops_stack_text(stacks, frames[chain].name).bytes);
	}
	assert_string_equal(text, expected);
}

static void functions_around_an_event(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_stacks *stacks;
	struct ops_trace *trace;
	size_t count;

	(void)state;
	scene_python(b, 0, "main", 0, 1000);
	scene_range(b, 0, "range", 10, 900);
	scene_python(b, 0, "step", 20, 500);
	scene_op(b, 0, "outer", 30, 100);
	scene_op(b, 0, "inner", 40, 50);
	scene_python(b, 0, "called back", 60, 80);
	scene_op(b, 0, "innermost", 65, 70);
	scene_op(b, 0, "after", 600, 700);
	scene_op(b, 1, "elsewhere", 35, 45);
	scene_memory(b, 1, 2000, 8, 0);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_stack(trace, stacks, "main", "");
	assert_stack(trace, stacks, "range", "main");
	assert_stack(trace, stacks, "step", "main");
	assert_stack(trace, stacks, "outer", "step|main");
	assert_stack(trace, stacks, "inner", "step|main");
	assert_stack(trace, stacks, "called back", "step|main");
	assert_stack(trace, stacks, "innermost", "called back|step|main");
	assert_stack(trace, stacks, "after", "main");
	assert_stack(trace, stacks, "elsewhere", "");
	assert_int_equal(ops_stack_of(stacks, 0 | OPS_MEMORY_REF), 0);
	/* Equal chains are one: none, main, main → step, main → step → called back. */
	ops_stack_frames(stacks, &count);
	assert_int_equal(count, 4);
	assert_true(ops_trace_has_stacks(trace));
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

static void no_functions(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_stacks *stacks;
	struct ops_trace *trace = scene_close(scene_open());

	(void)state;
	stacks = stacks_of(trace);
	assert_false(ops_trace_has_stacks(trace));
	ops_stacks_free(stacks);
	ops_trace_unref(trace);

	scene_op(b, 0, "a", 0, 10);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_stack(trace, stacks, "a", "");
	assert_false(ops_trace_has_stacks(trace));
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

/* In torch's files a range begins in `__enter__` and ends in `__exit__`: it cuts through both. */
static void ranges_that_cut_through_functions(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_stacks *stacks;
	struct ops_trace *trace;

	(void)state;
	scene_python(b, 0, "main", 0, 1000);
	scene_python(b, 0, "enter", 10, 100);
	scene_range(b, 0, "range", 50, 550);
	scene_python(b, 0, "helper", 60, 80);
	scene_op(b, 0, "work", 200, 300);
	scene_python(b, 0, "exit", 500, 600);
	scene_op(b, 0, "late", 570, 580);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_stack(trace, stacks, "range", "enter|main");
	assert_stack(trace, stacks, "helper", "enter|main");
	assert_stack(trace, stacks, "work", "main");
	assert_stack(trace, stacks, "late", "exit|main");
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

static void functions_that_torch_leaves_out(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_stacks *stacks;
	struct ops_trace *trace;

	(void)state;
	scene_python(b, 0, "torch/_tensor.py(5): backward", 0, 1000);
	scene_python(b, 0, "torch/autograd/__init__.py(5): backward", 10, 900);
	scene_python(b, 0, "torch/autograd/__init__.py(9): grad", 20, 800);
	scene_python(b, 0, "torch/autograd/__init__.py(7): _make_grads", 30, 100);
	scene_op(b, 0, "op", 40, 50);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_stack(trace, stacks, "op", "torch/autograd/__init__.py(9): grad|torch/_tensor.py(5): backward");
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

/* main ─ forward ─ a, mm (number 5), and main ─ backward with the nodes, on the other track.
 * `scoped`: the nodes have their scope, as in a recording; else they are known by arrows and names, as in a file. */
static struct ops_trace *training(bool scoped)
{
	struct ops_builder *b = scene_open();
	uint8_t node = scoped ? 1 : 0;

	scene_python(b, 0, "main", 0, 1000);
	scene_python(b, 0, "helper", 5, 40);
	scene_autograd(b, 0, "stale", 10, 30, 5, 0, 0); /* has the number, but made no node */
	scene_python(b, 0, "forward", 50, 400);
	scene_autograd(b, 0, "linear", 60, 300, 5, 0, 0);
	scene_python(b, 0, "hook", 70, 290);
	scene_autograd(b, 0, "mm", 80, 200, 5, 0, 0);
	scene_python(b, 1, "engine", 450, 990);
	scene_autograd(b, 1, "autograd::engine::evaluate_function: MmBackward", 500, 600, 5, 1, 0);
	scene_autograd(b, 1, "MmBackward", 510, 590, 5, 1, node);
	scene_op(b, 1, "in node", 520, 580);
	scene_python(b, 1, "user's backward", 530, 570);
	scene_op(b, 1, "in user's", 540, 550);
	scene_autograd(b, 1, "autograd::engine::evaluate_function: LostBackward", 610, 700, 99, 1, 0);
	scene_autograd(b, 1, "LostBackward", 620, 690, 99, 1, node);
	scene_op(b, 1, "in lost", 630, 640);
	scene_autograd(b, 1, "autograd::engine::evaluate_function: Accumulate", 710, 800, -1, 0, 0);
	scene_autograd(b, 1, "Accumulate", 720, 790, -1, 0, node);
	scene_op(b, 1, "in accumulate", 730, 740);
	scene_op(b, 1, "apart", 900, 950);
	return scene_close(b);
}

static void backward_events_have_the_stack_of_their_forward_operator(void **state)
{
	(void)state;
	for (int scoped = 0; scoped < 2; scoped++) {
		struct ops_trace *trace = training(scoped);
		struct ops_stacks *stacks = stacks_of(trace);

		assert_stack(trace, stacks, "autograd::engine::evaluate_function: MmBackward", "engine");
		assert_stack(trace, stacks, "MmBackward", "hook|forward|main");
		assert_stack(trace, stacks, "in node", "hook|forward|main");
		assert_stack(trace, stacks, "user's backward", "hook|forward|main");
		assert_stack(trace, stacks, "in user's", "hook|forward|main");
		assert_stack(trace, stacks, "LostBackward", "engine");
		assert_stack(trace, stacks, "in lost", "engine");
		assert_stack(trace, stacks, "autograd::engine::evaluate_function: Accumulate", "engine");
		assert_stack(trace, stacks, "Accumulate", "");
		assert_stack(trace, stacks, "in accumulate", "");
		assert_stack(trace, stacks, "apart", "engine");
		ops_stacks_free(stacks);
		ops_trace_unref(trace);
	}
}

/* The first backward pass may have a backward pass, too. */
static void backward_of_backward(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_stacks *stacks;
	struct ops_trace *trace;

	(void)state;
	scene_python(b, 0, "forward", 0, 100);
	scene_autograd(b, 0, "pow", 10, 90, 1, 0, 0);
	scene_python(b, 0, "engine", 200, 900);
	scene_autograd(b, 0, "PowBackward", 210, 400, 1, 1, 1);
	scene_autograd(b, 0, "mul", 220, 390, 2, 0, 0);
	scene_autograd(b, 0, "MulBackward", 500, 600, 2, 1, 1);
	scene_op(b, 0, "in second", 510, 520);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_stack(trace, stacks, "mul", "forward");
	assert_stack(trace, stacks, "MulBackward", "forward");
	assert_stack(trace, stacks, "in second", "forward");
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

static void call_stacks_of_files(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event;
	struct ops_stacks *stacks;
	struct ops_trace *trace;

	(void)state;
	for (int i = 0; i < 2; i++) {
		event = scene_event(b, 0, i ? "second" : "first", i * 100, i * 100 + 50);
		event.call_stack = scene_string(b, "a.py(1): inner;;torch/autograd/__init__.py(2): backward;first;");
		ops_builder_event(b, &event);
	}
	event = scene_event(b, 0, "unterminated", 200, 250);
	event.call_stack = scene_string(b, "a.py(1): inner;first");
	ops_builder_event(b, &event);
	event = scene_event(b, 0, "empty", 300, 350);
	event.call_stack = scene_string(b, ";");
	ops_builder_event(b, &event);
	scene_op(b, 0, "none", 400, 450);
	trace = scene_close(b);
	stacks = stacks_of(trace);
	assert_true(ops_trace_has_stacks(trace));
	assert_stack(trace, stacks, "first", "a.py(1): inner|first");
	assert_stack(trace, stacks, "second", "a.py(1): inner|first");
	assert_stack(trace, stacks, "unterminated", "a.py(1): inner|first");
	assert_stack(trace, stacks, "empty", "");
	assert_stack(trace, stacks, "none", "");
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

/* The rows that ops_stack_rows names for one event, by their names. */
static void assert_rows(const struct ops_trace *trace, const char *name, const char *expected)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t refs[] = {0 | OPS_MEMORY_REF, scene_row(trace, name), OPS_NONE}, *rows;
	char text[512] = "";
	size_t count;

	assert_int_equal(ops_stack_rows(trace, refs, 3, &rows, &count, NULL), OPS_OK);
	for (size_t i = 0; i < count; i++)
		strcat(strcat(text, i ? "|" : ""), ops_trace_string(trace, events->name[rows[i]]).bytes);
	assert_string_equal(text, expected);
	ops_free(rows);
}

static void rows_that_make_a_stack(void **state)
{
	struct ops_trace *trace = training(true);

	(void)state;
	assert_rows(trace, "main", "main");
	assert_rows(trace, "stale", "main|helper|stale");
	assert_rows(trace, "in user's",
	            "main|forward|linear|hook|mm|engine|autograd::engine::evaluate_function: MmBackward|MmBackward|in node|"
	            "user's backward|in user's");
	ops_trace_unref(trace);
}

/* --- averages ----------------------------------------------------------------------------------------------------- */

/* mm called from main → a → shared, main → b → shared and main → a. */
static struct ops_trace *calls(void)
{
	struct ops_builder *b = scene_open();

	scene_python(b, 0, "main", 0, 1000);
	for (int i = 0; i < 4; i++) {
		scene_python(b, 0, i % 2 ? "b" : "a", i * 100, i * 100 + 90);
		scene_python(b, 0, "shared", i * 100 + 10, i * 100 + 60);
		scene_op(b, 0, "mm", i * 100 + 20, i * 100 + 30);
		scene_op(b, 0, "mm", i * 100 + 70, i * 100 + 80);
	}
	return scene_close(b);
}

/* "count×frames …" of the rows of mm. */
static void assert_groups(const struct ops_trace *trace, uint32_t innermost, bool by_shape, const char *expected)
{
	struct ops_averages_options options = {.by_stack_frames = innermost, .by_input_shape = by_shape};
	struct ops_event_costs costs;
	struct ops_average *rows;
	char text[512] = "";
	size_t count, ref_count, frame_count;
	const struct ops_frame *frames;
	struct ops_stacks *stacks = stacks_of(trace);
	uint32_t *refs;

	options.stacks = stacks;
	frames = ops_stack_frames(stacks, &frame_count);
	assert_int_equal(ops_function_events(trace, &refs, &ref_count, NULL), OPS_OK);
	assert_int_equal(ops_event_costs_init(&costs, trace, false, NULL), OPS_OK);
	assert_int_equal(ops_averages(trace, &costs, refs, ref_count, &options, &rows, &count, NULL), OPS_OK);
	for (size_t i = 0; i < count; i++) {
		uint32_t chain = ops_stack_of(stacks, rows[i].first);

		assert_int_equal(rows[i].stack_frames, innermost);
		if (strcmp(ops_average_name(trace, &rows[i]).bytes, "mm") != 0)
			continue;
		sprintf(text + strlen(text), "%s%d", *text ? " " : "", (int)rows[i].count);
		for (uint32_t n = 0; n < rows[i].stack_frames && chain != 0; n++, chain = frames[chain].caller)
			strcat(strcat(text, n ? "|" : ":"), ops_stack_text(stacks, frames[chain].name).bytes);
	}
	assert_string_equal(text, expected);
	ops_free(rows);
	ops_event_costs_release(&costs);
	ops_free(refs);
	ops_stacks_free(stacks);
}

static void averages_by_innermost_frames(void **state)
{
	struct ops_trace *trace = calls();

	(void)state;
	for (int by_shape = 0; by_shape < 2; by_shape++) {
		assert_groups(trace, 0, by_shape, "8");
		assert_groups(trace, 1, by_shape, "4:shared 2:a 2:b");
		assert_groups(trace, 2, by_shape, "2:shared|a 2:a|main 2:shared|b 2:b|main");
		assert_groups(trace, 3, by_shape, "2:shared|a|main 2:a|main 2:shared|b|main 2:b|main");
		assert_groups(trace, 1000000, by_shape, "2:shared|a|main 2:a|main 2:shared|b|main 2:b|main");
	}
	ops_trace_unref(trace);
}

/* --- much of it --------------------------------------------------------------------------------------------------- */

/* A chain of a hundred thousand frames, and as many next to each other. */
static void deep_and_wide(void **state)
{
	enum { MANY = 100000 };
	struct ops_builder *b = scene_open();
	struct ops_averages_options options = {.by_stack_frames = 3};
	struct ops_event_costs costs = {0};
	struct ops_stacks *stacks;
	struct ops_average *rows;
	struct ops_trace *trace;
	size_t count, ref_count;
	uint32_t *refs, chain;
	char name[32];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%d", i % 7);
		scene_python(b, 0, name, i, 2 * MANY - i);
		snprintf(name, sizeof(name), "g%d", i);
		scene_python(b, 1, name, 2 * i, 2 * i + 1);
	}
	trace = scene_close(b);
	stacks = stacks_of(trace);
	ops_stack_frames(stacks, &count);
	assert_int_equal(count, 2 * MANY + 1);
	chain = ops_stack_of(stacks, scene_row(trace, "g99999"));
	assert_int_equal(chain, 0);
	assert_int_equal(ops_function_events(trace, &refs, &ref_count, NULL), OPS_OK);
	options.stacks = stacks;
	assert_int_equal(ops_averages(trace, &costs, refs, ref_count, &options, &rows, &count, NULL), OPS_OK);
	/* g: each its own. f: the first seven with fewer callers, then one a name. */
	assert_int_equal(count, MANY + 3 + 7);
	ops_free(rows);
	ops_free(refs);
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

struct work {
	struct ops_trace *trace;
};

static void make_everything(void *context)
{
	const struct ops_trace *trace = ((struct work *)context)->trace;
	struct ops_averages_options options = {.by_stack_frames = 2};
	struct ops_event_costs costs = {0};
	struct ops_stacks *stacks = NULL;
	struct ops_average *rows = NULL;
	struct ops_error error;
	uint32_t refs[] = {1, 2, 3}, *needed = NULL;
	size_t count = 77;

	if (ops_stack_rows(trace, refs, 3, &needed, &count, &error)) {
		assert_int_equal(error.code, OPS_NO_MEMORY);
		assert_int_equal(count, 77);
	}
	ops_free(needed);
	if (ops_stacks_new(trace, &stacks, &error)) {
		assert_int_equal(error.code, OPS_NO_MEMORY);
		assert_null(stacks);
		return;
	}
	options.stacks = stacks;
	if (ops_averages(trace, &costs, refs, 3, &options, &rows, &count, &error))
		assert_int_equal(error.code, OPS_NO_MEMORY);
	else
		assert_int_equal(count, 3);
	ops_free(rows);
	ops_stacks_free(stacks);
}

static void survives_failing_allocations(void **state)
{
	struct ops_builder *b = scene_open();
	struct work work;
	char name[32];

	(void)state;
	for (int i = 0; i < 700; i++) {
		struct ops_new_event event;

		snprintf(name, sizeof(name), "f%d", i);
		scene_python(b, 0, name, i * 100, i * 100 + 90);
		event = scene_event(b, 0, "op", i * 100 + 10, i * 100 + 20);
		snprintf(name, sizeof(name), "x%d;y;", i);
		event.call_stack = i % 2 ? scene_string(b, name) : OPS_NONE;
		ops_builder_event(b, &event);
	}
	work.trace = scene_close(b);
	assert_in_range(fail_each(make_everything, &work), 20, 200);
	ops_trace_unref(work.trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_around_an_event),
		cmocka_unit_test(no_functions),
		cmocka_unit_test(ranges_that_cut_through_functions),
		cmocka_unit_test(functions_that_torch_leaves_out),
		cmocka_unit_test(backward_events_have_the_stack_of_their_forward_operator),
		cmocka_unit_test(backward_of_backward),
		cmocka_unit_test(call_stacks_of_files),
		cmocka_unit_test(rows_that_make_a_stack),
		cmocka_unit_test(averages_by_innermost_frames),
		cmocka_unit_test(deep_and_wide),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
