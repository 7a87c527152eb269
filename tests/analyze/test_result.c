/* SPDX-License-Identifier: Apache-2.0
 *
 * Results in their formats.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/comma.h"
#include "analyze/result.h"
#include "base/alloc.h"

static void fill(struct result *result)
{
	struct result_table *table = &result->table;

	result_column(table, "name", RESULT_TEXT);
	result_column(table, "rank", RESULT_INTEGER);
	result_column(table, "time", RESULT_TIME);
	result_column(table, "pctg", RESULT_NUMBER);
	result_text(table, (struct ops_string){"a|\"b\",c", 7});
	result_integer(table, -3);
	result_time(table, 1500);
	result_number(table, 12.5);
	result_text_copy(table, "x\n", 2);
	result_null(table);
	result_time(table, 2000);
	result_number(table, __builtin_nan(""));
}

static void assert_written(const struct result *result, enum ops_format format, const char *expected)
{
	struct ops_buffer out = {0};

	assert_true(result_write(result, format, &out));
	ops_buffer_append(&out, "", 1);
	assert_string_equal(out.bytes, expected);
	ops_buffer_release(&out);
}

static void test_forms_of_a_table(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	fill(&result);
	assert_written(&result, OPS_FORMAT_JSON,
	               "{\"table\":{\"columns\":[\"name\",\"rank\",\"time\",\"pctg\"],\"rows\":[[\"a|\\\"b\\\",c\",-3,1.5,12.5],"
	               "[\"x\\n\",null,2,null]]}}\n");
	assert_written(&result, OPS_FORMAT_TEXT,
	               "name     rank     time  pctg\n"
	               "a|\"b\",c    -3  1.50 µs  12.5\n"
	               "x.          -  2.00 µs     -\n");
	assert_written(&result, OPS_FORMAT_CSV, "name,rank,time,pctg\n\"a|\"\"b\"\",c\",-3,1.5,12.5\n\"x\n\",,2,\n");
	assert_written(&result, OPS_FORMAT_MARKDOWN,
	               "| name | rank | time | pctg |\n|---|--:|--:|--:|\n| `a\\|\"b\",c` | -3 | 1.50 µs | 12.5 |\n"
	               "| `x.` | - | 2.00 µs | - |\n");
	result_table_cut(&result.table, 1);
	assert_int_equal(result.table.total_rows, 2);
	assert_int_equal(result_table_rows(&result.table), 1);
	result_release(&result);
}

/* Text shows some of them in the unit that fits. */
static const struct result_column unit_columns[] = {
	{.name = "ts", .type = RESULT_MOMENT, .title = "Start"},
	{.name = "mean", .type = RESULT_NUMBER, .title = "Mean", .unit = "us"},
	{.name = "gain", .type = RESULT_NUMBER, .title = "Gain", .unit = "ms"},
	{.name = "size", .type = RESULT_NUMBER, .title = "Size", .unit = "bytes"},
	{.name = "speed", .type = RESULT_NUMBER, .title = "Speed", .unit = "GB/s"},
};

