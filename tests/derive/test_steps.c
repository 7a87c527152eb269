/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a trace: marked by rows, or derived from optimizers, data loaders and loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "derive/steps.h"

#define BATCH "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define ADAM "Optimizer.step#Adam.step"

struct range {
	const char *name;
	int start_us, end_us;
	int tid, pid;
};

struct made {
	struct ops_trace *trace;
	struct ops_steps steps;
};

static const char *category_of(const char *name)
{
	return strstr(name, "::") ? "cpu_op" : strstr(name, "nn.Module") || strstr(name, ".py(") ? "python_function" : "user_annotation";
}

/* Names with "::" are operators, those of modules and of files Python functions, others annotations. */
static struct made find_with(const char *metadata, const struct range *ranges, size_t count)
{
	char json[16384];
	size_t size = (size_t)snprintf(json, sizeof(json), "{%s\"traceEvents\": [", metadata);
	struct made made;

	for (size_t i = 0; i < count; i++) {
		const struct range *range = &ranges[i];

		size += (size_t)snprintf(json + size, sizeof(json) - size,
		                         "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %d, \"dur\": %d, \"pid\": %d, \"tid\": %d}",
		                         i ? ", " : "", category_of(range->name), range->name, range->start_us, range->end_us - range->start_us,
		                         range->pid, range->tid);
		assert_true(size < sizeof(json));
	}
	size += (size_t)snprintf(json + size, sizeof(json) - size, "]}");
	assert_int_equal(ops_trace_read_memory(json, size, NULL, &made.trace, NULL), OPS_OK);
	assert_non_null(ops_steps_of(made.trace));
	made.steps = *ops_steps_of(made.trace);
	return made;
}

static struct made find(const struct range *ranges, size_t count)
{
	return find_with("", ranges, count);
}

static void release(struct made *made)
{
	ops_trace_unref(made->trace);
}

#define FIND(ranges) find(ranges, sizeof(ranges) / sizeof(*(ranges)))

static void assert_step(const struct made *made, size_t i, int64_t number, int start_us, int end_us)
{
	const struct ops_step *step = &made->steps.list.items[i];
	int64_t origin_ns = ops_trace_events(made->trace)->start_ns[0];
	char text[24];

	assert_true(i < made->steps.list.count);
	assert_int_equal(step->number, number);
	assert_int_equal((step->start_ns - origin_ns) / 1000, start_us);
	assert_int_equal((step->end_ns - origin_ns) / 1000, end_us);
	snprintf(text, sizeof(text), "%d", (int)number);
	assert_string_equal(step->text, text);
}

static void marks_count_alone(void **state)
{
	static const struct range ranges[] = {{"aten::mm", 0, 5, 1, 1},          {"ProfilerStep#7", 10, 20, 1, 1},
	                                      {ADAM, 15, 19, 1, 1},               {"ProfilerStep#8", 20, 30, 1, 1},
	                                      {ADAM, 25, 29, 1, 1}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.source, OPS_STEPS_MARKED);
	assert_int_equal(made.steps.list.count, 2);
	assert_step(&made, 0, 7, 10, 20);
	assert_int_equal(made.steps.list.items[0].row, 1);
	assert_step(&made, 1, 8, 20, 30);
	release(&made);
}

/* 98 % are nearly all of the trace. */
static void sums_differ_if_steps_are_part_of_the_trace(void **state)
{
	static const struct range less[] = {{"aten::mm", 0, 2, 1, 1}, {"ProfilerStep#7", 3, 60, 1, 1}, {"ProfilerStep#8", 60, 100, 1, 1}};
	static const struct range all[] = {{"aten::mm", 0, 1, 1, 1}, {"ProfilerStep#7", 2, 60, 1, 1}, {"ProfilerStep#8", 60, 100, 1, 1}};
	static const struct range none[] = {{"aten::mm", 0, 2, 1, 1}};
	struct made made[] = {FIND(less), FIND(all), FIND(none)};

	(void)state;
	assert_true(ops_steps_are_part(made[0].trace));
	assert_false(ops_steps_are_part(made[1].trace));
	assert_false(ops_steps_are_part(made[2].trace));
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		release(&made[i]);
}

/* The other optimizer and the other thread end no steps, and neither does step() of a base class. Several batches make one
 * step when gradients are accumulated. */
