/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations and bytes of operator calls, and how long the calls took.
 *
 *     aten::linear         ├──────────────────┤    the table has no row for it,
 *     aten::addmm             ├────────────┤       so this call counts: its FLOPs and bytes,
 *     cudaLaunchKernel           ├───┤
 *     stream 7                          ├─ gemm ─┤  and the time of its kernel
 */
#include "analyze/roofline/roofline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/frames.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/around.h"
#include "derive/calls.h"
#include "derive/flops.h"
#include "derive/launches.h"
#include "derive/operators.h"
#include "derive/places.h"
#include "derive/steps.h"
#include "derive/work.h"
#include "trace/inputs.h"

struct maker {
	struct roofline *roofline;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const uint32_t *launchers;
	const uint16_t *operators;
	uint32_t *call_of;   /* by row: the call that the row is or lies in; OPS_NONE: none */
	struct ops_demand *demands; /* by call */
	struct ops_places places; /* only for lines and modules */
};

static int64_t roofline_duration(const struct ops_events *events, size_t row)
{
	int64_t ns = ops_difference(events->end_ns[row], events->start_ns[row]);

	return ns > 0 ? ns : 0;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool add_call(struct maker *maker, uint32_t row, const struct ops_demand *demand)
{
	struct roofline *roofline = maker->roofline;

	if (!OPS_ARRAY_APPEND(&roofline->calls, (struct roofline_call){.row = row}))
		return false;
	maker->call_of[row] = (uint32_t)roofline->calls.count - 1;
	maker->demands[roofline->calls.count - 1] = *demand;
	return true;
}

/* Finds the outermost operators whose demand is known. Parents precede their children. */
static bool find_calls(struct maker *maker)
{
	const struct ops_events *events = maker->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row];
		struct ops_demand demand;

		maker->call_of[row] = parent != OPS_NONE && parent < row ? maker->call_of[parent] : OPS_NONE;
		maker->roofline->has_shapes |= events->kind[row] == OPS_EVENT_CPU_OP && events->inputs[row] != OPS_NONE;
		if (maker->call_of[row] == OPS_NONE && !(events->flags[row] & OPS_EVENT_HIDDEN) &&
		    ops_demand_of(maker->trace, row, maker->operators, &demand) && !add_call(maker, row, &demand))
			return false;
	}
	return true;
}

/* True for copies between host and device: "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice". */
static bool crosses_bus(struct ops_string name)
{
	return ops_string_contains(name, "HtoD") || ops_string_contains(name, "DtoH") || ops_string_contains(name, "HostToDevice") ||
	       ops_string_contains(name, "DeviceToHost");
}

static bool computes(const struct maker *maker, uint32_t row)
{
	return ops_work_of(maker->events->kind[row], ops_trace_string(maker->trace, maker->events->name[row])) == OPS_WORK_COMPUTE;
}

/* Returns the call that work belongs to; OPS_NONE: none. */
static uint32_t call_of_work(const struct maker *maker, size_t row)
{
	uint32_t owner = ops_launching_operator(maker->launchers, row);

	return owner == OPS_NONE ? OPS_NONE : maker->call_of[owner];
}

static void roofline_add_work(struct maker *maker, uint32_t row)
{
	struct ops_string name = ops_trace_string(maker->trace, maker->events->name[row]);
	struct roofline *roofline = maker->roofline;
	int64_t duration_ns = roofline_duration(maker->events, row);
	uint32_t at = call_of_work(maker, row);
	struct roofline_call *call;

	if (computes(maker, row))
		roofline->total_ns = ops_sum(roofline->total_ns, duration_ns);
	if (at == OPS_NONE)
		return;
	call = &roofline->calls.items[at];
	call->kernels++;
	call->device_ns = ops_sum(call->device_ns, duration_ns);
	call->transfers |= crosses_bus(name);
	call->uses_tensor_cores |= view_kernel_uses_tensor_cores(name);
	if (computes(maker, row))
		roofline->known_ns = ops_sum(roofline->known_ns, duration_ns);
}

