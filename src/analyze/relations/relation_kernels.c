/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `kernels`: a row for each kernel, copy and fill that a device ran, and its launch.
 */
#include "analyze/relations/relation_list.h"
#include "derive/captures.h"
#include "derive/categories.h"
#include "derive/work.h"
#include "trace/kinds.h"

#define EVENT (rows->selected[row->at])

static const char *work_name(enum ops_work work)
{
	static const char *const names[] = {
		[OPS_WORK_COMPUTE] = "compute", [OPS_WORK_COMMUNICATION] = "communication", [OPS_WORK_COPY] = "copy",
		[OPS_WORK_SET] = "fill", [OPS_WORK_SYNC] = "sync", [OPS_WORK_OTHER] = "other",
	};

	return names[work];
}

static void set_work(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	cell->text = ops_string_of(work_name(relation_work(rows, event)));
}

static void set_category(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	cell->text = ops_string_of(ops_category_name(relation_category(rows, event)));
}

static void set_operator(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	uint32_t operator = ops_origin_operator(rows->origins, event);

	relation_set_text(cell, operator == OPS_NONE ? (struct ops_string){0} : ops_trace_string(rows->trace, rows->events->name[operator]));
}

static void set_delay(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	uint32_t launch = rows->launchers[event];

	cell->is_null = launch == OPS_NONE;
	if (!cell->is_null)
		cell->integer = rows->events->start_ns[event] - rows->events->start_ns[launch];
}

RELATION_GETTER(get_kernel_id, cell->integer = EVENT)
RELATION_GETTER(get_kernel_name, cell->text = ops_trace_string(rows->trace, rows->events->name[EVENT]))
RELATION_GETTER(get_kernel_work, set_work(rows, EVENT, cell))
RELATION_GETTER(get_kernel_category, set_category(rows, EVENT, cell))
RELATION_GETTER(get_kernel_start, cell->integer = rows->events->start_ns[EVENT])
RELATION_GETTER(get_kernel_duration, relation_get_duration(rows, EVENT, cell))
RELATION_GETTER(get_kernel_device, relation_get_pid(rows, rows->events->track[EVENT], cell))
RELATION_GETTER(get_kernel_stream, relation_get_tid(rows, rows->events->track[EVENT], cell))
RELATION_GETTER(get_kernel_step, relation_get_step(rows, EVENT, cell))
RELATION_GETTER(get_kernel_module, relation_get_module(rows, EVENT, cell))
RELATION_GETTER(get_kernel_launch, relation_set_id(cell, rows->launchers[EVENT]))
RELATION_GETTER(get_kernel_delay, set_delay(rows, EVENT, cell))
RELATION_GETTER(get_kernel_operator_id, relation_set_id(cell, ops_origin_operator(rows->origins, EVENT)))
RELATION_GETTER(get_kernel_operator, set_operator(rows, EVENT, cell))
RELATION_GETTER(get_kernel_file, relation_get_file(rows, rows->origins[EVENT], cell))
RELATION_GETTER(get_kernel_line, relation_get_line(rows, rows->origins[EVENT], cell))
RELATION_GETTER(get_kernel_message, relation_get_message(rows, EVENT, cell))

static const struct result_column columns[] = {
	{.name = "id", .type = RESULT_INTEGER, .get = get_kernel_id, .about = "id of its row in events"},
	{.name = "name", .type = RESULT_TEXT, .get = get_kernel_name, .about = "name"},
	{.name = "work", .type = RESULT_TEXT, .get = get_kernel_work, .about = "compute, communication, copy, fill, or other for names that are none of a kernel"},
	{.name = "category", .type = RESULT_TEXT, .get = get_kernel_category,
	 .about = "matrix_product, attention, experts, convolution, normalisation, softmax, reduction, pointwise, indexing, sort, quantisation, memory, communication or other"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_kernel_start, .about = "start, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_kernel_duration, .about = "duration"},
	{.name = "device", .type = RESULT_INTEGER, .nullable = true, .get = get_kernel_device, .about = "number of the device"},
	{.name = "stream", .type = RESULT_INTEGER, .nullable = true, .get = get_kernel_stream, .about = "stream of the device"},
	{.name = "step", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_STEPS, .get = get_kernel_step,
	 .about = "number of the step in which it was launched; where the launch is not known, in which it starts"},
	{.name = "module", .type = RESULT_TEXT, .nullable = true, .option = RELATION_MODULES, .get = get_kernel_module,
	 .about = "path of the innermost torch.nn.Module that launched it, forward or backward"},
	{.name = "launch_id", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_launch,
	 .about = "id of the call that launched it, a row in events"},
	{.name = "delay_ns", .type = RESULT_INTEGER, .unit = "ns", .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_delay,
	 .about = "time from the start of that call to its own start"},
	{.name = "operator_id", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_operator_id,
	 .about = "id of the operator that made the call, a row in events"},
	{.name = "operator", .type = RESULT_TEXT, .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_operator,
	 .about = "name of that operator"},
	{.name = "file", .type = RESULT_TEXT, .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_file,
	 .about = "file of the user's line that launched it"},
	{.name = "line", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_LAUNCHERS, .get = get_kernel_line,
	 .about = "number of that line"},
	{.name = "message_bytes", .type = RESULT_BYTES, .nullable = true, .get = get_kernel_message,
	 .about = "of a collective: bytes that the rank contributes"},
};
const struct result_declaration relation_kernels_declaration =
	RESULT_DECLARATION("kernels", "a kernel, memory copy or memory set that a device ran", columns);

static bool relation_kernels_is_work(const struct relation_rows *rows, uint32_t event)
{
	return ops_kind_is_work(rows->events->kind[event]);
}

bool relation_kernels_open(struct relation_rows *rows)
{
	return relation_classify(rows) && relation_select(rows, relation_kernels_is_work);
}