static void test_units(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	result_column(&result.table, "calls", RESULT_COUNT);
	result_column(&result.table, "pid", RESULT_INTEGER);
	result_column(&result.table, "dur_us", RESULT_TIME);
	result_columns(&result.table, &(struct result_column){.name = "sum", .type = RESULT_TIME, .unbounded = true}, 1);
	result_column(&result.table, "held", RESULT_BYTES);
	result_column(&result.table, "pctg", RESULT_PERCENT);
	RESULT_DECLARED(&result.table, unit_columns);
	result_integer(&result.table, 1234567);
	result_integer(&result.table, 1234567);
	result_time(&result.table, 1234567891);
	result_time(&result.table, -999000);
	result_integer(&result.table, -1000);
	result_number(&result.table, 12.04);
	result_time(&result.table, 1234567891);
	result_number(&result.table, 1.75);
	result_number(&result.table, 2.25);
	result_number(&result.table, 1536);
	result_number(&result.table, 1234.5678);
	result_integer(&result.table, INT64_MIN);
	result_integer(&result.table, 0);
	result_time(&result.table, 100000);
	result_null(&result.table);
	result_integer(&result.table, 999);
	result_number(&result.table, __builtin_nan(""));
	result_time(&result.table, -1000); /* no moment */
	for (int i = 0; i < 4; i++)
		result_null(&result.table);
	assert_written(&result, OPS_FORMAT_TEXT,
	               "   calls      pid  dur_us      sum      held    pctg       Start     Mean     Gain      Size  Speed (GB/s)\n"
	               "  1.23 M  1234567  1.23 s  -999 µs  -1,000 B  12.0 %  1.234568 s  1.75 µs  2.25 ms  1.50 KiB         1,235\n"
	               "-9,223 P        0  100 µs        -     999 B       -           -        -        -         -             -\n");
	assert_written(&result, OPS_FORMAT_CSV,
	               "calls,pid,dur_us,sum,held,pctg,ts,mean,gain,size,speed\n"
	               "1234567,1234567,1234567.891,-999,-1000,12.04,1234567.891,1.75,2.25,1536,1234.5678\n"
	               "-9223372036854775808,0,100,,999,,-1,,,,\n");
	assert_written(&result, OPS_FORMAT_JSON,
	               "{\"table\":{\"columns\":[\"calls\",\"pid\",\"dur_us\",\"sum\",\"held\",\"pctg\",\"ts\",\"mean\",\"gain\","
	               "\"size\",\"speed\"],\"rows\":[[1234567,1234567,1234567.891,-999,-1000,12.04,1234567.891,1.75,2.25,1536,1234.5678],"
	               "[-9223372036854775808,0,100,null,999,null,-1,null,null,null,null]]}}\n");
	result_release(&result);
}

/* A row type and its columns, as analyses declare them. */
struct part {
	const char *name;
	int64_t ns, bytes, count;
	double change;
};
RESULT_GETTER(get_name, struct part, text, (struct ops_string){row->name, strlen(row->name)})
RESULT_GETTER(get_ns, struct part, integer, row->ns)
RESULT_GETTER(get_bytes, struct part, integer, row->bytes)
RESULT_GETTER(get_count, struct part, integer, row->count)
RESULT_GETTER(get_change, struct part, number, row->change)

static const struct result_column part_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Part", .get = get_name},
	{.name = "total_us", .type = RESULT_TIME, .title = "Time", .get = get_ns},
	{.name = "peak_bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Peak", .get = get_bytes},
	{.name = "operations", .type = RESULT_COUNT, .get = get_count},
	{.name = "change_percent", .type = RESULT_CHANGE, .priority = RESULT_MAJOR, .title = "Change", .get = get_change},
};

static void test_declared_columns(void **state)
{
	struct result result;
	struct result_table *table = &result.table;

	(void)state;
	result_init(&result);
	result_column(table, "rank", RESULT_INTEGER);
	result_columns(table, part_columns, sizeof(part_columns) / sizeof(part_columns[0]));
	result_integer(table, 7);
	result_add(table, &(struct part){"a", 1500, 2048, 1234, -12.34});
	result_integer(table, 8);
	result_add(table, &(struct part){"b", 2500000, 0, 4200000000, __builtin_nan("")});
	assert_written(&result, OPS_FORMAT_CSV, "rank,name,total_us,peak_bytes,operations,change_percent\n"
	                                          "7,a,1.5,2048,1234,-12.34\n8,b,2500,0,4200000000,\n");
	assert_written(&result, OPS_FORMAT_TEXT, "rank  Part     Time      Peak  operations   Change\n"
	                                           "   7  a     1.50 µs  2.00 KiB       1,234  -12.3 %\n"
	                                           "   8  b     2.50 ms       0 B      4.20 G      new\n");
	assert_written(&result, OPS_FORMAT_MARKDOWN, "| rank | Part | Time | Peak | operations | Change |\n"
	                                               "|--:|---|--:|--:|--:|--:|\n"
	                                               "| 7 | a | 1.50 µs | 2.00 KiB | 1,234 | -12.3 % |\n"
	                                               "| 8 | b | 2.50 ms | 0 B | 4.20 G | new |\n");
	result.room = 32; /* the minor column is left out first, then those without a priority, and never the major one */
	assert_written(&result, OPS_FORMAT_TEXT, "rank  Part     Time   Change\n"
	                                           "   7  a     1.50 µs  -12.3 %\n"
	                                           "   8  b     2.50 ms      new\n"
	                                           "no room for Peak, operations: a\n"
	                                           "wider terminal shows more, '|\nless -S' all\n");
	result_release(&result);
}

