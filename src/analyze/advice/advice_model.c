/* SPDX-License-Identifier: Apache-2.0
 *
 * Places and sums for the rules.
 */
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "analyze/advice/advice.h"
#include "analyze/roofline/roof.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/text.h"
#include "derive/backward.h"
#include "derive/modules.h"
#include "derive/program.h"
#include "trace/names.h"

/* --- places --------------------------------------------------------------------------------------------------------- */

bool advice_is_region(struct ops_string name)
{
	static const char *const regions[] = {"Torch-Compiled Region*", "*CompiledFxGraph*", "CompiledFunction*", NULL};

	return advice_text_like(name, regions);
}

enum frame { FRAME_UNKNOWN, FRAME_NONE, FRAME_LIBRARY, FRAME_NAMED_LIBRARY, FRAME_USER };

bool advice_is_named_library(struct ops_string file)
{
	struct ops_string package = ops_file_package(file);

	return package.size > 0 && !ops_string_is(package, "torch") && !ops_string_is(package, "functorch") && !ops_file_is_own(file);
}

static enum frame advice_model_frame_of(const struct advice *advice, uint32_t row, uint8_t *known)
{
	struct ops_function_text function;
	uint8_t *slot = &known[advice->events->name[row]];

	if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
		return FRAME_NONE;
	if (*slot == FRAME_UNKNOWN) {
		if (!ops_event_function(advice->trace, row, &function) || !function.file.size)
			*slot = FRAME_NONE;
		else
			*slot = !ops_file_is_library(function.file) ? FRAME_USER : advice_is_named_library(function.file) ? FRAME_NAMED_LIBRARY : FRAME_LIBRARY;
	}
	return (enum frame)*slot;
}

static bool find_site(struct advice_sites *sites, uint64_t key, struct advice_site found, uint32_t *ret_site)
{
	uint32_t number = ops_map_number(&sites->numbers, key);
	bool is_new = number == sites->count;
	struct advice_site *site = OPS_ARRAY_AT(sites, number);

	*ret_site = number;
	if (site && is_new)
		*site = found;
	return site != NULL;
}

static uint64_t key_of_line(const struct advice *advice, uint32_t frame, uint32_t line)
{
	return (uint64_t)advice->events->name[frame] << 32 | line;
}

bool advice_add_site(struct advice *advice, uint32_t frame, uint32_t line, uint32_t *ret_site)
{
	return find_site(&advice->sites, key_of_line(advice, frame, line), (struct advice_site){.frame = frame, .line = line}, ret_site);
}

bool advice_stack_function(const struct advice *advice, uint32_t row, struct ops_function_text *ret_function)
{
	const uint32_t *stacks = advice->events->call_stack;

	return stacks && stacks[row] != OPS_NONE && ops_stack_function(ops_trace_string(advice->trace, stacks[row]), ret_function);
}

bool advice_add_function_site(struct advice *advice, const struct ops_function_text *function, struct advice_site site, uint32_t *ret_site)
{
	return find_site(&advice->sites, ops_hash(function->file.bytes, function->file.size) ^ function->line, site, ret_site);
}

/* Adds the line from which an operator was called by its call stack, if no call around it was recorded. */
static bool add_stack_site(struct advice *advice, uint32_t row)
{
	struct ops_function_text function;

	if (advice->site[row] != OPS_NONE || !advice_stack_function(advice, row, &function))
		return true;
	return advice_add_function_site(advice, &function, (struct advice_site){.frame = row, .line = function.line}, &advice->site[row]);
}

/* Returns the line at which a function calls a row, or else the line at which it begins. */
static uint32_t advice_model_line_of_call(const struct advice *advice, uint32_t row, uint32_t frame)
{
	struct ops_function_text function;
	uint32_t line = advice->events->call_line && row != frame ? advice->events->call_line[row] : 0;

	return !line && ops_event_function(advice->trace, frame, &function) ? function.line : line;
}

static bool add_library_site(struct advice *advice, uint32_t row, uint32_t frame, uint32_t *ret_site)
{
	uint32_t line = advice_model_line_of_call(advice, row, frame);

	return find_site(&advice->library_sites, key_of_line(advice, frame, line), (struct advice_site){.frame = frame, .line = line}, ret_site);
}

