/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/lines.h: the cost of files. A file has the time in which its functions run, and the backward pass of what they called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/lines.h>
#include <opstrobe/read.h>

#define ROW(cat, name, tid, ts, dur)                                                               \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" #ts ",\"dur\":" #dur "},"
#define CALL(name, id, ts, dur)                                                                    \
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" #ts ",\"dur\":" #dur      \
	",\"args\":{\"Python id\":" #id ",\"Python parent id\":null}},"
#define FLOW(phase, tid, ts)                                                                       \
	"{\"ph\":\"" phase "\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":5,\"pid\":1,\"tid\":" tid ",\"ts\":" #ts "}"

/* net.py calls a product; its backward runs while train.py waits for it, on the thread `tid`. */
#define TRAINING(tid)                                                                              \
	"{\"traceEvents\":[" CALL("net.py(1): forward", 1, 0, 100) ROW("cpu_op", "aten::mm", "1", 10, 20)              \
	CALL("train.py(1): main", 2, 200, 100) ROW("cpu_op", "MmBackward0", tid, 220, 60)                              \
	FLOW("s", "1", 10) "," FLOW("f", tid, 220) "]}"

static void assert_files(const char *rows, const char *net, const char *train)
{
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};
	char *text = NULL;
	size_t size;

	if (ops_trace_read_memory(rows, strlen(rows), NULL, &trace, &error))
		fail_msg("%s", error.text);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_JSON, 0, 0, &text, &size, NULL), OPS_OK);
	if (!strstr(text, net) || !strstr(text, train))
		fail_msg("neither %s nor %s is all in %s", net, train, text);
	ops_free(text);
	ops_trace_unref(trace);
}

static void backward_belongs_to_the_file_of_its_forward(void **state)
{
	(void)state;
	assert_files(TRAINING("2"), "{\"file\":\"net.py\",\"host_us\":160,\"self_us\":160,",
	             "{\"file\":\"train.py\",\"host_us\":100,\"self_us\":100,");
	/* On one thread the file that waits runs meanwhile, too, but its lines have no self time then. */
	assert_files(TRAINING("1"), "{\"file\":\"net.py\",\"host_us\":160,\"self_us\":160,",
	             "{\"file\":\"train.py\",\"host_us\":100,\"self_us\":40,");
	assert_files(TRAINING("1"), "\"calls\":1,\"host_us\":160,", "\"calls\":1,\"host_us\":40,");
}

/* A library takes more time than the program, and is listed after it; `limit` counts lines of the program first. */
static void lines_of_the_program_come_first(void **state)
{
	static const char rows[] =
		"{\"traceEvents\":[" CALL("/usr/lib/python3.11/threading.py(320): wait", 1, 0, 900)
		CALL("small.py(3): first", 2, 1000, 50) CALL("train.py(1): main", 3, 2000, 100)
		ROW("cpu_op", "aten::mm", "1", 2010, 20) "{}]}";
	struct ops_trace *trace = NULL;
	char *text = NULL;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_read_memory(rows, strlen(rows), NULL, &trace, NULL), OPS_OK);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_CSV, 0, 0, &text, &size, NULL), OPS_OK);
	assert_string_equal(text, "self,with_calls,device,allocated,calls,line,function,file,is_library\n"
	                          "100,100,0,0,1,1,main,train.py,no\n"
	                          "50,50,0,0,1,3,first,small.py,no\n"
	                          "900,900,0,0,1,320,wait,/usr/lib/python3.11/threading.py,yes\n");
	ops_free(text);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_JSON, 0, 0, &text, &size, NULL), OPS_OK);
	assert_true(strstr(text, "train.py") < strstr(text, "small.py"));
	assert_true(strstr(text, "small.py") < strstr(text, "threading.py"));
	ops_free(text);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_TEXT, 1, 0, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "train.py"));
	assert_null(strstr(text, "threading.py"));
	ops_free(text);
	ops_trace_unref(trace);
}

static void assert_table(const char *rows, const char *expected)
{
	struct ops_trace *trace = NULL;
	char *text = NULL;
	size_t size;

	assert_int_equal(ops_trace_read_memory(rows, strlen(rows), NULL, &trace, NULL), OPS_OK);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_CSV, 0, 0, &text, &size, NULL), OPS_OK);
	assert_string_equal(text, expected);
	ops_free(text);
	ops_trace_unref(trace);
}

#define STACKED(cat, name, stack, ts, dur)                                                         \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" #ts ",\"dur\":" #dur       \
	",\"args\":{\"Call stack\":\"" stack ";train.py(20): <module>;\"}},"

/* Line 5 opens a range in which line 6 calls an operator twice, and line 7 a function that calls one. Line 9 has an operator with
 * another one in it, which has no stack. */