static void find_work(struct maker *maker)
{
	const struct ops_events *events = maker->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t at = maker->call_of[row];

		if (ops_kind_is_work(events->kind[row]))
			roofline_add_work(maker, row);
		else if (at != OPS_NONE && ops_kind_is_call(events->kind[row]) &&
		         (ops_call_of(ops_trace_string(maker->trace, events->name[row])) & OPS_CALL_STARTS_WORK))
			maker->roofline->calls.items[at].launches = true;
	}
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Finds the number of a call's line or module. Returns false if out of memory. */
static bool roofline_find_place(struct maker *maker, uint32_t row, uint32_t *ret_place)
{
	struct ops_buffer text = {0};
	struct ops_string name;
	uint32_t line = 0, forward = maker->places.rows[row].forward;

	if (maker->roofline->by == OPS_ROOFLINE_MODULE) {
		name = ops_place_module(&maker->places, row);
		ops_buffer_append(&text, name.bytes, name.size);
	} else {
		name = ops_event_line(maker->trace, forward == OPS_NONE ? row : forward, &line);
		ops_buffer_append(&text, name.bytes, name.size);
		if (name.size)
			ops_buffer_printf(&text, ":%" PRIu32, line);
	}
	*ret_place = text.failed ? OPS_NONE : ops_intern_add(&maker->roofline->places, ops_buffer_text(&text), text.size);
	ops_buffer_release(&text);
	return *ret_place != OPS_NONE;
}

/* Identity of a row. */
struct row_key {
	uint32_t name, shapes;
	uint32_t type;
	uint32_t on_device;
};

static struct roofline_row *roofline_find_row(struct maker *maker, uint32_t name, const struct roofline_call *call,
                                              bool on_device, enum roof_type type, uint8_t dtype)
{
	struct roofline *roofline = maker->roofline;
	struct row_key key = {name, OPS_NONE, (uint32_t)type << 8 | dtype, on_device};
	bool by_place = maker->places.trace != NULL;
	struct roofline_row *row;

	if (by_place) {
		key.type = 0;
		if (!roofline_find_place(maker, call->row, &key.name))
			return NULL;
	}
	if (roofline->by == OPS_ROOFLINE_SHAPE &&
	    (key.shapes = ops_shapes_number(&roofline->shapes, maker->events->inputs[call->row])) == OPS_NONE)
		return NULL;
	row = OPS_ARRAY_AT(&roofline->rows, ops_intern_add(&roofline->keys, &key, sizeof(key)));
	if (row && row->roof && strcmp(row->type, roof_dtype_name(dtype, type)) != 0)
		row->type = "";
	if (!row || row->roof)
		return row;
	*row = (struct roofline_row){.name = by_place ? ops_intern_text(&roofline->places, key.name)
	                                              : ops_trace_string(maker->trace, name), .type = roof_dtype_name(dtype, type),
	                             .processor = on_device ? "GPU" : "CPU", .roof = on_device ? &roofline->device : &roofline->cpu,
	                             .longest = call->row, .longest_ns = -1};
	if (key.shapes != OPS_NONE)
		row->shapes = ops_intern_text(&roofline->shapes.texts, key.shapes);
	return row;
}

/* The share of a call that counts for a row, and the time of that share. */
struct part {
	uint32_t name;
	int64_t time_ns;
	uint32_t kernels;
	double share;
};