static void release_sites(struct advice_sites *sites)
{
	OPS_ARRAY_RELEASE(sites);
	ops_map_release(&sites->numbers);
}

/* Adds the first line of a function of the program, for its self time. */
static bool add_own_site(struct advice *advice, uint32_t row)
{
	uint32_t name = advice->events->name[row];
	struct ops_function_text function;

	if (advice->own_site[name] != OPS_NONE || !ops_event_function(advice->trace, row, &function))
		return true;
	return advice_add_site(advice, row, function.line, &advice->own_site[name]);
}

/* Finds the line of a library between the line of the program and a row. */
static bool advice_model_place_in_library(struct advice *advice, uint32_t row, uint8_t *known)
{
	uint32_t caller = advice->caller[row];
	enum frame of_caller = advice_model_frame_of(advice, caller, known);

	if (advice_model_frame_of(advice, row, known) == FRAME_NAMED_LIBRARY)
		return add_library_site(advice, row, row, &advice->through[row]);
	if (of_caller == FRAME_NAMED_LIBRARY)
		return add_library_site(advice, row, caller, &advice->through[row]);
	if (of_caller == FRAME_LIBRARY)
		advice->through[row] = advice->through[caller];
	return true;
}

static bool advice_model_place_row(struct advice *advice, uint32_t row, uint8_t *known)
{
	uint32_t parent = advice->events->parent[row], caller;

	if (parent == OPS_NONE)
		return true;
	caller = advice_model_frame_of(advice, parent, known) >= FRAME_LIBRARY ? parent : advice->caller[parent];
	advice->caller[row] = caller;
	/* A call of an operator is at the place of that operator, even if the place comes from another operator: a
	 * backward node is at the place of its forward operator. */
	if (advice_is_operator(advice, parent) && advice->site[parent] != OPS_NONE) {
		advice->site[row] = advice->site[parent];
		advice->through[row] = advice->through[parent];
		return true;
	}
	if (caller == OPS_NONE)
		return true;
	if (advice_model_frame_of(advice, caller, known) != FRAME_USER)
		advice->site[row] = advice->site[caller];
	else if (!advice_add_site(advice, caller, advice_model_line_of_call(advice, row, caller), &advice->site[row]))
		return false;
	return advice->site[row] == OPS_NONE || advice_model_place_in_library(advice, row, known);
}

/* Finds forward operators by backward node, or by the engine's range around a node, which holds the node itself and
 * what it accumulates. Returns false if out of memory. */
static bool find_forwards(const struct advice *advice)
{
	const uint32_t *forward = ops_forward_rows(advice->trace);

	memset(advice->forward, 0xff, (advice->events->count + 1) * sizeof(*advice->forward));
	for (uint32_t row = 0; forward && row < advice->events->count; row++) {
		uint32_t node = row, parent = advice->events->parent[row];

		if (forward[row] >= OPS_ROW_PLAIN)
			continue;
		if (parent != OPS_NONE && advice_is_node(advice, parent))
			node = parent;
		if (forward[row] < node)
			advice->forward[node] = forward[row];
	}
	return forward != NULL;
}

/* The self time of a function has no line. Most likely it is spent at the line that makes most calls: its loop. */
static bool find_busiest_lines(struct advice *advice)
{
	uint32_t *calls = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*calls));

	if (!calls)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->site[row] != OPS_NONE && !advice_is_operator(advice, row))
			calls[advice->site[row]]++;
	for (uint32_t site = 0; site < advice->sites.count; site++) {
		uint32_t frame = advice->sites.items[site].frame, *own = &advice->own_site[advice->events->name[frame]];

		if (advice->events->kind[frame] != OPS_EVENT_PYTHON_FUNCTION)
			continue;
		if (*own == OPS_NONE || calls[site] > calls[*own])
			*own = site;
	}
	ops_free(calls);
	return true;
}

static bool advice_model_find_places(struct advice *advice)
{
	const uint32_t *forward = advice->forward;
	uint8_t *known = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1);
	bool done = known != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		advice->caller[row] = advice->site[row] = advice->through[row] = OPS_NONE;
		done = advice_model_place_row(advice, row, known) && add_stack_site(advice, row) &&
		       (advice_model_frame_of(advice, row, known) != FRAME_USER || add_own_site(advice, row));
		if (forward[row] != OPS_NONE && advice->site[forward[row]] != OPS_NONE) {
			advice->site[row] = advice->site[forward[row]];
			advice->through[row] = advice->through[forward[row]];
		}
	}
	ops_free(known);
	return done && find_busiest_lines(advice);
}

