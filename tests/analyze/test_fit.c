/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/fit: which columns a terminal has room for, and what is left of texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "analyze/fit.h"

#define FIGURES 3

/* A name and three figures of 8, the second the least important. */
static void fit_to(struct fit_column *columns, size_t name_width, size_t room)
{
	static const unsigned ranks[FIGURES] = {1, 2, 1};

	columns[0] = fit_texts(name_width, 0);
	for (size_t i = 0; i < FIGURES; i++)
		columns[i + 1] = (struct fit_column){8, 8, ranks[i]};
	fit_columns(columns, 1 + FIGURES, 2, room);
}

static void assert_widths(size_t name_width, size_t room, size_t name, size_t first, size_t second, size_t third)
{
	struct fit_column columns[1 + FIGURES];

	fit_to(columns, name_width, room);
	assert_int_equal(columns[0].width, name);
	assert_int_equal(columns[1].width, first);
	assert_int_equal(columns[2].width, second);
	assert_int_equal(columns[3].width, third);
}

static void columns_of_a_table(void **state)
{
	(void)state;
	assert_widths(100, 0, 100, 8, 8, 8);
	assert_widths(100, 130, 100, 8, 8, 8);
	assert_widths(100, 129, 99, 8, 8, 8);
	assert_widths(100, 62, 32, 8, 8, 8);
	assert_widths(100, 61, 41, 8, 0, 8); /* what is left out makes room for names */
	assert_widths(100, 51, 41, 8, 0, 0);
	assert_widths(100, 41, 41, 0, 0, 0);
	assert_widths(100, 20, 32, 0, 0, 0); /* the first stays */
	assert_widths(10, 40, 10, 8, 8, 8);
	assert_widths(10, 39, 10, 8, 0, 8);
	assert_widths(SIZE_MAX / 2, 62, 32, 8, 8, 8);
	assert_widths(0, 20, 0, 8, 0, 8); /* a column that is not there takes no gap */
}

static void widest_text_first(void **state)
{
	struct fit_column columns[] = {fit_texts(60, 0), fit_texts(40, 1)};

	(void)state;
	fit_columns(columns, 2, 2, 72);
	assert_int_equal(columns[0].width, 35);
	assert_int_equal(columns[1].width, 35);
}

static void assert_cut(const char *text, size_t width, const char *expected)
{
	struct ops_buffer scratch = {0};
	struct ops_string cut = fit_text(&scratch, (struct ops_string){text, strlen(text)}, width);

	assert_int_equal(cut.size, strlen(expected));
	assert_memory_equal(cut.bytes, expected, cut.size);
	ops_buffer_release(&scratch);
}

static void texts(void **state)
{
	(void)state;
	assert_cut("void gemm<8>", 12, "void gemm<8>");
	assert_cut("void gemm<8>", 7, "voi…<8>");
	assert_cut("void gemm<8>", 6, "voi…8>");
	assert_cut("void gemm<8>", 1, "…");
	assert_cut("äöüß", 3, "ä…ß");
	assert_cut("", 3, "");
}

static void assert_note(size_t count, size_t room, const char *expected)
{
	struct ops_buffer note = {0}, out = {0};

	for (size_t i = 0; i < count; i++)
		fit_note_title(&note, (struct ops_string){"CPU total", 9});
	fit_note_end(&note, &out, room);
	assert_int_equal(out.size, strlen(expected));
	assert_memory_equal(out.bytes ? out.bytes : "", expected, out.size);
	ops_buffer_release(&out);
}

static void notes(void **state)
{
	(void)state;
	assert_note(0, 80, "");
	assert_note(1, 80, "no room for CPU total: a wider terminal shows more, '| less -S' all\n");
	assert_note(2, 30, "no room for CPU total, CPU\ntotal: a wider terminal shows\nmore, '| less -S' all\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_of_a_table),
		cmocka_unit_test(widest_text_first),
		cmocka_unit_test(texts),
		cmocka_unit_test(notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
