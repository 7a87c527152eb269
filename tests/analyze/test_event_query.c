/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions in filters: their meaning, errors and their positions, and all kinds of texts. tests/cli/test_analyze_filters.py
 * compares them with a simple program.
 */
#include "analyze/events/event_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../base/comma.h"
#include "asking.h"

static const char rows[] =
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10.5,\"dur\":8,"
	"\"args\":{\"External id\":7,\"a b\":\"x\\\"y\",\"yes\":true,\"nothing\":null,\"list\":[1, 2]}},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<float>(int)\",\"pid\":0,\"tid\":7,\"ts\":20.5,\"dur\":2,"
	"\"args\":{\"stream\":7,\"External id\":\"seven\",\"yes\":false}}";

/* The rows left, as digits. */
static void ask(const char *expression, const char *left)
{
	struct ops_rank rank = {.trace = asking_trace(rows)};
	struct ops_error error;
	char args[600], found[8] = "", *text;
	struct ops_analyze_options options = {.args = args, .format = OPS_FORMAT_CSV};
	size_t size = 0;

	assert_true(snprintf(args, sizeof(args), "{\"where\":\"%s\"}", expression) < (int)sizeof(args));
	if (ops_analyze("events", &rank, 1, &options, &text, &size, &error))
		fail_msg("%s: %s", expression, error.text);
	for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		snprintf(found + strlen(found), 2, "%c", line[3]); /* "0,1,…" */
	if (strcmp(found, left) != 0)
		fail_msg("%s: rows '%s' where '%s' were expected", expression, found, left);
	ops_free(text);
	ops_trace_unref((struct ops_trace *)rank.trace);
}