/* Maximum number of torch functions between the program and the engine. */
#define DEPTH_MAX 16

uint32_t advice_calling_row(const struct advice *advice, uint32_t row)
{
	uint32_t caller = advice->caller[row];

	for (int i = 0; i < DEPTH_MAX && caller != OPS_NONE && advice_own_site(advice, caller) == OPS_NONE; i++) {
		row = caller;
		caller = advice->caller[caller];
	}
	return row;
}

uint32_t advice_function_around(const struct advice *advice, uint32_t row)
{
	do
		row = advice->events->parent[row];
	while (row != OPS_NONE && advice_own_site(advice, row) == OPS_NONE);
	return row;
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static bool find_zones(struct advice *advice)
{
	uint8_t *blocked = ops_blocking_names(advice->trace);

	for (uint32_t row = 0; blocked && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		uint8_t zone = parent != OPS_NONE ? advice->zone[parent] : 0;
		uint16_t name = advice->views->names[advice->events->name[row]];

		if (parent != OPS_NONE && advice_is_operator(advice, parent))
			zone |= ADVICE_IN_OPERATOR;
		if (advice->views->parts[row] == VIEW_LOADER && !advice->inside_loader)
			zone |= ADVICE_IN_LOADER;
		if (name & VIEW_NAME_OPTIMIZER)
			zone |= ADVICE_IN_OPTIMIZER;
		if (advice->events->scope[row] == 1 || advice_is_node(advice, row))
			zone |= ADVICE_IN_BACKWARD;
		if (blocked[advice->events->name[row]] && advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			zone |= ADVICE_WAITING;
		if (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && ops_string_starts(advice_name(advice, row), OPS_IMPORT_PREFIX))
			zone |= ADVICE_IN_IMPORT;
		advice->zone[row] = zone;
	}
	ops_free(blocked);
	return blocked != NULL;
}

/* Between nodes the engine counts dependencies, passes gradients on, and frees what each node kept. This takes equally
 * long for each node. */
static void find_engine_times(struct advice *advice)
{
	int64_t *nodes = advice->engine_ns; /* first the number of nodes */

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];

		if (parent != OPS_NONE && advice_is_node(advice, row) && ops_string_contains(advice_name(advice, parent), "run_backward"))
			nodes[parent]++;
	}
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (nodes[row])
			advice->engine_ns[row] = advice->self_ns[row] / nodes[row];
}

/* Walks from the last row to the first, since children come after their parents. */
static void advice_model_sum_up(struct advice *advice)
{
	const uint32_t *forward = advice->forward;

	for (uint32_t row = (uint32_t)advice->events->count; row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		if (forward[row] != OPS_NONE)
			advice->backward_ns[forward[row]] = ops_sum(advice->backward_ns[forward[row]], advice_node_ns(advice, row));
		if (advice_is_operator(advice, row))
			advice->operator_ns[row] = advice_ns(advice, row);
		if (parent == OPS_NONE)
			continue;
		if (advice->backward_ns[row])
			advice->backward_ns[parent] = ops_sum(advice->backward_ns[parent], advice->backward_ns[row]);
		advice->operator_ns[parent] = ops_sum(advice->operator_ns[parent], advice->operator_ns[row]);
	}
}

/* --- model ---------------------------------------------------------------------------------------------------------- */

static bool has_roof(const struct ops_trace *trace)
{
	struct roof cpu, device;

	roof_of_cpu(trace, &cpu);
	roof_of_device(trace, &device);
	return cpu.source != ROOF_UNKNOWN || device.source != ROOF_UNKNOWN;
}

