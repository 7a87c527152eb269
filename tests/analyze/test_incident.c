/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/incident: the report for the facts of an incident; malformed facts; the page and the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/incidents.h>
#include <opstrobe/read.h>
#include <sys/syscall.h>

#define STRINGIFY_(text) #text
#define STRINGIFY(text) STRINGIFY_(text)
#define SLEEPS STRINGIFY(SYS_clock_nanosleep)
#define WAITS STRINGIFY(SYS_futex)
#define FRAME(file, line, function) "{\"file\":\"" file "\",\"line\":" #line ",\"function\":\"" function "\"}"
#define THREAD(tid, state, call, frames) \
	"{\"tid\":" #tid ",\"name\":\"python\",\"state\":\"" state "\",\"system_call\":" call ",\"python\":[" frames "]}"
#define SAMPLE(count, state, call, frames) \
	"{\"count\":" #count ",\"tid\":7,\"state\":\"" state "\",\"system_call\":" call ",\"python\":[" frames "]}"
#define SLOW(members) \
	"{\"trigger\":\"slow_step\",\"time_ns\":1700000000000000000,\"process\":\"train\",\"pid\":7,\"tid\":7,\"rank\":null," \
	"\"step\":{\"number\":57,\"duration_ns\":1200000000,\"usual_ns\":20000000,\"goes_on\":false}," members "}"
#define OVER_WITH(waited, collecting, faults) \
	"\"over\":{\"duration_ns\":1000000000,\"ran_ns\":1,\"waited_ns\":" #waited ",\"collecting_ns\":" #collecting \
	",\"minor_faults\":0,\"major_faults\":" #faults "}"
#define OVER(waited, collecting) OVER_WITH(waited, collecting, 0)

static void expect(const char *facts, const char *cause, const char *kind)
{
	char *text, member[256];
	size_t size;
	struct ops_error error;

	assert_int_equal(ops_incident_report(facts, strlen(facts), NULL, &text, &size, &error), OPS_OK);
	snprintf(member, sizeof(member), "\"cause_kind\":\"%s\"", kind);
	if (!strstr(text, member) || !strstr(text, cause))
		print_message("%s\n", text);
	assert_non_null(strstr(text, member));
	assert_non_null(strstr(text, cause));
	ops_free(text);
}

static void slow_steps(void **state)
{
	(void)state;
	expect(SLOW(OVER(0, 0) ",\"sample_count\":10,\"samples\":["
	            SAMPLE(9, "S", SLEEPS, FRAME("/usr/lib/python3.11/x.py", 3, "inner") "," FRAME("/home/train.py", 12, "wait")) ","
	            SAMPLE(1, "R", "null", FRAME("/home/train.py", 13, "wait")) "]"),
	       "Sleeping at /home/train.py:12 in wait, 90.0 % of the time that the step took too long.", "sleep");
	expect(SLOW(OVER(0, 800000000) ",\"sample_count\":1,\"samples\":[" SAMPLE(1, "R", "null", FRAME("/home/train.py", 12, "f")) "]"),
	       "Garbage collection at /home/train.py:12 in f, 80.0 %", "garbage_collection");
	expect(SLOW(OVER(700000000, 0) ",\"sample_count\":1,\"samples\":[" SAMPLE(1, "R", "null", FRAME("/home/train.py", 12, "f")) "]"),
	       "Waiting for a CPU", "waited_for_cpu");
	/* 0.42 s of the 0.7 s in which it did not wait for a processor */
	expect(SLOW(OVER_WITH(300000000, 0, 4200) ",\"sample_count\":1,\"samples\":[" SAMPLE(1, "R", "null", FRAME("/home/train.py", 12, "f")) "]"),
	       "Reading memory pages from a disk", "page_faults");
	expect(SLOW(OVER_WITH(0, 0, 4200) ",\"sample_count\":1,\"samples\":[" SAMPLE(1, "R", "null", FRAME("/home/train.py", 12, "f")) "]"),
	       "Running at /home/train.py:12", "computing");
	expect(SLOW("\"sample_count\":1,\"samples\":[" SAMPLE(1, "S", WAITS, FRAME("/home/train.py", 12, "f")) "],\"threads\":["
	            THREAD(7, "S", WAITS, FRAME("/home/train.py", 12, "f")) ","
	            THREAD(8, "S", SLEEPS, FRAME("/home/save.py", 30, "save")) "]"),
	       "Thread 8 is sleeping at /home/save.py:30 in save.", "lock");
	expect(SLOW("\"sample_count\":1,\"samples\":["
	            SAMPLE(1, "S", WAITS, FRAME("/x/site-packages/torch/utils/data/dataloader.py", 9, "_MultiProcessingDataLoaderIter._get_data") ","
	                   FRAME("/home/train.py", 12, "f")) "]"),
	       "Waiting for the workers of a data loader at /home/train.py:12", "data_loader");
	expect(SLOW("\"threads\":[]"), "Unknown: nothing was seen", "unknown");
}