/* Only where no row has a figure; and after rows are cut, for those that remain. */
static void test_empty_columns(void **state)
{
	struct result result;
	struct result_table *table = &result.table;

	(void)state;
	result_init(&result);
	result_columns(table, part_columns, sizeof(part_columns) / sizeof(part_columns[0]));
	result_add(table, &(struct part){"a", 0, 0, 0, __builtin_nan("")});
	result_add(table, &(struct part){"b", 400, 0, 0, __builtin_nan("")});
	result_add(table, &(struct part){"c", 0, 5, 0, __builtin_nan("")});
	result_table_cut(table, 2);
	result_table_omit_empty(table);
	assert_written(&result, OPS_FORMAT_TEXT, "Part    Time\na          0\nb     400 ns\nand 1 more\n");
	assert_written(&result, OPS_FORMAT_MARKDOWN, "| Part | Time |\n|---|--:|\n| a | 0 |\n| b | 400 ns |\n\nand 1 more\n");
	assert_written(&result, OPS_FORMAT_JSON,
	               "{\"table\":{\"columns\":[\"name\",\"total_us\"],\"rows\":[[\"a\",0],[\"b\",0.4]],\"total_rows\":3}}\n");
	result_release(&result);
}

/* A row type whose members are the cells. */
struct member_row {
	const char *name;
	struct ops_string text;
	int32_t small;
	uint32_t count;
	int64_t ns;
	double speed;
};
static const struct result_column member_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Name", RESULT_FIELD(struct member_row, name)},
	{.name = "text", .type = RESULT_TEXT, .title = "Text", RESULT_FIELD(struct member_row, text)},
	{.name = "small", .type = RESULT_INTEGER, .title = "Small", RESULT_FIELD(struct member_row, small)},
	{.name = "count", .type = RESULT_COUNT, .title = "Count", .option = 2, RESULT_FIELD(struct member_row, count)},
	{.name = "ns", .type = RESULT_TIME, .title = "Time", RESULT_FIELD(struct member_row, ns)},
	{.name = "speed", .type = RESULT_NUMBER, .title = "Speed", .unit = "GB/s", .option = 1,
	 RESULT_FIELD(struct member_row, speed)},
};
static const struct result_declaration members = RESULT_DECLARATION("members", "A row", member_columns);

static void add_members(struct result_table *table)
{
	result_add(table, &(struct member_row){"a", {"b", 1}, -1, UINT32_MAX, 1500, 2.5});
	result_add(table, &(struct member_row){NULL, {NULL, 0}, 0, 0, RESULT_NULL, __builtin_nan("")});
}

