/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/table: the complete text, memory rows, errors, failing allocations. table_against_torch.py compares every option and
 * column with torch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

/* The events of a trace as rows. */
struct view {
	struct ops_trace *trace;
	struct ops_event_costs costs;
	uint32_t *refs;
	struct ops_rows rows;
	struct ops_table_options options;
	enum ops_code (*make)(const struct ops_trace *trace, const struct ops_rows *rows, const struct ops_table_options *options,
	                      char **ret_text, size_t *ret_size, struct ops_error *error);
};

static void get(const void *context, size_t i, struct ops_average *ret_row)
{
	const struct view *view = context;

	ops_average_of_event(view->trace, &view->costs, view->refs[i], ret_row);
}

static bool has_parent(const void *context, size_t i)
{
	const struct view *view = context;

	return !(view->refs[i] & OPS_MEMORY_REF) &&
	       ops_trace_events(view->trace)->parent[view->refs[i]] != OPS_NONE;
}

static void view_open(struct view *view, struct ops_builder *take_builder)
{
	*view = (struct view){.trace = scene_close(take_builder), .options = OPS_TABLE_OPTIONS_DEFAULT};
	view->rows = (struct ops_rows){.get = get, .has_parent = has_parent, .context = view};
	assert_int_equal(ops_function_events(view->trace, &view->refs, &view->rows.count, NULL), OPS_OK);
	assert_int_equal(ops_event_costs_init(&view->costs, view->trace, true, NULL), OPS_OK);
}

static void view_close(struct view *view)
{
	ops_free(view->refs);
	ops_event_costs_release(&view->costs);
	ops_trace_unref(view->trace);
}

static void assert_table(const struct view *view, const char *expected)
{
	struct ops_error error;
	size_t size;
	char *text;

	assert_int_equal(ops_table_text(view->trace, &view->rows, &view->options, &text, &size, &error), OPS_OK);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
	ops_free(text);
}

static struct ops_builder *step(void)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event;
	struct list list;

	scene_range(b, 0, "ProfilerStep#7", 0, 2000000);
	event = scene_event(b, 0, "aten::mul", 100000, 600000);
	list_open(&list, 2);
	put_tensor(&list, 6, 2, (const int64_t[]){30, 40, 40, 1});
	put_int(&list, 2);
	event.inputs = ops_builder_inputs(b, list.bytes, list.size);
	ops_builder_event(b, &event);
	scene_memory(b, 0, 200000, 4800, 0);
	scene_memory(b, 1, 300000, -100, 0);
	return b;
}

static void nothing(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, scene_open());
	view.options.header = "not shown";
	view.options.header_size = 9;
	assert_table(&view, "");
	view_close(&view);
}

static void the_whole(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, step());
	view.options.sort_by = "self_cpu_time_total";
	view.options.profile_memory = true;
	view.options.with_flops = true; /* also with rows of memory */
	assert_table(&view,
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  "
	             "------------  ------------  ------------------  ------------  \n"
	             "             Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem  "
	             "Self CPU Mem    # of Calls        Input Shapes  Total KFLOPs  \n"
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  "
	             "------------  ------------  ------------------  ------------  \n"
	             "    ProfilerStep*        75.00%       1.500ms       100.00%       2.000ms       2.000ms       4.69 KB  "
	             "         0 B             1                  []            --  \n"
	             "        aten::mul        25.00%     500.000us        25.00%     500.000us     500.000us       4.69 KB  "
	             "     4.69 KB             1      [[30, 40], []]         1.200  \n"
	             "         [memory]         0.00%       0.000us         0.00%       0.000us       0.000us        -100 B  "
	             "      -100 B             1                  []            --  \n"
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  "
	             "------------  ------------  ------------------  ------------  \n"
	             "Self CPU time total: 2.000ms\n");
	view_close(&view);
}

static void top_level_rows_under_a_header(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, step());
	view.options.header = "H\0ead";
	view.options.header_size = 1;
	view.options.top_level_events_only = true;
	view.options.row_limit = 1;
	view.options.time_unit = "us";
	view.options.max_shapes_column_width = 4;
	assert_table(&view,
	             "===========================================================================================================\n"
	             "H\n"
	             "===========================================================================================================\n"
	             "This report only display top-level ops statistics\n"
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  ----  "
	             "\n"
	             "             Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  Input "
	             "Shapes  \n"
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  ----  "
	             "\n"
	             "    ProfilerStep*        75.00%    1500.000us       100.00%    2000.000us    2000.000us             1    []  "
	             "\n"
	             "-----------------  ------------  ------------  ------------  ------------  ------------  ------------  ----  "
	             "\n"
	             "Self CPU time total: 2000.000us\n");
	view_close(&view);
}