static void find_needs(struct advice *advice)
{
	const enum ops_module_source modules = ops_module_source(advice->trace);
	const struct ops_events *events = advice->events;
	size_t records;

	ops_trace_memory(advice->trace, &records);
	advice->has |= records ? ADVICE_NEEDS_MEMORY : 0;
	advice->has |= advice->views->device_events.count ? ADVICE_NEEDS_DEVICE : 0;
	advice->has |= advice->real_steps && advice->views->steps.count > 1 ? ADVICE_NEEDS_STEPS : 0;
	advice->has |= advice->views->has_collectives ? ADVICE_NEEDS_COMMUNICATION : 0;
	advice->has |= has_roof(advice->trace) ? ADVICE_NEEDS_ROOF : 0;
	/* A trace may have calls of modules alone. */
	for (size_t i = 0; i < advice->named.count; i++) {
		uint32_t row = advice->named.items[i];

		if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && !ops_is_module_call(advice->trace, modules, row))
			advice->has |= ADVICE_NEEDS_PYTHON;
	}
	for (uint32_t row = 0; row < events->count; row++) {
		advice->has |= events->kind[row] == OPS_EVENT_CPU_OP ? ADVICE_NEEDS_OPERATORS : 0;
		advice->has |= events->inputs[row] != OPS_NONE ? ADVICE_NEEDS_SHAPES : 0;
		advice->has |= events->storages && events->storages[row] != OPS_NONE ? ADVICE_NEEDS_STORAGES : 0;
	}
}

static bool find_named(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	uint8_t *known = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1);
	bool done = known != NULL;

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t name = events->name[row];

		if (!known[name]) {
			known[name] = 1;
			done = OPS_ARRAY_APPEND(&advice->named, row);
		}
	}
	ops_free(known);
	return done;
}

static bool advice_model_allocate(struct advice *advice)
{
	size_t count = advice->events->count + 1, strings = ops_trace_string_count(advice->trace) + 1;

	advice->ns = ops_alloc_zeroed(count, sizeof(*advice->ns));
	advice->self_ns = ops_alloc_zeroed(count, sizeof(*advice->self_ns));
	advice->lost_ns = ops_alloc_zeroed(count, sizeof(*advice->lost_ns));
	advice->stalled_ns = ops_alloc_zeroed(count, sizeof(*advice->stalled_ns));
	advice->stalled_self_ns = ops_alloc_zeroed(count, sizeof(*advice->stalled_self_ns));
	advice->device_ns = ops_alloc_zeroed(count, sizeof(*advice->device_ns));
	advice->step_of = ops_realloc_array(NULL, count, sizeof(*advice->step_of));
	advice->site = ops_realloc_array(NULL, count, sizeof(*advice->site));
	advice->through = ops_realloc_array(NULL, count, sizeof(*advice->through));
	advice->caller = ops_realloc_array(NULL, count, sizeof(*advice->caller));
	advice->zone = ops_alloc_zeroed(count, sizeof(*advice->zone));
	advice->claimed = ops_alloc_zeroed(count, sizeof(*advice->claimed));
	advice->row_claimed_ns = ops_alloc_zeroed(count, sizeof(*advice->row_claimed_ns));
	advice->self_claimed_ns = ops_alloc_zeroed(count, sizeof(*advice->self_claimed_ns));
	advice->claimed_ns = ops_alloc_zeroed(count, sizeof(*advice->claimed_ns));
	advice->backward_row_claimed_ns = ops_alloc_zeroed(count, sizeof(*advice->backward_row_claimed_ns));
	advice->backward_claimed_ns = ops_alloc_zeroed(count, sizeof(*advice->backward_claimed_ns));
	advice->own_site = ops_alloc_none(strings);
	advice->backward_ns = ops_alloc_zeroed(count, sizeof(*advice->backward_ns));
	advice->forward = ops_realloc_array(NULL, count, sizeof(*advice->forward));
	advice->engine_ns = ops_alloc_zeroed(count, sizeof(*advice->engine_ns));
	advice->operator_ns = ops_alloc_zeroed(count, sizeof(*advice->operator_ns));
	return advice->ns && advice->self_ns && advice->lost_ns && advice->stalled_ns && advice->stalled_self_ns && advice->device_ns && advice->step_of && advice->site &&
	       advice->through && advice->caller && advice->zone && advice->claimed && advice->row_claimed_ns &&
	       advice->self_claimed_ns && advice->claimed_ns && advice->backward_row_claimed_ns && advice->backward_claimed_ns &&
	       advice->own_site && advice->backward_ns && advice->forward && advice->engine_ns && advice->operator_ns;
}

