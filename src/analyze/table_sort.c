/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a table's rows: the result of sorted(rows, key=…, reverse=True) in Python. Only the sort key of each row is
 * kept, as a number whose order is that of the attribute, or as the text that a number refers to.
 */
#include "analyze/table_sort.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/format.h"
#include "analyze/table.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/text.h"

enum kind {
	KIND_INTEGER,   /* int64_t or smaller, at `offset` */
	KIND_UNSIGNED,  /* uint64_t */
	KIND_BYTE,      /* uint8_t */
	KIND_MEAN,      /* int64_t by count */
	KIND_TIME_TEXT, /* int64_t in ns, compared as the text it is shown as */
	KIND_MEAN_TEXT, /* int64_t in ns by count, the same */
	KIND_KEY,       /* name as shown */
	KIND_OVERLOAD,  /* string id */
	KIND_SHAPES,    /* input list id */
	KIND_STACK,     /* chain of frames, and their number */
	KIND_SAME,      /* one value for all rows: nothing to sort */
	KIND_UNORDERED, /* Python cannot compare it */
};

/* The attributes of torch's FunctionEventAvg. */
static const struct attribute {
	const char *name;
	enum kind kind;
	size_t offset;
} attributes[] = {
#define AT(field) offsetof(struct ops_average, field)
	{"count", KIND_UNSIGNED, AT(count)},
	{"cpu_children", KIND_UNORDERED, 0},
	{"cpu_memory_usage", KIND_INTEGER, AT(cpu_memory_usage)},
	{"cpu_parent", KIND_UNORDERED, 0},
	{"cpu_time", KIND_MEAN, AT(cpu_time_total_ns)},
	{"cpu_time_str", KIND_MEAN_TEXT, AT(cpu_time_total_ns)},
	{"cpu_time_total", KIND_INTEGER, AT(cpu_time_total_ns)},
	{"cpu_time_total_str", KIND_TIME_TEXT, AT(cpu_time_total_ns)},
	{"device_memory_usage", KIND_INTEGER, AT(device_memory_usage)},
	{"device_time", KIND_MEAN, AT(device_time_total_ns)},
	{"device_time_str", KIND_MEAN_TEXT, AT(device_time_total_ns)},
	{"device_time_total", KIND_INTEGER, AT(device_time_total_ns)},
	{"device_time_total_str", KIND_TIME_TEXT, AT(device_time_total_ns)},
	{"device_type", KIND_UNORDERED, 0},
	{"flops", KIND_INTEGER, AT(flops)},
	{"input_shapes", KIND_SHAPES, AT(inputs)},
	{"is_async", KIND_BYTE, AT(is_async)},
	{"is_legacy", KIND_BYTE, AT(is_legacy)},
	{"is_remote", KIND_SAME, 0},
	{"is_user_annotation", KIND_BYTE, AT(is_user_annotation)},
	{"key", KIND_KEY, 0},
	{"node_id", KIND_SAME, 0},
	{"overload_name", KIND_OVERLOAD, AT(overload)},
	{"scope", KIND_BYTE, AT(scope)},
	{"self_cpu_memory_usage", KIND_INTEGER, AT(self_cpu_memory_usage)},
	{"self_cpu_time_total", KIND_INTEGER, AT(self_cpu_time_total_ns)},
	{"self_cpu_time_total_str", KIND_TIME_TEXT, AT(self_cpu_time_total_ns)},
	{"self_device_memory_usage", KIND_INTEGER, AT(self_device_memory_usage)},
	{"self_device_time_total", KIND_INTEGER, AT(self_device_time_total_ns)},
	{"self_device_time_total_str", KIND_TIME_TEXT, AT(self_device_time_total_ns)},
	{"stack", KIND_STACK, 0},
	{"use_device", KIND_UNORDERED, 0},
#undef AT
};

/* Returns the attribute of that name; "cuda", "xpu" and "privateuse1" in it mean "device". Returns NULL if there is
 * none. */
static const struct attribute *find_attribute(const char *sort_by)
{
	static const char *const devices[] = {"cuda", "xpu", "privateuse1"};
	char name[64] = "";
	size_t size = 0;

	while (*sort_by) {
		const char *part = sort_by;
		size_t part_size = 1, skip = 1;

		for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
			if (strncmp(sort_by, devices[i], strlen(devices[i])) == 0) {
				part = "device";
				part_size = strlen(part);
				skip = strlen(devices[i]);
			}
		}
		if (size + part_size >= sizeof(name))
			return NULL;
		memcpy(name + size, part, part_size);
		size += part_size;
		sort_by += skip;
	}
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (strcmp(attributes[i].name, name) == 0)
			return &attributes[i];
	return NULL;
}

