/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/flame and the files written from it: collapsed stacks, speedscope, the picture.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/write.h>

#include "../analyze/scene.h"
#include "../base/failing.h"
#include "base/json.h"
#include "folder.h"

static void scene_python(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(b, &event);
}

/* All events of a trace as rows. */
struct all {
	const struct ops_trace *trace;
	struct ops_event_costs costs;
	uint32_t *refs;
};

static void get_event(const void *context, size_t i, struct ops_average *ret_row)
{
	const struct all *all = context;

	ops_average_of_event(all->trace, &all->costs, all->refs[i], ret_row);
}

static struct ops_flame_cut cut; /* of the last file */

static enum ops_code write_events(const struct ops_trace *trace, const char *path, struct ops_error *error)
{
	const struct ops_flame_choices choices = {.keep_wrappers = true};
	struct all all = {.trace = trace};
	struct ops_rows rows = {.get = get_event, .context = &all};
	struct ops_flame *flame = NULL;
	enum ops_code code = ops_function_events(trace, &all.refs, &rows.count, error);

	if (!code)
		code = ops_flame_new(trace, NULL, &rows, &choices, &flame, error);
	if (!code)
		code = ops_flame_write(flame, path, &cut, error);
	ops_flame_free(flame);
	ops_free(all.refs);
	return code;
}

static void assert_file(const char *path, const char *expected)
{
	struct ops_buffer whole = read_whole(path);

	assert_string_equal(whole.bytes, expected);
	ops_buffer_release(&whole);
}

static void assert_collapsed(struct ops_builder *take_builder, const char *expected)
{
	struct ops_trace *trace = scene_close(take_builder);

	assert_int_equal(write_events(trace, "stacks.txt", NULL), OPS_OK);
	assert_file("stacks.txt", expected);
	assert_int_equal(count_files(), 1);
	ops_trace_unref(trace);
}

static void own_frames_with_their_own_time(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_python(b, "t.py(3): main", 0, 1000);
	scene_range(b, 0, "epoch", 100, 900);
	scene_op(b, 0, "aten::linear", 200, 300);
	scene_op(b, 0, "aten::mm", 210, 290);
	scene_op(b, 0, "aten::linear", 400, 500);
	scene_op(b, 0, "aten::mm", 410, 490);
	scene_op(b, 1, "aten::mm", 410, 411);
	assert_collapsed(b, "t.py(3):_main 200\n"
	                    "t.py(3):_main;epoch 600\n"
	                    "t.py(3):_main;epoch;aten::linear 40\n"
	                    "t.py(3):_main;epoch;aten::linear;aten::mm 160\n"
	                    "aten::mm 1\n");
}

static void backward_nodes_stand_where_their_forward_was_called(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event;

	(void)state;
	scene_python(b, "main", 0, 1000);
	scene_python(b, "forward", 0, 200);
	event = scene_event(b, 0, "mm", 0, 200);
	event.sequence_nr = 7;
	ops_builder_event(b, &event);
	scene_python(b, "engine", 200, 1000);
	for (int i = 0; i < 2; i++) {
		event = scene_event(b, 0, i ? "Lost" : "MmBackward", 200 + i * 400, 600 + i * 400);
		event.sequence_nr = i ? 8 : 7;
		event.forward_thread = 1;
		event.scope = 1;
		ops_builder_event(b, &event);
	}
	scene_op(b, 0, "inside", 300, 400);
	assert_collapsed(b, "main;forward;mm 200\n"
	                    "main;forward;MmBackward 300\n"
	                    "main;forward;MmBackward;inside 100\n"
	                    "main;engine;Lost 400\n");
}

static void frames_of_call_stacks(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_range(b, 0, "ProfilerStep#3", 0, 100);
	scene_range(b, 0, "ProfilerStep#4", 100, 200);
	for (int i = 0; i < 2; i++) {
		struct ops_new_event event = scene_event(b, 0, i ? "inner" : "outer", 10 + i, 50 - i);

		event.call_stack = scene_string(b, "a(1): f;a(2): g;");
		ops_builder_event(b, &event);
	}
	assert_collapsed(b, "ProfilerStep* 160\n"
	                    "ProfilerStep*;a(2):_g;a(1):_f;outer 2\n"
	                    "ProfilerStep*;a(2):_g;a(1):_f;outer;inner 38\n");
}

