/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `compile_events`: the events of torch.compile in a trace. Its phases are ranges named "… (dynamo_timed)".
 * Compiled code runs inside "Torch-Compiled Region: 3/1", where 3 is the number of the code object and 1 how often it
 * was compiled before.
 */
#include <string.h>

#include "analyze/relations/relation_list.h"
#include "base/json_walk.h"

#define EVENT (rows->selected[row->at])
#define PHASE " (dynamo_timed)"
#define REGION "Torch-Compiled Region: "
#define GRAPH "## Call CompiledFxGraph "

enum compile_kind { COMPILE_NONE, COMPILE_PHASE, COMPILE_REGION, COMPILE_GRAPH };

/* Sets `*ret_text` to the phase's name, the region's id or the graph's key. */
static enum compile_kind compile_kind_of(struct ops_string name, struct ops_string *ret_text)
{
	const size_t phase = strlen(PHASE), region = strlen(REGION), graph = strlen(GRAPH);

	if (name.size > phase && !memcmp(name.bytes + name.size - phase, PHASE, phase)) {
		*ret_text = (struct ops_string){name.bytes, name.size - phase};
		return COMPILE_PHASE;
	}
	if (name.size > region && !memcmp(name.bytes, REGION, region)) {
		*ret_text = (struct ops_string){name.bytes + region, name.size - region};
		return COMPILE_REGION;
	}
	if (name.size > graph && !memcmp(name.bytes, GRAPH, graph)) {
		const char *key = name.bytes + graph, *end = memchr(key, ' ', name.size - graph);

		*ret_text = (struct ops_string){key, end ? (size_t)(end - key) : name.size - graph};
		return COMPILE_GRAPH;
	}
	return COMPILE_NONE;
}

static enum compile_kind compile_text(const struct relation_rows *rows, uint32_t event, struct ops_string *ret_text)
{
	return compile_kind_of(ops_trace_string(rows->trace, rows->events->name[event]), ret_text);
}

static bool is_compile_event(const struct relation_rows *rows, uint32_t event)
{
	uint8_t kind = rows->events->kind[event];
	struct ops_string text;

	return (kind == OPS_EVENT_USER_ANNOTATION || kind == OPS_EVENT_CPU_OP) && compile_text(rows, event, &text) != COMPILE_NONE;
}

static void set_compile_kind(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	static const char *const names[] = {"", "phase", "region", "graph"};
	struct ops_string text;

	cell->text = ops_string_of(names[compile_text(rows, event, &text)]);
}

static void set_compile_name(const struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	compile_text(rows, event, &cell->text);
}

/* Parses "3/1", or "!0/3/1" if autograd is compiled: the last number, or the one before it. */
static void set_compile_number(const struct relation_rows *rows, uint32_t event, bool last, struct result_cell *cell)
{
	struct ops_string text, number;
	const char *slash;

	cell->is_null = true;
	if (compile_text(rows, event, &text) != COMPILE_REGION || !(slash = memrchr(text.bytes, '/', text.size)))
		return;
	number = (struct ops_string){slash + 1, (size_t)(text.bytes + text.size - slash - 1)};
	if (!last) {
		const char *before = memrchr(text.bytes, '/', (size_t)(slash - text.bytes));
		const char *start = before ? before + 1 : text.bytes;

		number = (struct ops_string){start, (size_t)(slash - start)};
	}
	cell->is_null = !ops_json_parse_integer(number, &cell->integer);
}

RELATION_GETTER(get_compile_id, cell->integer = EVENT)
RELATION_GETTER(get_compile_kind, set_compile_kind(rows, EVENT, cell))
RELATION_GETTER(get_compile_name, set_compile_name(rows, EVENT, cell))
RELATION_GETTER(get_compile_frame, set_compile_number(rows, EVENT, false, cell))
RELATION_GETTER(get_compile_recompile, set_compile_number(rows, EVENT, true, cell))
RELATION_GETTER(get_compile_start, cell->integer = rows->events->start_ns[EVENT])
RELATION_GETTER(get_compile_duration, relation_get_duration(rows, EVENT, cell))
RELATION_GETTER(get_compile_step, relation_get_step(rows, EVENT, cell))
RELATION_GETTER(get_compile_pid, relation_get_pid(rows, rows->events->track[EVENT], cell))
RELATION_GETTER(get_compile_tid, relation_get_tid(rows, rows->events->track[EVENT], cell))

static const struct result_column columns[] = {
	{.name = "id", .type = RESULT_INTEGER, .get = get_compile_id, .about = "id of its row in events"},
	{.name = "kind", .type = RESULT_TEXT, .get = get_compile_kind,
	 .about = "phase: torch.compile works; region: code that it compiled runs; graph: a graph of that runs"},
	{.name = "name", .type = RESULT_TEXT, .get = get_compile_name, .about = "name of the phase, compile id of the region (3/1), key of the graph"},
	{.name = "frame", .type = RESULT_INTEGER, .nullable = true, .get = get_compile_frame,
	 .about = "of a region: number of the code that was compiled; a graph break adds one"},
	{.name = "recompile", .type = RESULT_INTEGER, .nullable = true, .get = get_compile_recompile,
	 .about = "of a region: how often that code was compiled before"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_compile_start, .about = "start, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_compile_duration, .about = "duration"},
	{.name = "step", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_STEPS, .get = get_compile_step,
	 .about = "number of the step in which it starts"},
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_compile_pid, .about = "process"},
	{.name = "tid", .type = RESULT_INTEGER, .nullable = true, .get = get_compile_tid, .about = "thread"},
};
const struct result_declaration relation_compile_events_declaration =
	RESULT_DECLARATION("compile_events", "a phase of torch.compile, or a run of what it compiled", columns);

bool relation_compile_events_open(struct relation_rows *rows)
{
	return relation_select(rows, is_compile_event);
}