static bool advice_model_find_flow(struct advice *advice)
{
	if (!(advice->has & ADVICE_NEEDS_STORAGES) || !(advice->has & ADVICE_NEEDS_MEMORY))
		return true;
	advice->flow = ops_alloc_zeroed(1, sizeof(*advice->flow));
	if (!advice->flow || !data_flow_init(advice->flow, advice->trace))
		return false;
	advice->contents = data_content_of(advice->flow);
	return advice->contents && advice_find_pointer_reads(advice);
}

bool advice_init(struct advice *advice, const struct ops_trace *trace, struct advice_report *report, bool inside_loader)
{
	bool done;

	*advice = (struct advice){.report = report, .trace = trace, .events = ops_trace_events(trace), .inside_loader = inside_loader,
	                          .is_of_samples = ops_trace_has_note(trace, OPS_NOTE_SAMPLED),
	                          .has_no_times = ops_trace_has_note(trace, OPS_NOTE_NO_TIMES),
	                          .incomplete = ops_trace_has_note(trace, OPS_NOTE_TRUNCATED) || ops_trace_has_note(trace, OPS_NOTE_GZIP_TRUNCATED)};
	advice->operators = ops_operators_of(trace);
	advice->views = ops_views_open(&advice->own_views, trace, OPS_RULES_OPSTROBE, false);
	if (advice->views == &advice->own_views)
		ops_views_forget_nodes(&advice->own_views);
	advice->demands = advice->operators ? ops_demands_within(trace, advice->operators) : NULL;
	done = ops_places_init(&advice->places, trace) && advice->demands && advice->views && find_named(advice) && advice_model_allocate(advice) &&
	       advice_read_machine(advice);
	if (done)
		advice_correct_times(advice);
	done = done && find_zones(advice) && advice_find_captures(advice) && advice_subtract_lost(advice) && advice_find_steps(advice);
	if (done)
		find_needs(advice);
	done = done && find_forwards(advice) && advice_model_find_places(advice) && advice_find_samples(advice) && advice_find_stalls(advice) &&
	       advice_idle_find(advice) && advice_charge_device(advice);
	if (done) {
		find_engine_times(advice);
		advice_model_sum_up(advice);
		done = advice_find_search_lines(advice) && advice_find_loops(advice);
		advice_find_faults(advice);
		done = done && advice_model_find_flow(advice);
	}
	return done;
}

void advice_release(struct advice *advice)
{
	ops_views_release(&advice->own_views);
	advice_idle_release(&advice->idle);
	ops_intervals_release(&advice->captures);
	release_sites(&advice->sites);
	release_sites(&advice->library_sites);
	OPS_ARRAY_RELEASE(&advice->loops);
	OPS_ARRAY_RELEASE(&advice->named);
	ops_free(advice->loop_of);
	ops_free(advice->steady);
	ops_free(advice->step_tracks);
	ops_free(advice->machine.waits);
	ops_free(advice->demands);
	ops_free(advice->ns);
	ops_free(advice->self_ns);
	ops_free(advice->lost_ns);
	ops_free(advice->stalled_ns);
	ops_free(advice->stalled_self_ns);
	OPS_ARRAY_RELEASE(&advice->stalls);
	OPS_ARRAY_RELEASE(&advice->pointer_reads);
	ops_free(advice->contents);
	ops_free(advice->device_ns);
	ops_free(advice->step_of);
	ops_free(advice->site);
	ops_free(advice->through);
	ops_free(advice->caller);
	ops_free(advice->zone);
	ops_python_samples_release(&advice->samples);
	ops_free(advice->sample_row);
	ops_free(advice->sample_site);
	ops_free(advice->claimed);
	ops_free(advice->row_claimed_ns);
	ops_free(advice->self_claimed_ns);
	ops_free(advice->claimed_ns);
	ops_free(advice->backward_row_claimed_ns);
	ops_free(advice->backward_claimed_ns);
	ops_free(advice->own_site);
	ops_free(advice->search_site);
	ops_source_release(&advice->source);
	ops_free(advice->backward_ns);
	ops_free(advice->forward);
	ops_free(advice->engine_ns);
	ops_free(advice->operator_ns);
	if (advice->flow)
		data_flow_release(advice->flow);
	ops_free(advice->flow);
}

bool advice_trains(const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER))
			return true;
	return false;
}