static void names_that_would_break_a_line_up(void **state)
{
	static const char *const names[] = {"a b;c", "a\tb\nc", "a_b_c", "\xff\xfe", "", "\xc3\xa9\xf0\x9f\x98\x80", "x\x7fy\rz"};
	struct ops_builder *b = scene_open();

	(void)state;
	for (int i = 0; i < 7; i++)
		scene_op(b, 0, names[i], i * 100, i * 100 + 10 + i);
	assert_collapsed(b, "a_b_c 33\n"
	                    "\\xff\\xfe 13\n"
	                    "_ 14\n"
	                    "\xc3\xa9\xf0\x9f\x98\x80 15\n"
	                    "x_y_z 16\n");
}

/* Frames without self time have no line, and those that overlap in part have no more than the time around them. */
static void invalid_times(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "outer", 0, 100);
	scene_op(b, 0, "inner", 0, 100);
	scene_op(b, 0, "instant", 200, 200);
	scene_op(b, 0, "less", 300, 310);
	scene_op(b, 0, "child", 300, 309);
	scene_op(b, 0, "child", 301, 310);
	assert_collapsed(b, "outer;inner 100\nless;child 10\n");
	assert_collapsed(scene_open(), "");
}

struct average_rows {
	struct ops_average rows[3];
};

static void get_average(const void *context, size_t i, struct ops_average *ret_row)
{
	*ret_row = ((const struct average_rows *)context)->rows[i];
}

static void averages_under_the_frames_they_show(void **state)
{
	struct ops_builder *b = scene_open();
	struct average_rows averages = {0};
	struct ops_rows rows = {.count = 3, .get = get_average, .context = &averages};
	struct ops_stacks *stacks;
	struct ops_flame *flame;
	struct ops_trace *trace;

	(void)state;
	scene_python(b, "main", 0, 1000);
	scene_python(b, "step", 0, 1000);
	scene_op(b, 0, "mm", 100, 200);
	trace = scene_close(b);
	for (uint32_t i = 0; i < 3; i++)
		averages.rows[i] = (struct ops_average){.first = scene_row(trace, "mm"), .stack_frames = i,
		                                        .name = ops_trace_find_string(trace, "mm", 2),
		                                        .self_cpu_time_total_ns = i + 1, .self_device_time_total_ns = 7};
	assert_int_equal(ops_stacks_new(trace, &stacks, NULL), OPS_OK);
	assert_int_equal(ops_flame_new(trace, stacks, &rows, &(struct ops_flame_choices){0}, &flame, NULL), OPS_OK);
	assert_int_equal(ops_flame_write(flame, "cpu", NULL, NULL), OPS_OK);
	ops_flame_free(flame);
	assert_file("cpu", "mm 1\nstep;mm 2\nmain;step;mm 3\n");
	rows.count = 1;
	assert_int_equal(ops_flame_new(trace, stacks, &rows, &(struct ops_flame_choices){.metric = OPS_STACKS_SELF_DEVICE}, &flame,
	                               NULL), OPS_OK);
	assert_int_equal(ops_flame_write(flame, "device", NULL, NULL), OPS_OK);
	ops_flame_free(flame);
	assert_file("device", "mm 7\n");
	ops_stacks_free(stacks);
	ops_trace_unref(trace);
}

/* Names of every sort, and a tree with a few branches. */
static struct ops_trace *odd_trace(void)
{
	struct ops_builder *b = scene_open();

	scene_python(b, "a \"b\" <&>.py(12): main", 0, 1000);
	scene_python(b, "nn.Module: Net_0", 100, 900);
	scene_python(b, "<built-in function len>", 110, 200);
	scene_op(b, 0, "\xff\n;", 300, 800);
	scene_op(b, 0, "narrow", 310, 310);
	return scene_close(b);
}