static void the_first_optimizer_ends_steps(void **state)
{
	static const struct range ranges[] = {
		{"aten::uniform_", 0, 8, 1, 1}, {BATCH, 10, 12, 1, 1},          {"aten::mm", 12, 14, 1, 1}, {BATCH, 14, 16, 1, 1},
		{ADAM, 20, 30, 1, 1},           {ADAM, 22, 28, 1, 1},           {"Optimizer.step#SGD.step", 32, 34, 1, 1},
		{BATCH, 36, 37, 1, 1},          {"aten::mm", 38, 39, 1, 1},     {ADAM, 40, 41, 2, 1},      {ADAM, 45, 50, 1, 1},
		{"aten::mm", 60, 70, 1, 1}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.source, OPS_STEPS_OPTIMIZER);
	assert_int_equal(made.steps.list.count, 2);
	assert_step(&made, 0, 0, 10, 30);
	assert_step(&made, 1, 1, 30, 50);
	assert_int_equal(made.steps.list.items[1].row, OPS_NONE);
	release(&made);
}

static void the_first_step_begins_where_training_does(void **state)
{
	static const struct range zero_grad[] = {{"aten::uniform_", 0, 8, 1, 1}, {"Optimizer.zero_grad#Adam.zero_grad", 11, 12, 1, 1},
	                                         {ADAM, 20, 30, 1, 1}};
	static const struct range module[] = {{"aten::uniform_", 0, 8, 1, 1}, {"nn.Module: Linear_0", 13, 14, 1, 1},
	                                      {"Optimizer.zero_grad#Adam.zero_grad", 15, 16, 1, 1}, {ADAM, 20, 30, 1, 1}};
	static const struct range nothing[] = {{"aten::mm", 0, 8, 1, 1}, {ADAM, 20, 30, 1, 1}};
	struct made made = FIND(zero_grad);

	(void)state;
	assert_step(&made, 0, 0, 11, 30);
	release(&made);
	made = FIND(module);
	assert_step(&made, 0, 0, 13, 30);
	release(&made);
	made = FIND(nothing);
	assert_step(&made, 0, 0, 0, 30);
	release(&made);
}

/* The fetch that finds the epoch over begins no step. */
static void without_optimizer_batches_are_steps(void **state)
{
	static const struct range ranges[] = {{"aten::uniform_", 0, 8, 1, 1}, {BATCH, 10, 12, 1, 1},      {"aten::stack", 11, 12, 1, 1},
	                                      {"aten::mm", 13, 14, 1, 1},     {BATCH, 20, 22, 1, 1},      {"aten::mm", 23, 24, 1, 1},
	                                      {BATCH, 30, 31, 1, 1},          {BATCH, 50, 52, 1, 1},      {"aten::mm", 53, 57, 1, 1},
	                                      {"aten::mm", 58, 59, 2, 1}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.source, OPS_STEPS_BATCHES);
	assert_int_equal(made.steps.list.count, 3);
	assert_step(&made, 0, 0, 10, 20);
	assert_step(&made, 1, 1, 20, 30);
	assert_step(&made, 2, 2, 50, 57);
	release(&made);
}

static void each_process_has_steps_of_its_own(void **state)
{
	static const struct range ranges[] = {{"aten::mm", 0, 5, 1, 1}, {"aten::mm", 1, 5, 2, 2}, {ADAM, 6, 8, 1, 1},
	                                      {ADAM, 7, 9, 2, 2},       {ADAM, 16, 18, 1, 1},     {ADAM, 17, 19, 2, 2}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.list.count, 4);
	assert_step(&made, 0, 0, 0, 8);
	assert_step(&made, 1, 0, 1, 9);
	assert_step(&made, 2, 1, 8, 18);
	assert_step(&made, 3, 1, 9, 19);
	release(&made);
}

static void shadow_steps_do_not_count(void **state)
{
	static const struct range ranges[] = {{"ProfilerStep#1", 0, 10, 1, 1}, {"aten::mm", 1, 5, 1, 1}, {"ProfilerStep#2", 10, 20, 1, 1},
	                                      {"Opstrobe: shadow step", 11, 19, 1, 1}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.list.count, 2);
	assert_true(made.steps.list.items[1].is_shadow);
	assert_int_equal(ops_steps_of_track(&made.steps, made.steps.list.items[0].track), 1);
	release(&made);
}

static void a_trace_of_operators_has_none(void **state)
{
	static const struct range ranges[] = {{"aten::mm", 0, 5, 1, 1}, {"train", 0, 9, 1, 1}};
	struct made made = FIND(ranges);

	(void)state;
	assert_int_equal(made.steps.source, OPS_STEPS_NONE);
	assert_int_equal(made.steps.list.count, 0);
	assert_string_equal(ops_steps_source_name(made.steps.source), "none");
	release(&made);
}