/* Programs see names, people titles with units; columns of an option are there if it is given. */
static void test_members_of_a_row(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	result_declare(&result.table, &members, 3);
	add_members(&result.table);
	assert_written(&result, OPS_FORMAT_JSON,
	               "{\"table\":{\"columns\":[\"name\",\"text\",\"small\",\"count\",\"ns\",\"speed\"],"
	               "\"rows\":[[\"a\",\"b\",-1,4294967295,1.5,2.5],[null,null,0,0,null,null]]}}\n");
	assert_written(&result, OPS_FORMAT_TEXT,
	               "Name  Text  Small   Count     Time  Speed (GB/s)\n"
	               "a     b        -1  4.29 G  1.50 µs           2.5\n"
	               "-     -         0       0        -             -\n");
	assert_written(&result, OPS_FORMAT_MARKDOWN,
	               "| Name | Text | Small | Count | Time | Speed (GB/s) |\n|---|---|--:|--:|--:|--:|\n"
	               "| a | b | -1 | 4.29 G | 1.50 µs | 2.5 |\n| - | - | 0 | 0 | - | - |\n");
	result_release(&result);
	result_init(&result);
	result_declare(&result.table, &members, 1);
	add_members(&result.table);
	assert_written(&result, OPS_FORMAT_CSV, "name,text,small,ns,speed\na,b,-1,1.5,2.5\n,,0,,\n");
	result_release(&result);
}

static void add_time(struct result_table *table, const char *name, int64_t ns)
{
	result_text(table, (struct ops_string){name, strlen(name)});
	if (ns)
		result_time(table, ns);
	else
		result_null(table);
}

static void test_order_of_rows(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	result_column(&result.table, "name", RESULT_TEXT);
	result_column(&result.table, "sum", RESULT_TIME);
	add_time(&result.table, "a", 1000);
	add_time(&result.table, "b", 3000);
	add_time(&result.table, "c", 0);
	add_time(&result.table, "d", 3000);
	add_time(&result.table, "e", 9000);
	result_table_sort(&result.table);
	assert_written(&result, OPS_FORMAT_CSV, "name,sum\na,1\nb,3\nc,\nd,3\ne,9\n");
	result.table.matters = "sum";
	result_table_sort(&result.table);
	assert_written(&result, OPS_FORMAT_CSV, "name,sum\ne,9\nb,3\nd,3\na,1\nc,\n");
	result_release(&result);
}

#define ELEMENTWISE(what) \
	"void at::native::vectorized_elementwise_kernel<4, at::native::" what "Functor<float>, std::array<char*, 3ul> >(int)"

/* Names that begin and end alike, as those of templates do. */
static void test_names_stay_different(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	result.room = 44;
	result_column(&result.table, "name", RESULT_TEXT);
	result_column(&result.table, "count", RESULT_COUNT);
	result_text(&result.table, (struct ops_string){ELEMENTWISE("CUDA_add"), strlen(ELEMENTWISE("CUDA_add"))});
	result_integer(&result.table, 1);
	result_text(&result.table, (struct ops_string){ELEMENTWISE("Mul"), strlen(ELEMENTWISE("Mul"))});
	result_integer(&result.table, 2);
	result_text(&result.table, (struct ops_string){ELEMENTWISE("CUDA_add"), strlen(ELEMENTWISE("CUDA_add"))});
	result_integer(&result.table, 3);
	assert_written(&result, OPS_FORMAT_TEXT,
	               "name                                   count\n"
	               "void at::nati…ve::CUDA_addFuncto…int)      1\n"
	               "void at::nati…ve::MulFunctor<flo…int)      2\n"
	               "void at::nati…ve::CUDA_addFuncto…int)      3\n");
	result_release(&result);
}

static void test_forms_of_a_tree(void **state)
{
	static const char tree[] = "{\"0\":{\"rows\":2,\"names\":[\"a\",\"b\"]}}";
	struct result result;

	(void)state;
	result_init(&result);
	assert_written(&result, OPS_FORMAT_JSON, "{\"value\":null}\n");
	ops_json_raw(&result.json, tree, strlen(tree));
	assert_written(&result, OPS_FORMAT_JSON, "{\"value\":{\"0\":{\"rows\":2,\"names\":[\"a\",\"b\"]}}}\n");
	assert_written(&result, OPS_FORMAT_CSV, "field,value\n0.rows,2\n0.names.0,a\n0.names.1,b\n");
	assert_written(&result, OPS_FORMAT_TEXT, "Field    Value\n0.rows   2\n0.names  a, b\n");
	result_release(&result);
}

