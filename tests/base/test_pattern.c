/* SPDX-License-Identifier: Apache-2.0
 *
 * base/pattern compared with regexec() of the C library on random patterns, and patterns that are too large or slow for engines
 * without limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pattern.h"

#define PLENTY UINT64_C(1000000000)

static bool find(const char *text, const char *string, bool at_start)
{
	struct ops_pattern *pattern = NULL;
	struct ops_error error;
	uint64_t steps = PLENTY;
	bool found;

	if (ops_pattern_new(text, strlen(text), &pattern, &error))
		fail_msg("%s: %s", text, error.text);
	found = ops_pattern_find(pattern, string, strlen(string), at_start, &steps);
	assert_true(steps < PLENTY && steps > 0);
	/* Another search does not remember the one before. */
	assert_int_equal(ops_pattern_find(pattern, string, strlen(string), at_start, &steps), found);
	ops_pattern_free(pattern);
	return found;
}

static void what_matches(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool anywhere, at_start;
	} cases[] = {
		{"gemm|conv", "a conv", true, false}, {"^a", "ba", false, false}, {"a$", "ba", true, false}, {"", "", true, true},
		{"a{2}", "a aa", true, false}, {"a{2,3}$", "aaaa", true, false}, {"^a{2,3}$", "aaaa", false, false},
		{"^(ab){0}$", "", true, true}, {"^a{0,}b", "aab", true, true}, {"x{", "x{", true, true}, {"^(a|b|cd)*e", "abcdcdae", true, true},
		{"\\bmm\\b", "aten::mm ", true, false}, {"\\bmm\\b", "addmm", false, false}, {"\\Bmm", "addmm", true, false},
		{"\\bfoo", "xfoo foo", true, false}, {"\\d+\\s\\w", "ab 12 c", true, false}, {"[^a-c]", "abcd", true, false},
		{"[]a]", "]", true, true}, {"[[:digit:]_]{3}", "x1_2", true, false}, {"[\\w.]+$", "a.b", true, true},
		{"a\\.b", "a.b", true, true}, {"a\\.b", "axb", false, false}, {".*?x", "aax", true, true}, {"(?:ab)+c", "ababc", true, true},
		{"[a-]", "-", true, true}, {"((a*)*)*b", "aaac", false, false}, {"a||b", "c", true, true}, {"(|a)b", "ab", true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (find(cases[i].pattern, cases[i].text, false) != cases[i].anywhere)
			fail_msg("'%s' in '%s'", cases[i].pattern, cases[i].text);
		if (find(cases[i].pattern, cases[i].text, true) != cases[i].at_start)
			fail_msg("'%s' at the start of '%s'", cases[i].pattern, cases[i].text);
	}
}

/* Texts may hold NUL. */
static void bytes_are_bytes(void **state)
{
	static const char text[] = "a\0b\xff";
	struct ops_pattern *pattern = NULL;
	uint64_t steps = PLENTY;

	(void)state;
	assert_int_equal(ops_pattern_new("a.b.$", 5, &pattern, NULL), OPS_OK);
	assert_true(ops_pattern_find(pattern, text, 4, true, &steps));
	ops_pattern_free(pattern);
}

/* --- against the C library ------------------------------------------------------------------------------------------- */

static uint32_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static void make_pattern(char *out, size_t room, int depth)
{
	static const char *const atoms[] = {"a", "b", ".", "[ab]", "[^a]", "c"};
	static const char *const repetitions[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"};
	char inner[512];

	out[0] = '\0';
	for (uint32_t i = 0, count = 1 + random_below(3); i < count; i++) {
		if (depth && !random_below(3)) {
			make_pattern(inner, room / 8, depth - 1);
			snprintf(out + strlen(out), room - strlen(out), "(%s)%s", inner, repetitions[random_below(10)]);
		} else {
			snprintf(out + strlen(out), room - strlen(out), "%s%s", atoms[random_below(6)], repetitions[random_below(10)]);
		}
		if (i + 1 < count && !random_below(3))
			strcat(out, "|");
	}
	if (depth == 2 && !random_below(4))
		strcat(out, "$");
}

static void as_the_c_library(void **state)
{
	unsigned found = 0, compared = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char text[512], string[9] = "";
		regex_t expected;
		regmatch_t match;

		make_pattern(text, sizeof(text) - 8, 2);
		for (uint32_t k = 0, size = random_below(9); k < size; k++)
			string[k] = "abcd"[random_below(4)];
		if (strlen(text) > 100 || regcomp(&expected, text, REG_EXTENDED))
			continue;
		bool anywhere = !regexec(&expected, string, 1, &match, 0);
		if (find(text, string, false) != anywhere)
			fail_msg("'%s' in '%s'", text, string);
		if (find(text, string, true) != (anywhere && match.rm_so == 0))
			fail_msg("'%s' at the start of '%s'", text, string);
		regfree(&expected);
		compared++;
		found += anywhere;
	}
	assert_true(compared > 2000 && found > 500 && found < compared - 300);
}

