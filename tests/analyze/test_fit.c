/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/fit: the columns for which a terminal has room, and truncated texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "base/text.h"

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
	assert_widths(100, 61, 41, 8, 0, 8); /* columns that are left out make room for names */
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
	struct fit_names names = {0};
	struct ops_string cut = fit_name(&names, (struct ops_string){text, strlen(text)}, width);

	assert_int_equal(cut.size, strlen(expected));
	assert_memory_equal(cut.bytes, expected, cut.size);
	fit_names_release(&names);
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

#define GEMM(tile, layout) "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_" tile "_32x3_" layout "_align4>(cutlass::Params)"

static struct ops_string fitted(struct fit_names *names, const char *text, size_t width)
{
	struct ops_string shown = fit_name(names, (struct ops_string){text, strlen(text)}, width);

	assert_true(ops_text_length(shown) <= width);
	return shown;
}

static void assert_shown(struct fit_names *names, const char *text, size_t width, const char *expected)
{
	struct ops_string shown = fitted(names, text, width);

	assert_int_equal(shown.size, strlen(expected));
	assert_memory_equal(shown.bytes, expected, shown.size);
}

static void names_that_differ_in_the_middle(void **state)
{
	static const char *const texts[] = {GEMM("128x128", "nn"), GEMM("128x128", "tn"), GEMM("256x64", "nn")};
	struct fit_names names = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		fit_names_expect(&names, (struct ops_string){texts[i], strlen(texts[i])}, 40);
	assert_shown(&names, texts[0], 40, "void cutlass::K…emm_128x128_32x3_n…rams)");
	assert_shown(&names, texts[1], 40, "void cutlass::K…2x3_tn_align4>(cut…rams)");
	assert_shown(&names, texts[2], 40, "void cutlass::K…emm_256x64_32x3_nn…rams)");
	assert_shown(&names, texts[0], 40, "void cutlass::K…emm_128x128_32x3_n…rams)");
	assert_shown(&names, "short", 40, "short");
	fit_names_release(&names);
	assert_shown(&names, texts[0], 40, "void cutlass::Kernel…4>(cutlass::Params)");
	fit_names_release(&names);
	names.ascii = true;
	assert_shown(&names, texts[0], 12, "void c~rams)");
	assert_shown(&names, texts[1], 12, "void ~ams)#2");
	assert_shown(&names, texts[2], 12, "void ~ams)#3");
	fit_names_release(&names);
}

/* At every width, also of texts with characters of several bytes. */
static void names_are_never_alike(void **state)
{
	enum { COUNT = 26 * 26 };
	char texts[COUNT][96];

	(void)state;
	for (int i = 0; i < COUNT; i++)
		snprintf(texts[i], sizeof(texts[i]), "void kernel<äöüß, float, %c, 0123456789, ä%c, bfloat16, €>(params)",
		         'a' + i / 26, 'a' + i % 26);
	for (size_t width = 8; width < 70; width++) {
		struct fit_names names = {0};
		struct ops_intern seen = {0};

		for (int i = 0; width % 2 && i < COUNT; i++)
			fit_names_expect(&names, (struct ops_string){texts[i], strlen(texts[i])}, width);
		for (int i = 0; i < COUNT; i++) {
			struct ops_string shown = fitted(&names, texts[i], width);

			assert_int_equal(ops_intern_add(&seen, shown.bytes, shown.size), i);
		}
		assert_false(names.failed);
		ops_intern_release(&seen);
		fit_names_release(&names);
	}
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

static void paragraphs(void **state)
{
	static const char expected[] = "   takes 5.0 %\n   of a … step\n";
	struct ops_buffer out = {0};

	(void)state;
	fit_wrap(&out, ops_string_of("takes 5.0 % of a … step"), 14, 3);
	assert_int_equal(out.size, strlen(expected));
	assert_memory_equal(out.bytes, expected, out.size);
	ops_buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_of_a_table),
		cmocka_unit_test(widest_text_first),
		cmocka_unit_test(texts),
		cmocka_unit_test(names_that_differ_in_the_middle),
		cmocka_unit_test(names_are_never_alike),
		cmocka_unit_test(notes),
		cmocka_unit_test(paragraphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