static void hangs(void **state)
{
	(void)state;
	expect("{\"trigger\":\"hang\",\"tid\":7,\"quiet_ns\":120000000000,\"rank\":1,\"world_size\":4,\"threads\":["
	       THREAD(7, "S", WAITS, FRAME("/x/site-packages/torch/distributed/distributed_c10d.py", 9, "all_reduce") ","
	              FRAME("/home/train.py", 12, "f")) "]}",
	       "Waiting in a collective operation at /home/train.py:12 in f: all_reduce on rank 1 of 4, for another rank.", "collective");
	expect("{\"trigger\":\"hang\",\"tid\":7,\"quiet_ns\":1,\"threads\":["
	       THREAD(7, "S", WAITS, FRAME("/home/train.py", 12, "f")) ","
	       "{\"tid\":8,\"has_gil\":true,\"state\":\"S\",\"python\":[" FRAME("/home/bind.py", 4, "call") "]}]}",
	       "Thread 8 holds the interpreter's lock (GIL) in C code called at /home/bind.py:4 in call.", "gil");
	/* C functions before the interpreter; a frame without a name is passed over */
	expect("{\"trigger\":\"hang\",\"tid\":7,\"quiet_ns\":1,\"threads\":["
	       "{\"tid\":7,\"has_gil\":true,\"state\":\"R\",\"python\":[" FRAME("/home/train.py", 12, "f") "]}],\"native\":[{\"tid\":7,\"frames\":["
	       "{\"function\":\"\",\"file\":\"\",\"line\":0,\"library\":\"libx.so\"},"
	       "{\"function\":\"solve\",\"file\":\"\",\"line\":0,\"library\":\"libx.so\"},"
	       "{\"function\":\"_PyEval_EvalFrameDefault\",\"file\":\"ceval.c\",\"line\":9,\"library\":\"libpython.so\"},"
	       "{\"function\":\"main\",\"file\":\"main.c\",\"line\":3,\"library\":\"python\"}]}]}",
	       "Running at /home/train.py:12 in f, which is in the C function solve of libx.so.", "computing");
	expect("{\"trigger\":\"hang\",\"tid\":7,\"threads\":[{\"tid\":7}],\"native\":[{\"tid\":7,\"frames\":["
	       "{\"function\":\"solve\",\"file\":\"/x.c\",\"line\":5},{\"function\":\"_PyEval_Vector\"},{\"function\":\"main\"}]},{\"tid\":8,\"frames\":3}]}",
	       "\"thread_native\":[[{\"file\":\"/x.c\",\"line\":5,\"function\":\"solve\"}]]", "unknown");
	expect("{\"trigger\":\"hang\",\"tid\":9,\"quiet_ns\":1,\"threads\":[]}", "Unknown: the stack", "unknown");
}

static void ends(void **state)
{
	(void)state;
	expect("{\"trigger\":\"signal\",\"signal\":{\"number\":11,\"name\":\"SIGSEGV\",\"address\":16,\"python\":["
	       FRAME("/home/train.py", 12, "f") "]}}",
	       "SIGSEGV at /home/train.py:12 in f, at address 0x10.", "signal");
	expect("{\"trigger\":\"killed\",\"tid\":7,\"process_memory\":{\"rss_bytes\":990,\"limit_bytes\":1000},\"threads\":[]}",
	       "probably killed by the kernel", "oom_kill");
	expect("{\"trigger\":\"killed\",\"tid\":7,\"process_memory\":{\"rss_bytes\":500,\"limit_bytes\":1000,\"oom_kills\":1},\"threads\":[]}",
	       "Out of memory: killed by the kernel", "oom_kill");
	expect("{\"trigger\":\"exception\",\"exception\":{\"type\":\"ValueError\",\"message\":\"a \\\"b\\\"\",\"python\":["
	       FRAME("<string>", 2, "<module>") "]}}",
	       "ValueError at <string>:2 in <module>: a \\\"b\\\".", "exception");
	expect("{\"trigger\":\"exit\",\"exit\":{\"status\":3}}", "os._exit(3).", "exit");
	expect("{}", "\"title\":\"requested\"", "unknown");
}