/* --- bounds ---------------------------------------------------------------------------------------------------------- */

static void refuse(const char *text, const char *why)
{
	struct ops_pattern *pattern = NULL;
	struct ops_error error;

	assert_int_equal(ops_pattern_new(text, strlen(text), &pattern, &error), OPS_INVALID);
	assert_null(pattern);
	if (!strstr(error.text, why))
		fail_msg("%s: %s", text, error.text);
}

static void what_is_refused(void **state)
{
	char long_text[OPS_PATTERN_SIZE_MAX + 2], deep[OPS_PATTERN_SIZE_MAX];

	(void)state;
	refuse("(((a{1,100}){1,100}){1,100}){1,100}", "too large");
	refuse("(((){1,100}a{1000}){1000}){1000}", "too large");
	refuse("a{1001}", "too large");
	refuse("a{4294967297}", "too large");
	refuse("a{2,1}", "malformed repetition");
	refuse("a{2", "malformed repetition");
	refuse("*a", "nothing to repeat at character 1");
	refuse("a|+", "nothing to repeat at character 3");
	refuse("(a", "missing ')'");
	refuse("a)", "unmatched ')' at character 2");
	refuse("[a", "missing ']'");
	refuse("[", "missing ']'");
	refuse("[b-a]", "reversed range");
	refuse("[[:none:]]", "unknown character class");
	refuse("(a)\\1", "back-references are not supported");
	refuse("a\\", "incomplete escape");
	refuse("\\q", "unknown escape");
	refuse("(?=a)", "unsupported group");
	memset(long_text, 'a', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	refuse(long_text, "longer than");
	memset(deep, '(', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	refuse(deep, "too deeply");
}

/* Work grows with the size of the text, where engines that backtrack or make states take powers of two. */
static void work_is_linear(void **state)
{
	static const char *const hard[] = {"(a+)+$", "(a|a)*b", "(a|aa)+$b", ".*.*.*x", "(a|b)*a(a|b){20}c", "(x+x+)+y"};
	static char text[20000];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "ab"[i * i / 7 % 3 == 1];
	for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
		struct ops_pattern *pattern = NULL;
		uint64_t steps = PLENTY;

		assert_int_equal(ops_pattern_new(hard[i], strlen(hard[i]), &pattern, NULL), OPS_OK);
		ops_pattern_find(pattern, text, sizeof(text), false, &steps);
		assert_true(PLENTY - steps <= sizeof(text) * 3 * OPS_PATTERN_STEPS_MAX);
		ops_pattern_free(pattern);
	}
}

static void work_has_an_end(void **state)
{
	struct ops_pattern *pattern = NULL;
	uint64_t steps = 50;
	char text[1000];

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(ops_pattern_new("a*b", 3, &pattern, NULL), OPS_OK);
	assert_false(ops_pattern_find(pattern, text, sizeof(text), false, &steps));
	assert_int_equal(steps, 0);
	assert_false(ops_pattern_find(pattern, "ab", 2, false, &steps));
	ops_pattern_free(pattern);
}

static void without_memory(void **state)
{
	struct ops_pattern *pattern = NULL;
	struct ops_error error;

	(void)state;
	ops_alloc_fail_at(1, false);
	assert_int_equal(ops_pattern_new("a", 1, &pattern, &error), OPS_NO_MEMORY);
	ops_alloc_fail_at(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_matches),    cmocka_unit_test(bytes_are_bytes), cmocka_unit_test(as_the_c_library),
		cmocka_unit_test(what_is_refused), cmocka_unit_test(work_is_linear),  cmocka_unit_test(work_has_an_end),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