#define ITERATIONS 8

/* A program that gets a batch from a generator, computes on it in `work_us`, and prints in every fourth iteration. `setup_us`: before, it
 * runs an operator for so long. */
static struct made loop_of(const char *function, int iterations, int setup_us, int work_us)
{
	struct range ranges[8 + 5 * ITERATIONS] = {{function, 0, 100000, 1, 1}, {"aten::uniform_", 0, setup_us, 1, 1}};
	size_t count = 2;

	for (int i = 0; i <= iterations; i++) {
		int at = 1000 + 100 * i;

		ranges[count++] = (struct range){"serve.py(7): requests", at, at + 10, 1, 1};
		if (i == iterations)
			break;
		ranges[count++] = (struct range){"serve.py(12): rank", at + 10, at + 90, 1, 1};
		ranges[count++] = (struct range){"aten::mm", at + 12, at + 12 + work_us, 1, 1};
		if (i % 4 == 0)
			ranges[count++] = (struct range){"serve.py(3): report", at + 92, at + 94, 1, 1};
	}
	return find(ranges, count);
}

static void the_outermost_loop_has_steps(void **state)
{
	struct made made = loop_of("serve.py(20): main", ITERATIONS, 100, 60);

	(void)state;
	assert_int_equal(made.steps.source, OPS_STEPS_LOOP);
	assert_string_equal(ops_steps_source_name(made.steps.source), "loop");
	assert_int_equal(made.steps.list.count, ITERATIONS);
	assert_step(&made, 0, 0, 1000, 1100);
	assert_step(&made, ITERATIONS - 1, ITERATIONS - 1, 1700, 1800);
	release(&made);
}

/* Too few iterations, a loop with less than half of the operators, a loop over the layers of a model, and one of a library. */
static void other_loops_have_none(void **state)
{
	struct made made[] = {loop_of("serve.py(20): main", 4, 100, 60), loop_of("serve.py(20): main", ITERATIONS, 900, 60),
	                      loop_of("nn.Module: Net_0", ITERATIONS, 100, 60), loop_of("/usr/lib/python3.11/x.py(2): run", ITERATIONS, 100, 60)};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		assert_int_equal(made[i].steps.source, OPS_STEPS_NONE);
		release(&made[i]);
	}
}

/* An epoch that takes part of the time is an iteration around those of its samples; what runs in some iterations only is not. */
static void calls_of_an_outer_loop_count(void **state)
{
	struct range ranges[1 + 6 * 13] = {{"run.py(20): main", 0, 100000, 1, 1}};
	size_t count = 1;
	struct made made;

	(void)state;
	for (int i = 0; i < 6; i++) {
		int at = 1000 + 1000 * i;

		ranges[count++] = (struct range){"run.py(5): encode", at, at + 200, 1, 1};
		for (int k = 0; k < 4; k++) {
			ranges[count++] = (struct range){"run.py(9): score", at + 200 + 100 * k, at + 290 + 100 * k, 1, 1};
			ranges[count++] = (struct range){"aten::mm", at + 210 + 100 * k, at + 280 + 100 * k, 1, 1};
		}
	}
	made = find(ranges, count);
	assert_int_equal(made.steps.list.count, 6);
	assert_step(&made, 1, 1, 2000, 3000);
	release(&made);
}

/* A program that trains for four steps of `train_us` in operators each, and then answers eight requests of 60 us each. `marked`: the
 * steps are marked. */
