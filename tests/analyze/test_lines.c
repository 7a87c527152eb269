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
	/* On one thread the file that waits runs meanwhile, too; the line that is in the innermost function has the time. */
	assert_files(TRAINING("1"), "{\"file\":\"net.py\",\"host_us\":100,\"self_us\":100,",
	             "{\"file\":\"train.py\",\"host_us\":100,\"self_us\":100,");
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(backward_belongs_to_the_file_of_its_forward),
	                                   cmocka_unit_test(lines_of_the_program_come_first)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