struct item {
	uint64_t number;
	uint32_t row;
};

/* Maps integers to unsigned integers, preserving their order. */
static uint64_t order_of_integer(int64_t value)
{
	return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static uint64_t order_of_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint64_t table_sort_number_of(const struct attribute *attribute, const struct ops_stacks *stacks,
                                     const struct ops_average *row)
{
	const char *field = (const char *)row + attribute->offset;
	int64_t integer;
	uint32_t id;

	switch (attribute->kind) {
	case KIND_INTEGER:
		memcpy(&integer, field, sizeof(integer));
		return order_of_integer(integer);
	case KIND_UNSIGNED:
		return row->count;
	case KIND_BYTE:
		return (uint8_t)*field;
	case KIND_MEAN:
		memcpy(&integer, field, sizeof(integer));
		return order_of_double(ops_table_mean_us(integer, row->count));
	case KIND_MEAN_TEXT:
	case KIND_TIME_TEXT: {
		double us;
		uint64_t bits;

		memcpy(&integer, field, sizeof(integer));
		us = ops_table_mean_us(integer, attribute->kind == KIND_MEAN_TEXT ? row->count : 1);
		memcpy(&bits, &us, sizeof(bits));
		return bits;
	}
	case KIND_KEY:
		return (uint64_t)row->key << 32 | row->name;
	case KIND_OVERLOAD:
	case KIND_SHAPES:
		memcpy(&id, field, sizeof(id));
		return id;
	case KIND_STACK:
		return stacks && row->stack_frames ? (uint64_t)row->stack_frames << 32 | ops_stack_of(stacks, row->first) : 0;
	default:
		return 0;
	}
}

struct comparison {
	const struct ops_trace *trace;
	const struct ops_stacks *stacks;
	enum kind kind;
};

static int compare_time_texts(uint64_t a, uint64_t b)
{
	char a_text[OPS_FORMAT_ROOM], b_text[OPS_FORMAT_ROOM];
	double a_us, b_us;

	memcpy(&a_us, &a, sizeof(a));
	memcpy(&b_us, &b, sizeof(b));
	ops_format_time(a_text, a_us, OPS_TIME_BY_SIZE);
	ops_format_time(b_text, b_us, OPS_TIME_BY_SIZE);
	return strcmp(a_text, b_text);
}

static size_t size_count(const struct ops_input *item)
{
	return ops_input_is_tensor(item->tag) ? item->n : 0;
}

/* Like Python's comparison of lists of lists; an argument that is not a single tensor is an empty list. */
static int compare_shapes(struct ops_string a, struct ops_string b)
{
	struct ops_input_cursor a_at = ops_inputs_open(a.bytes, a.size), b_at = ops_inputs_open(b.bytes, b.size);
	struct ops_input a_item = {0}, b_item = {0}; /* gcc does not see that they are always set */

	for (;;) {
		int a_more = ops_inputs_next(&a_at, &a_item), b_more = ops_inputs_next(&b_at, &b_item);
		size_t a_n, b_n;

		if (!a_more || !b_more)
			return a_more - b_more;
		a_n = size_count(&a_item);
		b_n = size_count(&b_item);
		for (size_t i = 0; i < a_n && i < b_n; i++) {
			int64_t x = ops_input_int(&a_item, i), y = ops_input_int(&b_item, i);

			if (x != y)
				return x < y ? -1 : 1;
		}
		if (a_n != b_n)
			return a_n < b_n ? -1 : 1;
	}
}

/* Like Python's comparison of lists of texts: a chain's frames, innermost first, at most as many as the upper half of
 * the number says. */
static int compare_stacks(const struct ops_stacks *stacks, uint64_t a, uint64_t b)
{
	size_t count;
	const struct ops_frame *frames = ops_stack_frames(stacks, &count);
	uint32_t x = (uint32_t)a, y = (uint32_t)b, x_left = (uint32_t)(a >> 32), y_left = (uint32_t)(b >> 32);

	for (;; x = frames[x].caller, y = frames[y].caller, x_left--, y_left--) {
		bool x_more = x != 0 && x_left > 0, y_more = y != 0 && y_left > 0;
		int order;

		if (!x_more || !y_more)
			return x_more - y_more;
		order = ops_string_compare(ops_stack_text(stacks, frames[x].name),
		                                 ops_stack_text(stacks, frames[y].name));
		if (order != 0)
			return order;
	}
}

static struct ops_string table_sort_key_of(const struct ops_trace *trace, uint64_t number)
{
	struct ops_average row = {.key = (uint8_t)(number >> 32), .name = (uint32_t)number};

	return ops_average_name(trace, &row);
}

static struct ops_string overload_of(const struct ops_trace *trace, uint64_t id)
{
	return id == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_string(trace, (uint32_t)id);
}

static struct ops_string inputs_of(const struct ops_trace *trace, uint64_t id)
{
	return id == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_inputs(trace, (uint32_t)id);
}

static int table_sort_compare_items(const void *a, const void *b, void *context)
{
	const struct item *x = a, *y = b;
	const struct comparison *comparison = context;
	const struct ops_trace *trace = comparison->trace;
	int order;

	if (x->number == y->number)
		order = 0;
	else if (comparison->kind == KIND_KEY)
		order = ops_string_compare(table_sort_key_of(trace, x->number), table_sort_key_of(trace, y->number));
	else if (comparison->kind == KIND_OVERLOAD)
		order = ops_string_compare(overload_of(trace, x->number), overload_of(trace, y->number));
	else if (comparison->kind == KIND_SHAPES)
		order = compare_shapes(inputs_of(trace, x->number), inputs_of(trace, y->number));
	else if (comparison->kind == KIND_STACK)
		order = compare_stacks(comparison->stacks, x->number, y->number);
	else if (comparison->kind == KIND_TIME_TEXT || comparison->kind == KIND_MEAN_TEXT)
		order = compare_time_texts(x->number, y->number);
	else
		order = x->number < y->number ? -1 : 1;
	if (order != 0)
		return -order;
	return (x->row > y->row) - (x->row < y->row);
}

/* Names the attributes by which it is useful to sort. */
static enum ops_code fail_without_attribute(const char *sort_by, struct ops_error *error)
{
	char names[512];
	size_t size = 0;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		enum kind kind = attributes[i].kind;

		if (kind == KIND_INTEGER || kind == KIND_UNSIGNED || kind == KIND_MEAN || kind == KIND_KEY || kind == KIND_OVERLOAD ||
		    kind == KIND_SHAPES)
			size += (size_t)snprintf(names + size, sizeof(names) - size, "%s%s", size ? ", " : "", attributes[i].name);
		assert(size < sizeof(names));
	}
	return ops_fault(error, OPS_UNSUPPORTED, "rows have no attribute '%.80s' (choose from %s)", sort_by, names);
}