static struct made trained(const char *metadata, bool marked, int train_us)
{
	struct range ranges[2 + 4 * 3 + 2 * ITERATIONS] = {{"train.py(20): main", 0, 100000, 1, 1}};
	static const char *const marks[] = {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"};
	size_t count = 1;

	for (int i = 0; i < 4; i++) {
		int at = 1000 + 200 * i;

		if (marked)
			ranges[count++] = (struct range){marks[i], at, at + 200, 1, 1};
		ranges[count++] = (struct range){"aten::mm", at + 10, at + 10 + train_us, 1, 1};
		ranges[count++] = (struct range){ADAM, at + 180, at + 200, 1, 1};
	}
	for (int i = 0; i < ITERATIONS; i++) {
		int at = 10000 + 100 * i;

		ranges[count++] = (struct range){"train.py(12): answer", at, at + 90, 1, 1};
		ranges[count++] = (struct range){"aten::mm", at + 10, at + 70, 1, 1};
	}
	return find_with(metadata, ranges, count);
}

static void a_loop_with_most_operators_has_the_steps(void **state)
{
	static const char found[] = "\"" OPS_STEPS_FOUND_BY "\": \"opstrobe run\", ";
	struct {
		struct made made;
		enum ops_steps_source source;
	} cases[] = {{trained("", false, 50), OPS_STEPS_LOOP},
	             {trained("", false, 150), OPS_STEPS_OPTIMIZER},
	             {trained(found, true, 50), OPS_STEPS_LOOP},
	             {trained(found, true, 150), OPS_STEPS_MARKED},
	             {trained("", true, 50), OPS_STEPS_MARKED}}; /* by the program */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(cases[i].made.steps.source, cases[i].source);
		assert_int_equal(cases[i].made.steps.list.count, cases[i].source == OPS_STEPS_LOOP ? ITERATIONS : 4);
		release(&cases[i].made);
	}
}

/* A program that accumulates the gradients of four batches in a step, and validates in its second and fourth step. */
static void a_loop_inside_steps_is_part_of_them(void **state)
{
	static const char *const marks[] = {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"};
	static const char found[] = "\"" OPS_STEPS_FOUND_BY "\": \"opstrobe run\", ";

	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		struct range ranges[1 + 4 * (2 + 2 * 4) + 2 * 11] = {{"train.py(20): main", 0, 100000, 1, 1}};
		size_t count = 1;
		int at = 1000;
		struct made made;

		for (int i = 0; i < 4; i++) {
			int validated = i % 2 ? 5000 : 0;

			if (marked)
				ranges[count++] = (struct range){marks[i], at, at + 420 + validated, 1, 1};
			for (int k = 0; k < 4; k++) {
				ranges[count++] = (struct range){"train.py(3): train_batch", at + 100 * k, at + 100 * k + 90, 1, 1};
				ranges[count++] = (struct range){"aten::mm", at + 100 * k + 10, at + 100 * k + 80, 1, 1};
			}
			at += 400;
			if (validated)
				ranges[count++] = (struct range){"train.py(7): validate", at, at + 5000, 1, 1};
			for (int k = 0; validated && k < 10; k++)
				ranges[count++] = (struct range){"aten::mm", at + 500 * k, at + 500 * k + 450, 1, 1};
			at += validated;
			ranges[count++] = (struct range){ADAM, at, at + 20, 1, 1};
			at += 20;
		}
		made = find_with(marked ? found : "", ranges, count);
		assert_int_equal(made.steps.source, marked ? OPS_STEPS_MARKED : OPS_STEPS_OPTIMIZER);
		assert_int_equal(made.steps.list.count, 4);
		release(&made);
	}
}

static void a_process_without_steps_helps(void **state)
{
	static const struct range ranges[] = {{"ProfilerStep#0", 0, 100, 1, 1}, {"aten::mm", 10, 20, 1, 1}, {"aten::mm", 10, 20, 3, 1},
	                                      {"aten::mm", 10, 20, 2, 2}};
	static const struct range none[] = {{"aten::mm", 10, 20, 1, 1}, {"aten::mm", 10, 20, 2, 2}};
	struct made made = FIND(ranges), without = FIND(none);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(made.trace, &count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(made.steps.helps[i], tracks[i].pid == 2);
	ops_trace_tracks(without.trace, &count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(without.steps.helps[i], 0);
	release(&made);
	release(&without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_count_alone),
		cmocka_unit_test(sums_differ_if_steps_are_part_of_the_trace),
		cmocka_unit_test(the_first_optimizer_ends_steps),
		cmocka_unit_test(the_first_step_begins_where_training_does),
		cmocka_unit_test(without_optimizer_batches_are_steps),
		cmocka_unit_test(each_process_has_steps_of_its_own),
		cmocka_unit_test(shadow_steps_do_not_count),
		cmocka_unit_test(a_trace_of_operators_has_none),
		cmocka_unit_test(the_outermost_loop_has_steps),
		cmocka_unit_test(other_loops_have_none),
		cmocka_unit_test(calls_of_an_outer_loop_count),
		cmocka_unit_test(a_loop_with_most_operators_has_the_steps),
		cmocka_unit_test(a_loop_inside_steps_is_part_of_them),
		cmocka_unit_test(a_process_without_steps_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