static void test_what_expressions_mean(void **state)
{
	static const char *const asked[][2] = {
		{"dur > 2", "0"}, {"dur >= 2", "01"}, {"2 < dur < 9", "0"}, {"1 < 2 < 3", "01"}, {"1 < 3 < 2", ""},
		{"ts == 0", "0"}, {"ts == 10", "1"}, {"end == 8", "0"}, {"ts + dur == end", "01"}, {"-dur < -2", "0"},
		{"7 // 2 == 3 and -7 // 2 == -4 and 7 % 4 == 3 and -7 % 4 == 1 and 7 / 2 == 3.5", "01"},
		{"2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 10 - 4 - 3 == 3 and 1e3 == 1000 and .5 == 0.5", "01"},
		{"dur > 2 or stream == 7", "01"}, {"dur > 2 | stream == 7", "01"}, {"dur > 2 & stream == 7", ""},
		{"true or dur > 2 and false", "01"}, {"not dur > 2", "1"}, {"~(dur > 2)", "1"}, {"not not dur > 2", "0"},
		{"cat in ['kernel', 'x']", "1"}, {"cat not in ['kernel']", "0"}, {"dur in []", ""}, {"dur in [2, 'a']", "1"},
		{"dur.isin([8])", "0"}, {"'::' in name", "0"}, {"'' in name", "01"}, {"name < 'b'", "0"},
		{"name.contains('mm|gemm')", "01"}, {"name.str.contains('<.*>')", "1"}, {"name.contains('^mm')", ""},
		{"name.match('at')", "0"}, {"name.match('mm')", ""}, {"name.startswith('aten::')", "0"},
		{"name.endswith(')')", "1"}, {"s_name == name and s_cat == cat", "01"}, {"name == 'aten::mm'", "0"},
		{"`External id` == 7", "0"}, {"external_id == 7", "0"}, {"external_id == -1", "1"}, {"`External id` == 'seven'", "1"},
		{"`a b` == 'x\\\"y'", "0"}, {"`a b`.endswith('y')", "0"}, {"`yes`", "0"}, {"not `yes`", "1"}, {"`yes` == false", "1"},
		{"`nothing` == 1", ""}, {"`nothing` != 1", "01"}, {"`nothing` + 1 == 1", ""}, {"`list`.contains('2')", "0"},
		{"`yes` + 1 > 0", ""}, {"`nowhere` < 1 or `nowhere` >= 1", ""}, {"registers_per_thread == 1", ""},
		{"registers_per_thread != 1", "01"}, {"collective_name == ''", "01"}, {"bytes == -1 and group_size == 0", "01"},
		{"iteration == -1 and rank == 0 and pid in [0, 1] and tid in [1, 7]", "01"}, {"index < 1", "0"},
		{"correlation == -1 and index_correlation == -1", "01"}, {"dur / 0 > 1e9", "01"}, {"0 / 0 == 0 / 0", ""},
		{"(dur > 2) == (cat == 'cpu_op')", "01"}, {"'it\\\\'s' != name", "01"}, {"'a\\\\.b' != name", "01"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		ask(asked[i][0], asked[i][1]);
}

static void ask_for_a_fraction(void)
{
	ask("dur > 7.5", "0");
}

static void test_points_are_points(void **state)
{
	(void)state;
	with_comma(ask_for_a_fraction);
}

static void refuse(const char *expression, const char *why)
{
	struct event_query query;
	struct ops_error error;

	assert_int_equal(event_query_parse(&query, (struct ops_string){expression, strlen(expression)}, &error), OPS_INVALID);
	if (!strstr(error.text, why))
		fail_msg("'%s': '%s' where '%s' was expected", expression, error.text, why);
	event_query_release(&query);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	refuse("", "a value is missing at character 1");
	refuse("dur >", "a value is missing at character 6");
	refuse("dur", "a comparison is missing");
	refuse("du > 3", "no column of this name");
	refuse("dur > 3 dur", "this is too much at character 9: 'dur'");
	refuse("dur = 3", "this is too much");
	refuse("name > 3", "different types");
	refuse("dur == 'a'", "different types");
	refuse("dur and ts", "join what is true or false");
	refuse("not dur", "'not' takes");
	refuse("name + 1 > 0", "arithmetic requires numbers");
	refuse("-name > 0", "only numbers have a sign");
	refuse("dur in 3", "'in' takes a list");
	refuse("3 in name", "'in' takes a list");
	refuse("dur == [3]", "different types");
	refuse("dur in [[3]]", "a list within a list");
	refuse("dur in [3", "a comma or ']' is missing");
	refuse("(dur > 3", "a ')' is missing");
	refuse("name == 'a", "a quote is not closed");
	refuse("`a", "a quote is not closed");
	refuse("1..2 > 3", "not a number");
	refuse("1e999 > 3", "not a number");
	refuse("name.upper()", "there are only contains");
	refuse("name.contains(3)", "a text in quotes is missing");
	refuse("name.contains('(')", "missing ')'");
	refuse("name.match('(((a{1,100}){1,100}){1,100}){1,100}')", "too large");
	refuse("dur.contains('a')", "only a text has this");
	refuse("dur.isin('a')", "isin takes a list");
	refuse("@x > 3", "this is not a value");
	/* Else whatever is in brackets would be asked twice on each of a hundred levels. */
	refuse("(1==1) == (1==1) == (1==1)", "requires brackets");
}

/* An evaluation ends, whatever the expression and the trace. */
static void test_work_is_bounded(void **state)
{
	static const char text[] = "1 == 1 and 'aaaa' != 'b'";
	struct event_query query;
	uint64_t steps_left = 100;

	(void)state;
	assert_int_equal(event_query_parse(&query, (struct ops_string){text, strlen(text)}, NULL), OPS_OK);
	query.steps_left = &steps_left;
	assert_true(event_query_holds(&query, NULL, NULL, NULL));
	assert_int_equal(event_query_check_steps(steps_left, NULL), OPS_OK);
	steps_left = 3;
	assert_false(event_query_holds(&query, NULL, NULL, NULL));
	assert_int_equal(event_query_check_steps(steps_left, NULL), OPS_INVALID);
	event_query_release(&query);
}

/* A list of filters is not longer than anybody writes. */
static void test_filters_are_bounded(void **state)
{
	struct ops_rank rank = {.trace = asking_trace(rows)};
	struct ops_error error;
	char args[1000] = "{\"where\":[\"true\"", *text = NULL;
	struct ops_analyze_options options = {.args = args, .format = OPS_FORMAT_CSV};
	size_t size = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		strcat(args, ",\"true\"");
	strcat(args, "]}");
	assert_int_equal(ops_analyze("events", &rank, 1, &options, &text, &size, &error), OPS_INVALID);
	assert_non_null(strstr(error.text, "more than 64 filters"));
	ops_trace_unref((struct ops_trace *)rank.trace);
}

/* One text many times over. */
static void repeat(const char *begin, const char *text, size_t times, const char *end)
{
	size_t size = strlen(text);
	char *all = malloc(strlen(begin) + times * size + strlen(end) + 1), *to;
	struct event_query query;
	struct ops_error error;

	assert_non_null(all);
	to = stpcpy(all, begin);
	for (size_t i = 0; i < times; i++)
		to = stpcpy(to, text);
	stpcpy(to, end);
	assert_int_equal(event_query_parse(&query, (struct ops_string){all, strlen(all)}, &error), OPS_INVALID);
	event_query_release(&query);
	free(all);
}

static void test_texts_without_end(void **state)
{
	(void)state;
	repeat("", "(", 100000, "");
	repeat("", "[", 100000, "");
	repeat("", "-", 100000, "1 > 0");
	repeat("", "not ", 100000, "dur > 0");
	repeat("0 <", "1 <", 100000, "2");
	repeat("dur in [", "1,", 100000, "2]");
	repeat("1 == 1", "+1", 100000, "");
	repeat("1 == 1", " and 1 == 1", 100000, "");
	repeat("name.contains('", "a", 0, "");
}

/* Whatever is removed, left out or moved: the result is a query or an error. */
static void test_texts_of_all_sorts(void **state)
{
	static const char whole[] = "not (dur > 1e-3 and name.str.contains('a|b')) or `x y` in [1, 'b'] and -ts // 3 != .5 | true";
	static const char signs[] = "()[]'\"`.,<>=!~&|+-*/% 1ae\\\n";
	uint32_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		char text[sizeof(whole)];
		struct event_query query;
		struct ops_error error;
		size_t size = sizeof(whole) - 1;

		memcpy(text, whole, sizeof(whole));
		for (unsigned change = 0; change <= round % 4; change++) {
			random = random * 1664525 + 1013904223;
			text[random / 65536 % size] = signs[random / 7 % (sizeof(signs) - 1)];
		}
		size = round % 3 ? size : random / 65536 % size;
		if (!event_query_parse(&query, (struct ops_string){text, size}, &error))
			assert_true(query.root < query.nodes.count);
		event_query_release(&query);
	}
}

static void test_no_memory(void **state)
{
	struct question question = {
		.id = "load",
		.args = "{\"where\":[\"name.contains('m') and `a b` != 'z'\",{\"query\":\"dur in [8, 2] and name.match('a')\"}]}",
		.ranks = {{.trace = asking_trace(rows)}},
		.count = 1,
	};

	(void)state;
	asking_gives(question, "{\"value\":{\"0\":{\"rows\":1,\"rows_stream_ne_minus1\":0,\"rows_by_cat\":{\"cpu_op\":1},"
	                       "\"max_end\":8,\"iterations\":[],\"trace_duration\":0},\"min_ts\":10.5,\"symbols\":4,"
	                       "\"device_type\":\"no known GPU\"}}");
	asking_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_expressions_mean),
		cmocka_unit_test(test_points_are_points),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_work_is_bounded), cmocka_unit_test(test_filters_are_bounded),
		cmocka_unit_test(test_texts_without_end),
		cmocka_unit_test(test_texts_of_all_sorts),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