static void put_table(struct result *result, const char *column, int rows, int *value, size_t total)
{
	struct result_table table = {.copies = true};

	result_column(&table, column, RESULT_INTEGER);
	for (int i = 0; i < rows; i++)
		result_integer(&table, (*value)++);
	table.total_rows = total;
	result_put_table(result, &table);
}

/* A tree with values, a table and lists. */
static void fill_tree(struct result *result)
{
	struct result_table table = {.copies = true};

	ops_json_open(&result->json, '{');
	ops_json_key(&result->json, "0");
	ops_json_open(&result->json, '{');
	ops_json_key(&result->json, "mean");
	ops_json_number(&result->json, 9.454648251192381);
	ops_json_key(&result->json, "tiny");
	ops_json_number(&result->json, 1.5e-9);
	ops_json_key(&result->json, "first");
	result_columns(&table, &(struct result_column){.name = "a", .type = RESULT_TEXT, .title = "A"}, 1);
	result_column(&table, "n", RESULT_TIME);
	result_text(&table, (struct ops_string){"x\"y", 3});
	result_time(&table, 100);
	result_text(&table, (struct ops_string){"z", 1});
	result_null(&table);
	table.failed |= result->value.failed;
	result_put_table(result, &table);
	ops_json_close(&result->json, '}');
	ops_json_key(&result->json, "lists");
	ops_json_raw(&result->json, "[[1,2],[]]", 10);
	ops_json_close(&result->json, '}');
}

static void test_tables_in_a_tree(void **state)
{
	struct result result;

	(void)state;
	result_init(&result);
	result.keeps_parts = true;
	fill_tree(&result);
	assert_written(&result, OPS_FORMAT_TEXT,
	               "Field    Value\n0.mean   9.454648\n0.tiny   0.0000000015\nlists.0  1, 2\nlists.1\n\n"
	               "0.first:\nA         n\nx\"y  100 ns\nz         -\n");
	assert_written(&result, OPS_FORMAT_MARKDOWN,
	               "| Field | Value |\n|---|---|\n| 0.mean | 9.454648 |\n| 0.tiny | 0.0000000015 |\n| `lists.0` | 1, 2 |\n"
	               "| `lists.1` |  |\n\n0.first\n\n| A | n |\n|---|--:|\n| `x\"y` | 100 ns |\n| z | - |\n");
	assert_written(&result, OPS_FORMAT_CSV,
	               "field,value\n0.mean,9.454648251192381\n0.tiny,0.0000000015\n0.first.columns.0,a\n0.first.columns.1,n\n"
	               "0.first.rows.0.0,\"x\"\"y\"\n0.first.rows.0.1,0.1\n0.first.rows.1.0,z\n0.first.rows.1.1,null\n"
	               "lists.0.0,1\nlists.0.1,2\n");
	result_release(&result);
}

/* One table of all ranks, in every form but JSON. */
static void put_ranks(struct result *result, const char *column, const char *other)
{
	int value = 1;

	result_init(result);
	result->keeps_parts = true;
	ops_json_open(&result->json, '{');
	ops_json_key(&result->json, "0");
	put_table(result, column, 2, &value, 9);
	ops_json_key(&result->json, "3");
	put_table(result, other, 1, &value, 0);
	ops_json_close(&result->json, '}');
}

static void test_tables_of_ranks(void **state)
{
	struct result result;

	(void)state;
	put_ranks(&result, "a", "a");
	assert_written(&result, OPS_FORMAT_JSON,
	               "{\"value\":{\"0\":{\"columns\":[\"a\"],\"rows\":[[1],[2]],\"total_rows\":9},"
	               "\"3\":{\"columns\":[\"a\"],\"rows\":[[3]]}}}\n");
	assert_written(&result, OPS_FORMAT_TEXT, "Rank  a\n   0  1\n   0  2\n   3  3\nand 7 more\n");
	assert_written(&result, OPS_FORMAT_CSV, "rank,a\n0,1\n0,2\n3,3\n");
	result_release(&result);
	put_ranks(&result, "a", "b");
	assert_written(&result, OPS_FORMAT_TEXT, "0:\na\n1\n2\nand 7 more\n\n3:\nb\n3\n");
	result_release(&result);
}