static bool roofline_add_part(struct maker *maker, uint32_t call_number, bool on_device, const struct part *part)
{
	struct roofline_call *call = &maker->roofline->calls.items[call_number];
	const struct ops_demand *demand = &maker->demands[call_number];
	enum roof_type type = roof_type_of(demand->dtype);
	struct roofline_row *row;
	double compute_ns, memory_ns;

	if (on_device && type == ROOF_FLOAT32 && call->uses_tensor_cores)
		type = ROOF_TFLOAT32;
	row = roofline_find_row(maker, part->name, call, on_device, type, demand->dtype);
	if (!row)
		return false;
	compute_ns = roof_compute_ns(row->roof, type, (double)demand->flops) * part->share;
	memory_ns = roof_memory_ns(row->roof, (double)demand->bytes, (double)part->time_ns / part->share) * part->share;
	row->count++;
	row->time_ns = ops_sum(row->time_ns, part->time_ns);
	row->flops += (double)demand->flops * part->share;
	row->bytes += (double)demand->bytes * part->share;
	row->compute_ns += compute_ns;
	row->memory_ns += memory_ns;
	row->bound_ns += compute_ns > memory_ns ? compute_ns : memory_ns;
	call->roof = row->roof;
	call->is_compute_bound = compute_ns > memory_ns;
	call->time_ns = ops_sum(call->time_ns, part->time_ns);
	call->bound_ns += compute_ns > memory_ns ? compute_ns : memory_ns;
	row->calls_ns += row->roof->call_ns * (on_device ? part->kernels : 1);
	if (part->time_ns > row->longest_ns) {
		row->longest_ns = part->time_ns;
		row->longest = call->row;
	}
	return true;
}

/* Returns true if a call did all of its work on the host. A call that launches something did the rest on a device,
 * whose events may be missing in the trace. A trace with device work but without runtime calls leaves this open. */
static bool ran_on_host(const struct maker *maker, const struct roofline_call *call, bool has_calls)
{
	return !call->kernels && !call->launches && (!maker->roofline->has_device_work || has_calls);
}

static bool has_launch_calls(const struct ops_events *events)
{
	for (size_t row = 0; row < events->count; row++)
		if (ops_kind_is_call(events->kind[row]))
			return true;
	return false;
}

static bool roofline_sum_calls(struct maker *maker)
{
	struct roofline *roofline = maker->roofline;
	bool has_calls = has_launch_calls(maker->events), done = true;

	for (uint32_t i = 0; done && i < roofline->calls.count; i++) {
		const struct roofline_call *call = &roofline->calls.items[i];
		struct part part = {.name = maker->events->name[call->row], .kernels = call->kernels, .share = 1};

		part.time_ns = call->kernels ? call->device_ns : roofline_duration(maker->events, call->row);
		if (call->kernels ? !call->transfers : ran_on_host(maker, call, has_calls))
			done = roofline_add_part(maker, i, call->kernels > 0, &part);
		if (!roofline->has_device_work)
			roofline->known_ns = ops_sum(roofline->known_ns, part.time_ns);
	}
	return done;
}

/* An operator's demand is divided among its kernels in proportion to their time. */
static bool sum_kernels(struct maker *maker)
{
	const struct ops_events *events = maker->events;
	bool done = true;

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t at = ops_kind_is_work(events->kind[row]) ? call_of_work(maker, row) : OPS_NONE;
		const struct roofline_call *call = at == OPS_NONE ? NULL : &maker->roofline->calls.items[at];
		struct part part = {.name = events->name[row], .time_ns = roofline_duration(events, row), .kernels = 1};

		if (!call || call->transfers || call->device_ns <= 0)
			continue;
		part.share = (double)part.time_ns / (double)call->device_ns;
		done = roofline_add_part(maker, at, true, &part);
	}
	return done;
}

static bool roofline_is_operator(const void *context, uint32_t row)
{
	const struct maker *maker = context;
	int64_t step;

	return maker->events->kind[row] == OPS_EVENT_CPU_OP && !ops_row_step(maker->trace, row, &step);
}

/* Sums the time of all outermost operators. Returns false if out of memory. */
static bool sum_operators(struct maker *maker)
{
	struct roofline *roofline = maker->roofline;
	uint32_t *around = ops_rows_around(maker->trace, roofline_is_operator, maker);

	for (uint32_t row = 0; around && row < maker->events->count; row++)
		if (around[row] == OPS_NONE && roofline_is_operator(maker, row))
			roofline->total_ns = ops_sum(roofline->total_ns, roofline_duration(maker->events, row));
	ops_free(around);
	return around != NULL;
}

static double avoidable_ns_of(const struct roofline_row *row)
{
	return row->roof->source == ROOF_UNKNOWN || (double)row->time_ns < row->bound_ns ? 0 : (double)row->time_ns - row->bound_ns;
}