enum ops_code ops_table_sort(const struct ops_trace *trace, const struct ops_stacks *stacks, const struct ops_rows *rows,
			     const char *sort_by, uint32_t **ret_order, struct ops_error *error)
{
	const struct attribute *attribute = find_attribute(sort_by);
	struct comparison comparison = {.trace = trace, .stacks = stacks};
	struct item *items;
	uint32_t *order;

	if (!attribute)
		return fail_without_attribute(sort_by, error);
	if (attribute->kind == KIND_UNORDERED && rows->count > 1)
		return ops_fault(error, OPS_INVALID, "rows cannot be put in order of '%s'", sort_by);
	comparison.kind = attribute->kind;
	items = ops_realloc_array(NULL, rows->count + 1, sizeof(*items));
	order = ops_realloc_array(NULL, rows->count + 1, sizeof(*order));
	if (!items || !order) {
		ops_free(items);
		ops_free(order);
		return ops_fault_memory(error);
	}
	for (size_t i = 0; i < rows->count; i++) {
		struct ops_average row;

		rows->get(rows->context, i, &row);
		items[i] = (struct item){table_sort_number_of(attribute, stacks, &row), (uint32_t)i};
	}
	qsort_r(items, rows->count, sizeof(*items), table_sort_compare_items, &comparison);
	for (size_t i = 0; i < rows->count; i++)
		order[i] = items[i].row;
	ops_free(items);
	*ret_order = order;
	return OPS_OK;
}