static void write_without_memory(void (*make)(struct result *result))
{
	bool done = false;

	for (uint64_t nth = 1; !done; nth++) {
		struct ops_buffer out = {0};
		struct result result;

		result_init(&result);
		result.keeps_parts = true;
		ops_alloc_fail_at(nth, false);
		make(&result);
		done = result_write(&result, OPS_FORMAT_TEXT, &out);
		ops_alloc_fail_at(0, false);
		result_release(&result);
		ops_buffer_release(&out);
	}
}

static void test_no_memory(void **state)
{
	(void)state;
	write_without_memory(fill);
	write_without_memory(fill_tree);
}

static void test_rounding(void **state)
{
	(void)state;
	assert_true(result_round(12.345678, 2) == 12.35);
	assert_true(result_round(0.125, 2) == 0.12);
}

static void write_short_numbers(void)
{
	static const struct {
		double value;
		const char *text;
	} known[] = {{5, "5"}, {0.5, "0.5"}, {-1234.5678906, "-1234.567891"}, {0.0010004, "0.001"}, {123456789012345.5, "123456789012345.5"},
	             {1.25e-7, "0.000000125"}, {1e20, "1e+20"}};
	char out[32];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		*result_short_number(out, known[i].value) = '\0';
		assert_string_equal(out, known[i].text);
	}
}

static void test_short_numbers(void **state)
{
	(void)state;
	write_short_numbers();
	with_comma(write_short_numbers);
}

#ifndef NDEBUG
struct shown_row {
	double percent;
	int64_t ns;
};

static const struct result_column shown_columns[] = {
	{.name = "share", .type = RESULT_PERCENT, RESULT_FIELD(struct shown_row, percent)},
	{.name = "time", .type = RESULT_TIME, RESULT_FIELD(struct shown_row, ns)},
	{.name = "change", .type = RESULT_TIME, .unbounded = true, RESULT_FIELD(struct shown_row, ns)},
};

/* Returns true if an assertion ends the process that shows a row, in a table or as an object. */
static bool is_refused(struct shown_row row, size_t columns, bool as_object)
{
	const struct result_declaration declaration = {.id = "shown", .about = "", .columns = shown_columns + 3 - columns, .count = columns};
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct ops_buffer out = {0};
		struct ops_json_writer json = {.out = &out};
		struct result_table table = {.failed = false};

		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		if (as_object) {
			result_object_json(&declaration, 0, &row, &json);
		} else {
			result_declare(&table, &declaration, 0);
			result_add(&table, &row);
		}
		_exit(0);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* No share above 100 % and no negative time is shown. */
static void test_impossible_figures(void **state)
{
	(void)state;
	for (int as_object = 0; as_object < 2; as_object++) {
		assert_false(is_refused((struct shown_row){100.001, 0}, 3, as_object));
		assert_true(is_refused((struct shown_row){100.1, 0}, 3, as_object));
		assert_true(is_refused((struct shown_row){-0.1, 0}, 3, as_object));
		assert_true(is_refused((struct shown_row){50, -1}, 3, as_object));
		assert_false(is_refused((struct shown_row){50, -1}, 1, as_object)); /* a difference */
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_of_a_table),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_declared_columns),
		cmocka_unit_test(test_empty_columns),
		cmocka_unit_test(test_members_of_a_row),
		cmocka_unit_test(test_order_of_rows),
		cmocka_unit_test(test_names_stay_different),
		cmocka_unit_test(test_forms_of_a_tree),
		cmocka_unit_test(test_tables_in_a_tree),
		cmocka_unit_test(test_tables_of_ranks),
		cmocka_unit_test(test_no_memory),
#ifndef NDEBUG
		cmocka_unit_test(test_impossible_figures),
#endif
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_short_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