static void wrong_facts(void **state)
{
	static const char *const wrong[] = {"", "[]", "{", "7", "{\"trigger\":}"};
	struct ops_error error;
	size_t size;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ops_incident_report(wrong[i], strlen(wrong[i]), NULL, &text, &size, &error), OPS_CORRUPT);
	/* members of other types are as good as missing */
	expect("{\"trigger\":[],\"step\":[1],\"threads\":{\"a\":1},\"samples\":[1,{}],\"signal\":3,\"process_memory\":null}",
	       "\"title\":\"requested\"", "unknown");
}

static void page_and_table(void **state)
{
	const char *facts = SLOW(OVER(0, 0) ",\"sample_count\":1,\"samples\":[" SAMPLE(1, "S", SLEEPS, FRAME("/home/a|b.py", 12, "f"))
	                         "],\"suppressed\":{\"hang\":2}");
	struct ops_string id = {"20231114-221320-7", 17}, report;
	struct ops_error error;
	char *report_text, *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_incident_report(facts, strlen(facts), NULL, &report_text, &size, &error), OPS_OK);
	report = (struct ops_string){report_text, size};
	assert_int_equal(ops_incident_page(report.bytes, report.size, OPS_FORMAT_TEXT, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "step 57 took 1.20 s, usually 20.0 ms\n\ncause: Sleeping at /home/a|b.py:12"));
	assert_non_null(strstr(text, "2023-11-14 22:13:20 UTC"));
	assert_non_null(strstr(text, "because there were too many: 2 hang"));
	ops_free(text);
	assert_int_equal(ops_incident_page(report.bytes, report.size, OPS_FORMAT_MARKDOWN, &text, &size, &error), OPS_OK);
	assert_true(strncmp(text, "## ", 3) == 0);
	ops_free(text);
	assert_int_equal(ops_incident_page(report.bytes, report.size, OPS_FORMAT_CSV, &text, &size, &error), OPS_INVALID);
	assert_int_equal(ops_incident_table(&id, &report, 1, OPS_FORMAT_CSV, 0, &text, &size, &error), OPS_OK);
	assert_string_equal(text, "id,when,process,pid,what,cause,where,overhead,has_trace\n"
	                          "20231114-221320-7,2023-11-14 22:13:20,train,7,\"step 57 took 1.20 s, usually 20.0 ms\",sleep,/home/a|b.py:12,,no\n");
	ops_free(text);
	ops_free(report_text);
}

static void overhead(void **state)
{
	static const char with[] =
		"{\"title\":\"t\",\"cause\":\"c\",\"black_box\":{\"overhead\":{\"share\":0.0041,\"low\":-0.001,\"high\":0.0092,"
		"\"shadow_steps\":31},\"budget\":0.01,\"detail\":\"allocations\",\"exceeded\":0.21}}";
	static const char without[] = "{\"title\":\"t\",\"cause\":\"c\",\"black_box\":{\"overhead\":null,\"budget\":0.01,"
				      "\"detail\":\"operators\",\"exceeded\":null}}";
	static const char early[] = "{\"title\":\"t\",\"cause\":\"c\",\"black_box\":{\"overhead\":null,\"shadow_steps\":3,\"budget\":0.01,"
				    "\"detail\":\"operators\",\"exceeded\":null}}";
	static const char steps[] = "{\"title\":\"t\",\"cause\":\"c\",\"black_box\":{\"unit\":\"call\",\"overhead\":null,\"shadow_steps\":3,\"budget\":0.01,"
				    "\"detail\":\"steps\",\"exceeded\":0.02,\"expected\":true}}";
	struct ops_string id = {"a", 1}, report = {with, sizeof(with) - 1}, early_report = {early, sizeof(early) - 1};
	struct ops_error error;
	size_t size;
	char *text;

	(void)state;
	assert_int_equal(ops_incident_page(with, sizeof(with) - 1, OPS_FORMAT_TEXT, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "overhead  0.41 % of a step (-0.10 % to 0.92 %, 31 shadow steps)\n"));
	assert_non_null(strstr(text, "detail    operators are not recorded: recording took 21.0 % of a step, and the budget is 1.00 %\n"));
	ops_free(text);
	assert_int_equal(ops_incident_table(&id, &report, 1, OPS_FORMAT_CSV, 0, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "\"0.41 % (-0.10 % to 0.92 %), without operators\""));
	ops_free(text);
	assert_int_equal(ops_incident_page(without, sizeof(without) - 1, OPS_FORMAT_TEXT, &text, &size, &error), OPS_OK);
	assert_null(strstr(text, "overhead")); /* of a version that did not count them */
	assert_null(strstr(text, "detail"));
	ops_free(text);
	assert_int_equal(ops_incident_page(early, sizeof(early) - 1, OPS_FORMAT_TEXT, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "overhead  not yet known (3 shadow steps)\n"));
	ops_free(text);
	assert_int_equal(ops_incident_page(steps, sizeof(steps) - 1, OPS_FORMAT_TEXT, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "detail    only steps are recorded: recording would take about 2.00 % of a call of the model, and the budget is 1.00 %\n"));
	assert_non_null(strstr(text, "overhead  not yet known (3 shadow calls)\n"));
	ops_free(text);
	assert_int_equal(ops_incident_table(&id, &early_report, 1, OPS_FORMAT_CSV, 0, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, ",not yet known,"));
	ops_free(text);
}