static void speedscope(void **state)
{
	struct ops_trace *trace = odd_trace();
	struct ops_buffer whole;

	(void)state;
	assert_int_equal(write_events(trace, "x.speedscope.json", NULL), OPS_OK);
	whole = read_whole("x.speedscope.json");
	assert_int_equal(ops_json_validate(whole.bytes, whole.size, NULL), OPS_OK);
	assert_non_null(strstr(whole.bytes, "{\"name\":\"main\",\"file\":\"a \\\"b\\\" <&>.py\",\"line\":12}"));
	assert_non_null(strstr(whole.bytes, "{\"name\":\"\\\\xff\\n;\"}"));
	assert_non_null(strstr(whole.bytes, "\"endValue\":1000"));
	assert_non_null(strstr(whole.bytes, "[\n{\"type\":\"O\",\"frame\":0,\"at\":0},\n"
	                                    "{\"type\":\"O\",\"frame\":1,\"at\":200},\n"
	                                    "{\"type\":\"O\",\"frame\":2,\"at\":410},\n"
	                                    "{\"type\":\"C\",\"frame\":2,\"at\":500},\n"
	                                    "{\"type\":\"O\",\"frame\":3,\"at\":500},\n"
	                                    "{\"type\":\"C\",\"frame\":3,\"at\":1000},\n"
	                                    "{\"type\":\"C\",\"frame\":1,\"at\":1000},\n"
	                                    "{\"type\":\"C\",\"frame\":0,\"at\":1000}]}]}"));
	ops_buffer_release(&whole);
	ops_trace_unref(trace);

	trace = scene_close(scene_open());
	assert_int_equal(write_events(trace, "x.speedscope.json", NULL), OPS_OK);
	whole = read_whole("x.speedscope.json");
	assert_int_equal(ops_json_validate(whole.bytes, whole.size, NULL), OPS_OK);
	ops_buffer_release(&whole);
	ops_trace_unref(trace);
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* Returns a recursion, with an operator far below and another near its end. */
static struct ops_trace *deep_trace(int depth)
{
	struct ops_builder *b = scene_open();

	for (int i = 0; i < depth; i++)
		scene_python(b, i ? "f" : "main", i, 1000000 - i);
	scene_op(b, 0, "mm", 400000, 400100);
	scene_op(b, 0, "add", 500000, 500010);
	return scene_close(b);
}

/* "main;f;f;…" of that many frames, then the rest of a line. */
static void put_line(struct ops_buffer *out, int frames, const char *rest)
{
	for (int i = 0; i < frames; i++)
		ops_buffer_append_text(out, i ? ";f" : "main");
	ops_buffer_append_text(out, rest);
}

static void deep_stacks_are_cut_and_counted(void **state)
{
	const int depth = 20000, whole_depth = OPS_COLLAPSED_DEPTH + 1;
	struct ops_trace *trace = deep_trace(depth);
	struct ops_buffer expected = {0};
	char rest[64];

	(void)state;
	assert_int_equal(write_events(trace, "x", NULL), OPS_OK);
	assert_int_equal(cut.stacks, depth - whole_depth + 2);
	for (int i = 1; i <= whole_depth; i++)
		put_line(&expected, i, " 2\n");
	/* The innermost call has all the time in the middle. */
	snprintf(rest, sizeof(rest), ";[truncated];f %d\n",
	         2 * (depth - 1 - whole_depth) + 1000000 - 2 * (depth - 1) - 110);
	put_line(&expected, OPS_COLLAPSED_DEPTH, rest);
	put_line(&expected, OPS_COLLAPSED_DEPTH, ";[truncated];mm 100\n");
	put_line(&expected, OPS_COLLAPSED_DEPTH, ";[truncated];add 10\n");
	ops_buffer_append(&expected, "", 1);
	assert_file("x", expected.bytes);
	ops_buffer_release(&expected);

	/* Speedscope's has two lines a frame, and nothing is cut. */
	assert_int_equal(write_events(trace, "x.speedscope.json", NULL), OPS_OK);
	assert_int_equal(cut.stacks, 0);
	expected = read_whole("x.speedscope.json");
	assert_int_equal(count_of(expected.bytes, "\"type\":\"O\""), depth + 2);
	assert_int_equal(count_of(expected.bytes, "\"type\":\"C\""), depth + 2);
	ops_buffer_release(&expected);
	ops_trace_unref(trace);

	/* As deep as a line may be: only operators are deeper. */
	trace = deep_trace(OPS_COLLAPSED_DEPTH);
	assert_int_equal(write_events(trace, "x", NULL), OPS_OK);
	assert_int_equal(cut.stacks, 0);
	ops_trace_unref(trace);
}

/* Frames of different names do not become one line: what bounds the file is the depth. */
static void many_deep_stacks_are_cut_further(void **state)
{
	const int depth = 30000;
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	struct ops_buffer whole;
	size_t frames = 0;
	char name[32];

	(void)state;
	for (int i = 0; i < depth; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		scene_python(b, name, i, 1000000 - i);
	}
	trace = scene_close(b);
	assert_int_equal(write_events(trace, "x", NULL), OPS_OK);
	assert_int_equal(cut.depth, 250);
	assert_int_equal(cut.stacks, depth - 251);
	whole = read_whole("x");
	for (size_t i = 0; i < whole.size; i++)
		frames += whole.bytes[i] == ';' || whole.bytes[i] == '\n';
	assert_in_range(frames, depth, OPS_COLLAPSED_FRAMES);
	assert_non_null(strstr(whole.bytes, ";m249;[truncated];m29999 "));
	ops_buffer_release(&whole);
	ops_trace_unref(trace);
}

static void picture(void **state)
{
	struct ops_trace *trace = odd_trace();
	struct ops_buffer whole;

	(void)state;
	assert_int_equal(write_events(trace, "x.svg", NULL), OPS_OK);
	whole = read_whole("x.svg");
	assert_int_equal(count_of(whole.bytes, "<title>"), 4);
	assert_null(strstr(whole.bytes, "<script"));
	assert_non_null(strstr(whole.bytes, "<title>a &quot;b&quot; &lt;&amp;&gt;.py(12): main (1.00 µs, 100 %)</title>"));
	assert_non_null(strstr(whole.bytes, "<title>\\xff\\x0a; (500 ns, 50.0 %)</title>"));
	assert_non_null(strstr(whole.bytes, "x=\"10.0\" y=\"64\" width=\"1180.0\""));
	ops_buffer_release(&whole);
	ops_trace_unref(trace);

	trace = scene_close(scene_open());
	assert_int_equal(write_events(trace, "x.svg", NULL), OPS_OK);
	whole = read_whole("x.svg");
	assert_int_equal(count_of(whole.bytes, "<title>"), 0);
	ops_buffer_release(&whole);
	ops_trace_unref(trace);
}

/* --- when things go wrong ------------------------------------------------------------------------------------------ */

static void the_old_file_stays(void **state)
{
	struct ops_trace *trace = odd_trace();
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(write_events(trace, "missing/stacks.txt", &error), OPS_IO);
	assert_int_equal(error.os_errno, ENOENT);
	assert_non_null(strstr(error.text, "cannot write stacks 'missing/stacks.txt'"));
	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(write_events(trace, "folder", &error), OPS_IO);
	assert_int_equal(error.os_errno, EISDIR);
	assert_int_equal(count_files(), 1);
	ops_trace_unref(trace);
}

static const char *const paths[] = {"x", "x.speedscope.json", "x.svg", "x.pb.gz"};

struct work {
	struct ops_trace *trace;
	const char *path;
};

static void write_again(void *context)
{
	const struct work *work = context;
	struct ops_error error;

	if (write_events(work->trace, work->path, &error)) {
		assert_int_equal(error.code, OPS_NO_MEMORY);
		assert_file(work->path, "old");
	} else {
		put_file(work->path, "old");
	}
}

static void survives_failing_allocations(void **state)
{
	struct ops_builder *b = scene_open();
	struct work work;
	char name[32];

	(void)state;
	for (int i = 0; i < 700; i++) {
		snprintf(name, sizeof(name), "a.py(%d): f %d", i, i);
		scene_python(b, name, i, 2000 - i);
	}
	work.trace = scene_close(b);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		work.path = paths[i];
		put_file(work.path, "old");
		assert_in_range(fail_each(write_again, &work), 10, 200);
	}
	assert_int_equal(count_files(), sizeof(paths) / sizeof(paths[0]));
	ops_trace_unref(work.trace);
}