static void call_stacks_give_lines_without_calls(void **state)
{
	static const char rows[] =
		"{\"traceEvents\":[" STACKED("user_annotation", "range", "train.py(5): main", 0, 100)
		STACKED("cpu_op", "aten::mm", "train.py(6): main", 10, 20) STACKED("cpu_op", "aten::mm", "train.py(6): main", 40, 20)
		STACKED("cpu_op", "aten::add", "net.py(3): step;train.py(7): main", 70, 10)
		STACKED("cpu_op", "aten::linear", "torch/nn/functional.py(4): linear;train.py(9): main", 200, 50)
		ROW("cpu_op", "aten::addmm", "1", 210, 30) "{}]}";

	(void)state;
	assert_table(rows, "self,with_calls,device,allocated,calls,line,function,file,is_library\n"
	                   "50,50,0,0,0,5,main,train.py,no\n"
	                   "50,50,0,0,1,9,main,train.py,no\n"
	                   "40,40,0,0,2,6,main,train.py,no\n"
	                   "10,10,0,0,1,3,step,net.py,no\n");
}

/* Line 6 calls an operator, and line 9 a module whose forward function calls one at line 3 and computes at lines 20 and 21, three times
 * as long at 20. Outside of events, line 12 computes, line 14 imports a package, and line 15 calls a library. */
static void samples_give_lines_of_python_code(void **state)
{
	static const char rows[] =
		"{\"python_samples\":{\"version\":1,\"start_ns\":0,\"functions\":[[\"train.py\",\"<module>\"],[\"train.py\",\"main\"],"
		"[\"net.py\",\"forward\"],[\"<frozen importlib._bootstrap>\",\"_find_and_load\"],[\"sympy/__init__.py\",\"<module>\"],"
		"[\"/usr/lib/python3.11/json/decoder.py\",\"decode\"]],"
		"\"stacks\":[-1,0,20, 0,1,12, 0,1,9, 2,2,3, 2,2,20, 2,2,21, 0,1,14, 6,3,5, 7,4,1, 0,1,15, 9,5,2],"
		"\"threads\":[{\"tid\":1,\"samples\":[150,40,1,0, 220,40,3,0, 250,60,4,0, 290,20,5,0, 400,30,8,0, 450,10,10,0]}]},"
		"\"traceEvents\":[" STACKED("cpu_op", "aten::mm", "train.py(6): main", 0, 100)
		STACKED("python_function", "nn.Module: Net_0", "train.py(9): main", 200, 100)
		STACKED("cpu_op", "aten::add", "net.py(3): forward;train.py(9): main", 210, 20) "{}]}";

	(void)state;
	assert_table(rows, "self,with_calls,device,allocated,calls,line,function,file,is_library\n"
	                   "100,100,0,0,1,6,main,train.py,no\n"
	                   "60,60,0,0,0,20,forward,net.py,no\n"
	                   "40,40,0,0,0,12,main,train.py,no\n"
	                   "30,30,0,0,0,14,main,train.py,no\n"
	                   "20,20,0,0,1,3,forward,net.py,no\n"
	                   "20,20,0,0,0,21,forward,net.py,no\n"
	                   "10,10,0,0,0,15,main,train.py,no\n"
	                   "0,100,0,0,1,9,main,train.py,no\n"
	                   "0,200,0,0,0,20,<module>,train.py,no\n");
	assert_files(rows, "{\"file\":\"net.py\",\"host_us\":100,\"self_us\":100,", "{\"file\":\"train.py\",\"host_us\":280,\"self_us\":180,");
}

/* Process 2 was forked at line 12 of process 1 as a worker: what it waits for indices counts for no line, and what it does counts for
 * line 30 and not for line 12. Both have a function with number 1. */
static void samples_of_workers_are_of_their_lines(void **state)
{
	static const char rows[] =
		"{\"python_samples\":[{\"version\":1,\"start_ns\":0,\"functions\":[[\"train.py\",\"<module>\"],[\"train.py\",\"main\"]],"
		"\"stacks\":[-1,0,20, 0,1,12],\"threads\":[{\"tid\":1,\"samples\":[250,40,1,0]}]},"
		"{\"version\":1,\"start_ns\":100000,\"functions\":[[\"train.py\",\"main\"],"
		"[\"/usr/lib/python3.11/multiprocessing/process.py\",\"BaseProcess._bootstrap\"],"
		"[\"/usr/lib/python3/site-packages/torch/utils/data/_utils/worker.py\",\"_worker_loop\"],[\"/usr/lib/python3.11/multiprocessing/queues.py\",\"Queue.get\"],"
		"[\"data.py\",\"Rows.__getitem__\"]],\"stacks\":[-1,0,12, 0,1,3, 1,2,4, 2,3,5, 2,4,30],"
		"\"threads\":[{\"tid\":2,\"samples\":[100,70,4,0, 200,100,3,7, 250,50,2,0]}]}],"
		"\"traceEvents\":[" STACKED("cpu_op", "aten::mm", "train.py(6): main", 0, 100) "{}]}";

	(void)state;
	assert_table(rows, "self,with_calls,device,allocated,calls,line,function,file,is_library\n"
	                   "100,100,0,0,1,6,main,train.py,no\n"
	                   "70,70,0,0,0,30,Rows.__getitem__,data.py,no\n"
	                   "40,40,0,0,0,12,main,train.py,no\n"
	                   "0,40,0,0,0,20,<module>,train.py,no\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(backward_belongs_to_the_file_of_its_forward),
	                                   cmocka_unit_test(call_stacks_give_lines_without_calls),
	                                   cmocka_unit_test(lines_of_the_program_come_first),
	                                   cmocka_unit_test(samples_give_lines_of_python_code),
	                                   cmocka_unit_test(samples_of_workers_are_of_their_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
