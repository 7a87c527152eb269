/* SPDX-License-Identifier: Apache-2.0
 *
 * base/escape: names of a trace in plain text, CSV and Markdown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/markup.h"

typedef void append_function(struct ops_buffer *out, const char *bytes, size_t size);

static void expect(append_function *append, const char *bytes, size_t size, const char *expected)
{
	struct ops_buffer out = {0};

	append(&out, bytes, size);
	ops_buffer_append(&out, "", 1);
	assert_false(out.failed);
	assert_string_equal(out.bytes, expected);
	ops_buffer_release(&out);
}
#define EXPECT(append, text, expected) expect(append, text, sizeof(text) - 1, expected)

static void append_html(struct ops_buffer *out, const char *bytes, size_t size)
{
	ops_markup_append(out, bytes, size, SIZE_MAX);
}

static void plain_text_only_shows(void **state)
{
	(void)state;
	EXPECT(ops_plain_append, "", "");
	EXPECT(ops_plain_append, "aten::mm <\"'|>", "aten::mm <\"'|>");
	EXPECT(ops_plain_append, "\303\244 \342\200\246 \360\237\224\245", "\303\244 \342\200\246 \360\237\224\245");
	EXPECT(ops_plain_append, "a\033[31mb\033]0;x\007\r\n\t\0c\177", "a.[31mb.]0;x.....c.");
	EXPECT(ops_plain_append, "\302\233" "2J\302\240", ".2J\302\240");
	EXPECT(ops_plain_append, "\342\200\256x\342\201\246y\342\200\216\330\234\342\200\250", ".x.y...");
	EXPECT(ops_plain_append, "\233\303(\355\240\200|\360\220", "..(.|..");
}

static void cells_of_csv(void **state)
{
	(void)state;
	EXPECT(ops_csv_append, "aten::mm", "aten::mm");
	EXPECT(ops_csv_append, "a,\"b\"\nc", "\"a,\"\"b\"\"\nc\"");
	EXPECT(ops_csv_append, "=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\"");
	EXPECT(ops_csv_append, "@x", "\"'@x\"");
	EXPECT(ops_csv_append, "+1+cmd", "\"'+1+cmd\"");
	EXPECT(ops_csv_append, "-", "-");
	EXPECT(ops_csv_append, "\tx", "\"'\tx\"");
	EXPECT(ops_csv_append, "\n=1", "\"'\n=1\"");
	EXPECT(ops_csv_append, "\357\274\235HYPERLINK(1)", "\"'\357\274\235HYPERLINK(1)\"");
	EXPECT(ops_csv_append, "\357\274\240x", "\"'\357\274\240x\"");
	EXPECT(ops_csv_append, "-12.5e-3", "-12.5e-3");
	EXPECT(ops_csv_append, "+7", "+7");
	EXPECT(ops_csv_append, "a\033b\302\233", "a.b.");
}

static void markdown_is_code(void **state)
{
	(void)state;
	EXPECT(ops_markdown_append, "", "");
	EXPECT(ops_markdown_append, "self_cpu time", "self_cpu time");
	EXPECT(ops_markdown_append, "_x_", "`_x_`");
	EXPECT(ops_markdown_append, "- x", "`- x`");
	EXPECT(ops_markdown_append, "@team", "`@team`");
	EXPECT(ops_markdown_append, "www.example.org", "`www.example.org`");
	EXPECT(ops_code_append, "![x](http://y)|<img>", "`![x](http://y)\\|<img>`");
	EXPECT(ops_code_append, "a``b\n", "``` a``b. ```");
	EXPECT(ops_code_append, "", "` `");
}

static void other_formats(void **state)
{
	(void)state;
	EXPECT(append_html, "<b>&\"'\033\302\233\342\200\256", "&lt;b&gt;&amp;&quot;&#39;\\x1b\\xc2\\x9b\\xe2\\x80\\xae");
	EXPECT(ops_json_string, "\033\177\302\233\342\200\256\303\244", "\"\\u001b\177\\u009b\\u202e\303\244\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(plain_text_only_shows), cmocka_unit_test(cells_of_csv),
	                                   cmocka_unit_test(markdown_is_code), cmocka_unit_test(other_formats)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