/* Steps of 100 ns after `before` ns of setup, in each a call of C whose address no other process has, with `inner_ns` in it. */
static struct ops_trace *steps_of(int count, int64_t before_ns, int64_t inner_ns)
{
	struct ops_builder *b = scene_open();

	scene_op(b, 0, "setup", 0, before_ns);
	for (int i = 0; i < count; i++) {
		int64_t at = before_ns + 10 + i * 200;
		char name[64];

		snprintf(name, sizeof(name), "<built-in method f of object at 0x7f%d%d0a>", count, (int)inner_ns);
		scene_range(b, 0, "ProfilerStep#3", at, at + 100);
		scene_op(b, 0, name, at + 10, at + 90);
		scene_op(b, 0, "inner", at + 20, at + 20 + inner_ns);
	}
	return scene_close(b);
}

static void assert_flame(struct ops_trace *trace, bool keep_wrappers, struct ops_trace *base, const char *expected)
{
	const struct ops_flame_options options = {.size = sizeof(options), .keep_wrappers = keep_wrappers, .base = base};

	assert_int_equal(ops_write_flame(trace, "flame.folded", &options, NULL, NULL), OPS_OK);
	assert_file("flame.folded", expected);
}

/* The time of what only passes on counts for its caller; at the top, where nobody called it, for what it leads to. */
static void wrappers_fold(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;

	(void)state;
	scene_python(b, "train.py(3): step", 0, 1000);
	scene_python(b, "torch/nn/functional.py(1): linear", 100, 900);
	scene_python(b, "<built-in function linear>", 110, 890);
	scene_op(b, 0, "aten::linear", 120, 880);
	scene_python(b, "threading.py(9): run", 2000, 3000);
	scene_op(b, 0, "aten::mm", 2001, 2999);
	trace = scene_close(b);
	assert_flame(trace, false, NULL, "train.py(3):_step 240\n"
	                                 "train.py(3):_step;aten::linear 760\n"
	                                 "aten::mm 1000\n");
	assert_flame(trace, true, NULL, "train.py(3):_step 200\n"
	                                "train.py(3):_step;torch/nn/functional.py(1):_linear 20\n"
	                                "train.py(3):_step;torch/nn/functional.py(1):_linear;<built-in_function_linear> 20\n"
	                                "train.py(3):_step;torch/nn/functional.py(1):_linear;<built-in_function_linear>;aten::linear 760\n"
	                                "threading.py(9):_run 2\n"
	                                "threading.py(9):_run;aten::mm 998\n");
	assert_flame(trace, false, trace, "train.py(3):_step 240 240\n"
	                                  "train.py(3):_step;aten::linear 760 760\n"
	                                  "aten::mm 1000 1000\n");
	ops_trace_unref(trace);
}

