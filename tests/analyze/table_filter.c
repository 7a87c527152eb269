/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter for table_against_torch.py: reads options and rows and writes the table's text, until the input ends. read_options and
 * read_row define the input.
 */
#include <opstrobe/internal/analyze.h>

#include "trace/builder.h"
#include "words.h"

struct table_row {
	struct ops_average average;
	bool has_parent;
};

static void read_options(struct ops_table_options *options)
{
	size_t size;

	options->sort_by = read_text(&size);
	options->row_limit = read_int();
	options->max_src_column_width = read_int();
	options->max_name_column_width = read_int();
	options->max_shapes_column_width = read_int();
	options->header = read_text(&options->header_size);
	options->top_level_events_only = read_int() != 0;
	options->time_unit = read_text(&size);
	options->profile_memory = read_int() != 0;
	options->with_flops = read_int() != 0;
	options->use_device = read_text(&size);
}

static void free_options(struct ops_table_options *options)
{
	free((char *)options->sort_by);
	free((char *)options->header);
	free((char *)options->time_unit);
	free((char *)options->use_device);
}

static uint32_t read_string(struct ops_builder *builder)
{
	size_t size;
	char *text = read_text(&size);
	uint32_t id = text ? ops_builder_string(builder, text, size) : OPS_NONE;

	free(text);
	return id;
}

static uint32_t read_inputs(struct ops_builder *builder)
{
	size_t size;
	char *bytes = read_text(&size);
	uint32_t id = bytes ? ops_builder_inputs(builder, bytes, size) : OPS_NONE;

	require(!bytes || id != OPS_NONE, "malformed inputs");
	free(bytes);
	return id;
}

/* The frames of a row are the call stack of an event that comes `i`th. */
static void read_stack(struct ops_builder *builder, struct ops_average *average, uint32_t i)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = i, .end_ns = i};

	average->first = i;
	average->stack_frames = (uint32_t)read_int();
	event.call_stack = read_string(builder);
	ops_builder_event(builder, &event);
}

static void read_row(struct ops_builder *builder, struct table_row *row, uint32_t i)
{
	struct ops_average *a = &row->average;

	*a = (struct ops_average){0};
	a->key = (uint8_t)read_int();
	a->name = read_string(builder);
	a->overload = read_string(builder);
	a->inputs = read_inputs(builder);
	a->cpu_time_total_ns = read_int();
	a->self_cpu_time_total_ns = read_int();
	a->device_time_total_ns = read_int();
	a->self_device_time_total_ns = read_int();
	a->cpu_memory_usage = read_int();
	a->self_cpu_memory_usage = read_int();
	a->device_memory_usage = read_int();
	a->self_device_memory_usage = read_int();
	a->flops = read_int();
	a->count = (uint64_t)read_int();
	a->device_type = (uint8_t)read_int();
	a->scope = (uint8_t)read_int();
	a->is_async = (uint8_t)read_int();
	a->is_user_annotation = (uint8_t)read_int();
	a->is_legacy = (uint8_t)read_int();
	row->has_parent = read_int() != 0;
	read_stack(builder, a, i);
}

static void get(const void *context, size_t i, struct ops_average *ret_row)
{
	*ret_row = ((const struct table_row *)context)[i].average;
}

static bool has_parent(const void *context, size_t i)
{
	return ((const struct table_row *)context)[i].has_parent;
}

static void answer(const struct ops_trace *trace, const struct ops_rows *rows, const struct ops_table_options *options)
{
	struct ops_error error;
	char *text;
	size_t size;
	enum ops_code code = ops_table_text(trace, rows, options, &text, &size, &error);

	if (code == OPS_OK) {
		printf("OK %zu\n", size);
		fwrite(text, 1, size, stdout);
		ops_free(text);
	} else {
		printf("%s %zu\n%s", ops_code_name(code), strlen(error.text), error.text);
	}
	fflush(stdout);
}

int main(void)
{
	char word[8];

	while (scanf("%7s", word) == 1) {
		struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
		struct ops_rows rows = {.get = get, .has_parent = has_parent};
		struct ops_builder *builder = ops_builder_new();
		struct ops_stacks *stacks = NULL;
		struct ops_trace *trace;
		struct table_row *items;

		read_options(&options);
		rows.count = (size_t)read_int();
		rows.context = items = calloc(rows.count + 1, sizeof(*items));
		require(builder && items, "out of memory");
		ops_builder_track(builder, &(struct ops_track){.number = 1});
		for (size_t i = 0; i < rows.count; i++)
			read_row(builder, &items[i], (uint32_t)i);
		require(ops_builder_finish(builder, &trace, NULL) == OPS_OK, "no trace");
		require(ops_stacks_new(trace, &stacks, NULL) == OPS_OK, "no stacks");
		options.stacks = stacks;
		answer(trace, &rows, &options);
		ops_stacks_free(stacks);
		ops_trace_unref(trace);
		free(items);
		free_options(&options);
	}
	return 0;
}