/* Twenty steps of 10 ms, then one of 1 s, most of it in load_shard. All steps are sampled every 2 ms, the last every 20 ms. */
static struct ops_trace *sampled_trace(void)
{
	static char text[16384];
	int at = snprintf(text, sizeof(text), "{\"traceEvents\":[");
	struct ops_trace *trace;
	struct ops_error error;

	for (int i = 0; i < 21; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at,
		               "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":7,\"tid\":7,\"ts\":%d,\"dur\":%d}",
		               i ? "," : "", 37 + i, 1000 + 10000 * i, i < 20 ? 10000 : 1000000);
	at += snprintf(text + at, sizeof(text) - (size_t)at,
	               "],\"python_samples\":{\"version\":1,\"start_ns\":1000000,\"functions\":[[\"/home/train.py\",\"main\"],"
	               "[\"/home/train.py\",\"load_shard\"]],\"stacks\":[-1,0,5,-1,0,6,1,1,88],\"threads\":["
	               "{\"tid\":8,\"samples\":[0,20000,2,6]},{\"tid\":7,\"samples\":[");
	for (int i = 0; i < 100; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%d,2000,0,0,", 2000 * i + 1);
	for (int i = 0; i < 50; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d,20000,%d,%d", i ? "," : "", 200000 + 20000 * i + 1, i < 10 ? 0 : 2,
		               i < 10 ? 0 : 6);
	at += snprintf(text + at, sizeof(text) - (size_t)at, "]}]}}");
	assert_true((size_t)at < sizeof(text));
	if (ops_trace_read_memory(text, (size_t)at, NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

/* Without samples of the time beyond the limit, those of the black box show the cause. */
static void sampled_stacks(void **state)
{
	static const char facts[] = SLOW("\"threads\":[]");
	struct ops_trace *trace = sampled_trace();
	struct ops_error error;
	char *report, *page;
	size_t size, page_size;

	(void)state;
	assert_int_equal(ops_incident_report(facts, sizeof(facts) - 1, trace, &report, &size, &error), OPS_OK);
	assert_non_null(strstr(report, "\"cause\":\"Sleeping at /home/train.py:88 in load_shard: 80.0 % of the sampled time of the step, 0 % of that "
	                               "of other steps. More than in other steps: Python and other +990 ms."));
	assert_non_null(strstr(report, "\"cause_kind\":\"sleep\""));
	assert_non_null(strstr(report, "\"sampled\":{\"tid\":7,\"samples\":50,\"usual_samples\":100,\"usual_steps\":20,\"period_ns\":20000000,"));
	assert_non_null(strstr(report, "\"share\":0.2,\"usual_share\":1}"));
	assert_int_equal(ops_incident_page(report, size, OPS_FORMAT_TEXT, &page, &page_size, &error), OPS_OK);
	assert_non_null(strstr(page, "\nsampled stacks of its thread\n"
	                             "  50 samples of the step and 100 of 20 other steps, one each 20.0 ms of wall-clock time\n"
	                             "  80.0 % (0 % in other steps)  sleeping at /home/train.py:88 in load_shard\n"
	                             "  20.0 % (100 % in other steps)  running at /home/train.py:5 in main\n"));
	ops_free(page);
	ops_free(report);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_steps), cmocka_unit_test(hangs),          cmocka_unit_test(ends),
		cmocka_unit_test(wrong_facts), cmocka_unit_test(page_and_table),
		cmocka_unit_test(overhead), cmocka_unit_test(sampled_stacks),
	};

	return cmocka_run_group_tests_name("incident", tests, NULL, NULL);
}