static void assert_refused(const struct view *view, enum ops_code code, const char *cause)
{
	struct ops_error error;
	char *text = NULL;
	size_t size = 77;

	assert_int_equal(ops_table_text(view->trace, &view->rows, &view->options, &text, &size, &error), code);
	assert_non_null(strstr(error.text, cause));
	assert_null(text);
	assert_int_equal(size, 77);
}

static void what_cannot_be(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, step());
	view.options.sort_by = "nothing";
	assert_refused(&view, OPS_UNSUPPORTED, "'nothing'");
	view.options.sort_by = "";
	assert_refused(&view, OPS_UNSUPPORTED, "''");
	view.options.sort_by = "device_type";
	assert_refused(&view, OPS_INVALID, "'device_type'");
	view.options.sort_by = NULL;
	view.options.max_name_column_width = -1;
	assert_refused(&view, OPS_INVALID, "width");
	view_close(&view);
}

static void get_device_row(const void *context, size_t i, struct ops_average *ret_row)
{
	get(context, i, ret_row);
	ret_row->self_device_time_total_ns = 1;
}

static void device_times_need_a_device(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, step());
	view.rows.get = get_device_row;
	assert_refused(&view, OPS_STATE, "no device");
	view_close(&view);
}

/* The text of the page after the style, which is always the same. */
static void assert_html(const struct view *view, const char *expected)
{
	struct ops_error error;
	const char *table;
	size_t size;
	char *text;

	assert_int_equal(ops_table_html(view->trace, &view->rows, &view->options, &text, &size, &error), OPS_OK);
	assert_int_equal(size, strlen(text));
	assert_memory_equal(text, "<div class=\"opstrobe\"><style>", 29);
	table = strstr(text, "</style>");
	assert_non_null(table);
	assert_string_equal(table + 8, expected);
	ops_free(text);
}

#define BAR(width)                                                                                                          \
	"<svg width=\"48\" height=\"8\" aria-hidden=\"true\"><rect class=\"r\" width=\"48\" height=\"8\"/>"        \
	"<rect width=\"" width "\" height=\"8\"/></svg>"

/* What a page needs to know of names: that none is markup. */
static void as_html(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_error error;
	char *text = NULL;
	struct view view;
	size_t size;

	(void)state;
	scene_range(b, 0, "</td><script>x</script>\"'&\xff", 0, 3000000);
	scene_range(b, 0, "mul", 1000000, 2000000);
	view_open(&view, b);
	view.options.sort_by = "self_cpu_time_total";
	view.options.row_limit = 1;
	view.options.max_name_column_width = 8;
	assert_html(&view,
	            "<table><thead><tr><th scope=\"col\" class=\"t\">Name</th><th scope=\"col\">Self CPU %</th>"
	            "<th scope=\"col\">Self CPU</th><th scope=\"col\">CPU total %</th><th scope=\"col\">CPU total</th>"
	            "<th scope=\"col\">CPU time avg</th><th scope=\"col\"># of Calls</th></tr></thead><tbody>\n"
	            "<tr><th scope=\"row\" class=\"t\" title=\"&lt;/td&gt;&lt;script&gt;x&lt;/script&gt;&quot;&#39;&amp;\\xff\">"
	            "&lt;/td&gt;&lt;sc..</th><td>" BAR("32.0") "66.67%</td><td>2.000ms</td><td>100.00%</td><td>3.000ms</td>"
	            "<td>3.000ms</td><td>1</td></tr>\n"
	            "</tbody></table><p>Self CPU time total: 3.000ms · 1 of 2 rows</p></div>");
	view.options.sort_by = "nothing";
	assert_int_equal(ops_table_html(view.trace, &view.rows, &view.options, &text, &size, &error), OPS_UNSUPPORTED);
	assert_null(text);
	view_close(&view);
}

static void make_table(void *context)
{
	const struct view *view = context;
	struct ops_error error;
	char *text = NULL;
	size_t size;
	enum ops_code code = view->make(view->trace, &view->rows, &view->options, &text, &size, &error);

	if (code == OPS_OK) {
		assert_int_equal(strlen(text), size);
		ops_free(text);
		return;
	}
	assert_int_equal(code, OPS_NO_MEMORY);
	assert_null(text);
}

static void survives_failing_allocations(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, step());
	view.options.sort_by = "count";
	view.make = ops_table_html;
	assert_in_range(fail_each(make_table, &view), 6, 40);
	view.make = ops_table_text;
	assert_in_range(fail_each(make_table, &view), 6, 40);
	view.rows.count = 0;
	assert_int_equal(fail_each(make_table, &view), 1);
	view_close(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(the_whole),
		cmocka_unit_test(top_level_rows_under_a_header),
		cmocka_unit_test(as_html),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(device_times_need_a_device),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