static void two_traces_per_step(void **state)
{
	struct ops_trace *two = steps_of(2, 5000, 30), *five = steps_of(5, 900, 30), *slow = steps_of(3, 10, 50);
	struct ops_flame_options options = {.size = sizeof(options), .base = two};
	struct ops_buffer svg;

	(void)state;
	assert_flame(five, false, two, "ProfilerStep* 20 20\n"
	                       "ProfilerStep*;<built-in_method_f_of_object> 50 50\n"
	                       "ProfilerStep*;<built-in_method_f_of_object>;inner 30 30\n");
	assert_flame(slow, false, five, "ProfilerStep* 20 20\n"
	                        "ProfilerStep*;<built-in_method_f_of_object> 50 30\n"
	                        "ProfilerStep*;<built-in_method_f_of_object>;inner 30 50\n");
	assert_int_equal(ops_write_flame(slow, "diff.svg", &options, NULL, NULL), OPS_OK);
	svg = read_whole("diff.svg");
	assert_non_null(strstr(svg.bytes, "inner (30 ns → 50 ns, self 30 ns → 50 ns)</title><rect fill=\"rgb(245,80,80)\""));
	assert_non_null(strstr(svg.bytes, "<rect fill=\"rgb(80,80,245)\""));
	assert_non_null(strstr(svg.bytes, "<rect fill=\"rgb(245,245,245)\""));
	ops_buffer_release(&svg);
	assert_int_equal(ops_write_flame(slow, "diff.speedscope.json", &options, NULL, NULL), OPS_INVALID);
	ops_trace_unref(two);
	ops_trace_unref(five);
	ops_trace_unref(slow);
}

/* Frames that only one of the two has. */
static void frames_that_came_and_went(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *base, *trace;

	(void)state;
	scene_op(b, 0, "old", 0, 10);
	base = scene_close(b);
	b = scene_open();
	scene_op(b, 0, "new", 0, 7);
	trace = scene_close(b);
	assert_flame(trace, false, base, "old 10 0\nnew 0 7\n");
	ops_trace_unref(base);
	ops_trace_unref(trace);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(own_frames_with_their_own_time),
		IN_FOLDER(backward_nodes_stand_where_their_forward_was_called),
		IN_FOLDER(frames_of_call_stacks),
		IN_FOLDER(names_that_would_break_a_line_up),
		IN_FOLDER(invalid_times),
		IN_FOLDER(averages_under_the_frames_they_show),
		IN_FOLDER(speedscope),
		IN_FOLDER(deep_stacks_are_cut_and_counted),
		IN_FOLDER(many_deep_stacks_are_cut_further),
		IN_FOLDER(picture),
		IN_FOLDER(wrappers_fold),
		IN_FOLDER(two_traces_per_step),
		IN_FOLDER(frames_that_came_and_went),
		IN_FOLDER(the_old_file_stays),
		IN_FOLDER(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