OPS_ORDER(most_time_first, struct roofline_row, OPS_DOWN(time_ns) OPS_BY_TEXT(name) OPS_BY_WORD(type) OPS_BY_TEXT(shapes))

OPS_ORDER(most_avoidable_first, struct roofline_row,
          OPS_DOWN_OF(avoidable_ns_of) OPS_DOWN(time_ns) OPS_BY_TEXT(name) OPS_BY_WORD(type) OPS_BY_TEXT(shapes))

/* --- roofline ----------------------------------------------------------------------------------------------------- */

static bool maker_init(struct maker *maker, struct roofline *roofline)
{
	const struct ops_trace *trace = roofline->trace;
	size_t count = ops_trace_events(trace)->count + 1;

	*maker = (struct maker){.roofline = roofline, .trace = trace, .events = ops_trace_events(trace)};
	maker->launchers = ops_launchers(trace);
	maker->operators = ops_operators_of(trace);
	maker->call_of = ops_realloc_array(NULL, count, sizeof(*maker->call_of));
	maker->demands = ops_realloc_array(NULL, count, sizeof(*maker->demands));
	if (roofline->by >= OPS_ROOFLINE_LINE && !ops_places_init(&maker->places, trace))
		return false;
	return maker->launchers && maker->operators && maker->call_of && maker->demands &&
	       (roofline->by != OPS_ROOFLINE_SHAPE || ops_shapes_init(&roofline->shapes, trace));
}

static void maker_release(struct maker *maker)
{
	ops_free(maker->call_of);
	ops_free(maker->demands);
}

/* A roof given by the user applies to the processor that most of the trace is about. */
static enum ops_code find_roofs(struct roofline *roofline, const char *roof, struct ops_error *error)
{
	struct roof given;
	enum ops_code code = OPS_OK;

	roof_of_cpu(roofline->trace, &roofline->cpu);
	roof_of_device(roofline->trace, &roofline->device);
	for (size_t row = 0; row < ops_trace_events(roofline->trace)->count && !roofline->has_device_work; row++)
		roofline->has_device_work = ops_kind_is_work(ops_trace_events(roofline->trace)->kind[row]);
	if (roof)
		code = roof_parse(ops_string_of(roof), &given, error);
	if (roof && !code) {
		struct roof *to = roofline->has_device_work ? &roofline->device : &roofline->cpu;

		if (!given.name[0])
			memcpy(given.name, to->name, sizeof(given.name));
		*to = given;
	}
	return code;
}

enum ops_code roofline_init(struct roofline *roofline, const struct ops_trace *trace, enum ops_roofline_by by,
                            const char *roof, struct ops_error *error)
{
	struct maker maker;
	enum ops_code code;
	bool done;

	*roofline = (struct roofline){.trace = trace, .by = by};
	code = find_roofs(roofline, roof, error);
	if (code)
		return code;
	done = maker_init(&maker, roofline) && find_calls(&maker);
	if (done) {
		find_work(&maker);
		done = (roofline->has_device_work || sum_operators(&maker)) &&
		       (by == OPS_ROOFLINE_KERNEL ? sum_kernels(&maker) : roofline_sum_calls(&maker));
	}
	maker_release(&maker);
	if (!done)
		return ops_fault_memory(error);
	if (by >= OPS_ROOFLINE_LINE)
		OPS_ARRAY_SORT(&roofline->rows, most_avoidable_first);
	else
		OPS_ARRAY_SORT(&roofline->rows, most_time_first);
	return OPS_OK;
}

void roofline_release(struct roofline *roofline)
{
	OPS_ARRAY_RELEASE(&roofline->calls);
	OPS_ARRAY_RELEASE(&roofline->rows);
	ops_intern_release(&roofline->keys);
	ops_shapes_release(&roofline->shapes);
	ops_intern_release(&roofline->places);
}

const char *roofline_bound(const struct roofline_row *row)
{
	if (row->roof->source == ROOF_UNKNOWN)
		return NULL;
	if (row->calls_ns > row->bound_ns)
		return "overhead";
	return row->compute_ns > row->memory_ns ? "compute" : "memory";
}
