/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of an incident, from JSON: see incident.h. Members that are missing or of another type stay zero.
 */
#include "analyze/incident/incident.h"

#include <opstrobe/error.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"

/* Decodes a text into the facts' buffer. Its capacity was reserved, since a decoded text is never longer. */
static struct ops_string fact_text(struct incident_facts *facts, struct ops_string object, const char *key)
{
	struct ops_string value;
	size_t start = facts->texts.size;

	if (!ops_json_find_member(object, key, &value) || !ops_json_decode_value(&facts->texts, value))
		return (struct ops_string){0};
	return facts->texts.failed ? (struct ops_string){0}
	                           : (struct ops_string){facts->texts.bytes + start, facts->texts.size - start};
}

static void stack_parse(struct incident_facts *facts, struct ops_string object, struct incident_stack *stack)
{
	struct ops_string frames, frame, state;
	struct ops_json_walk cursor;

	*stack = (struct incident_stack){
		.tid = ops_json_integer_of(object, "tid", 0),
		.name = fact_text(facts, object, "name"),
		.is_main = ops_json_is_true(object, "is_main"),
		.has_gil = ops_json_is_true(object, "has_gil"),
		.system_call = ops_json_integer_of(object, "system_call", -1),
		.count = ops_json_integer_of(object, "count", 1),
	};
	state = fact_text(facts, object, "state");
	stack->state = state.size ? state.bytes[0] : 0;
	if (!ops_json_find_member(object, "python", &frames))
		return;
	cursor = ops_json_walk(frames.bytes, frames.size);
	while (stack->frame_count < INCIDENT_FRAMES_MAX && ops_json_next_element(&cursor, &frame))
		stack->frames[stack->frame_count++] = (struct incident_frame){
			.file = fact_text(facts, frame, "file"),
			.function = fact_text(facts, frame, "function"),
			.line = ops_json_integer_of(frame, "line", 0),
		};
}

#define PARSE_STACKS(facts, key, to)                                                                                    \
	do {                                                                                                            \
		struct ops_string list_, object_;                                                                       \
		struct ops_json_walk cursor_;                                                                           \
                                                                                                                        \
		if (!ops_json_find_member((facts)->json, (key), &list_))                                                \
			break;                                                                                          \
		cursor_ = ops_json_walk(list_.bytes, list_.size);                                                       \
		while (ops_json_next_element(&cursor_, &object_) && OPS_ARRAY_PUSH(to))                                 \
			stack_parse((facts), object_, &(to)->items[(to)->count - 1]);                                   \
	} while (0)

/* Returns whether the frame runs Python code, so that C code before it is called from Python. */
static bool native_is_python(struct ops_string function)
{
	return ops_string_starts(function, "_PyEval_") || ops_string_starts(function, "PyEval_");
}

/* Adds the frames of C code before the first frame of the interpreter. */
static void native_parse(struct incident_facts *facts, struct ops_string object, struct incident_stack *stack)
{
	struct ops_string frames, frame, function, file;
	struct ops_json_walk cursor;
	int64_t line;

	if (!ops_json_find_member(object, "frames", &frames))
		return;
	cursor = ops_json_walk(frames.bytes, frames.size);
	while (stack->native_count < INCIDENT_NATIVE_MAX && ops_json_next_element(&cursor, &frame)) {
		function = fact_text(facts, frame, "function");
		if (native_is_python(function))
			return;
		line = ops_json_integer_of(frame, "line", 0);
		file = fact_text(facts, frame, line ? "file" : "library");
		stack->native[stack->native_count++] = (struct incident_frame){.file = file, .function = function, .line = line};
	}
}

static void fact_native(struct incident_facts *facts)
{
	struct ops_string list, object;
	struct ops_json_walk cursor;

	if (!ops_json_find_member(facts->json, "native", &list))
		return;
	cursor = ops_json_walk(list.bytes, list.size);
	while (ops_json_next_element(&cursor, &object))
		for (size_t i = 0; i < facts->threads.count; i++)
			if (facts->threads.items[i].tid == ops_json_integer_of(object, "tid", 0) && !facts->threads.items[i].native_count)
				native_parse(facts, object, &facts->threads.items[i]);
}

static void fact_step(struct incident_facts *facts)
{
	struct ops_string step;

	if (!ops_json_find_typed(facts->json, "step", '{', &step))
		return;
	facts->has_step = true;
	facts->step = ops_json_integer_of(step, "number", 0);
	facts->step_ns = ops_json_integer_of(step, "duration_ns", 0);
	facts->usual_ns = ops_json_integer_of(step, "usual_ns", 0);
	facts->step_goes_on = ops_json_is_true(step, "goes_on");
}

static void fact_over(struct incident_facts *facts)
{
	struct ops_string over;

	facts->has_over = ops_json_find_member(facts->json, "over", &over);
	if (!facts->has_over)
		return;
	facts->over_ns = ops_json_integer_of(over, "duration_ns", 0);
	facts->ran_ns = ops_json_integer_of(over, "ran_ns", 0);
	facts->waited_ns = ops_json_integer_of(over, "waited_ns", 0);
	facts->collecting_ns = ops_json_integer_of(over, "collecting_ns", 0);
	facts->minor_faults = ops_json_integer_of(over, "minor_faults", 0);
	facts->major_faults = ops_json_integer_of(over, "major_faults", 0);
}

static void fact_end(struct incident_facts *facts)
{
	struct ops_string object;

	if (ops_json_find_member(facts->json, "signal", &object)) {
		facts->signal_name = fact_text(facts, object, "name");
		facts->signal_address = ops_json_integer_of(object, "address", 0);
		stack_parse(facts, object, &facts->end);
	} else if (ops_json_find_member(facts->json, "exit", &object)) {
		facts->exit_status = ops_json_integer_of(object, "status", 0);
		stack_parse(facts, object, &facts->end);
	} else if (ops_json_find_member(facts->json, "exception", &object)) {
		facts->exception_type = fact_text(facts, object, "type");
		facts->exception_message = fact_text(facts, object, "message");
		stack_parse(facts, object, &facts->end);
	}
}

enum ops_code incident_facts_read(struct incident_facts *facts, struct ops_string json, struct ops_error *error)
{
	struct ops_string memory;

	*facts = (struct incident_facts){.json = json};
	if (ops_json_validate(json.bytes, json.size, error))
		return ops_fault_context(error, OPS_CORRUPT, "the facts of an incident are not valid");
	if (json.bytes[0] != '{')
		return ops_fault(error, OPS_CORRUPT, "the facts of an incident are not a JSON object");
	if (!ops_buffer_room(&facts->texts, json.size))
		return ops_fault_memory(error);
	facts->trigger = fact_text(facts, json, "trigger");
	facts->process = fact_text(facts, json, "process");
	facts->host = fact_text(facts, json, "host");
	facts->command = fact_text(facts, json, "command");
	facts->time_ns = ops_json_integer_of(json, "time_ns", 0);
	facts->pid = ops_json_integer_of(json, "pid", 0);
	facts->tid = ops_json_integer_of(json, "tid", 0);
	facts->rank = ops_json_integer_of(json, "rank", -1);
	facts->world_size = ops_json_integer_of(json, "world_size", 0);
	facts->quiet_ns = ops_json_integer_of(json, "quiet_ns", 0);
	facts->sample_count = ops_json_integer_of(json, "sample_count", 0);
	if (ops_json_find_member(json, "process_memory", &memory)) {
		facts->rss_bytes = ops_json_integer_of(memory, "rss_bytes", 0);
		facts->limit_bytes = ops_json_integer_of(memory, "limit_bytes", 0);
		facts->oom_kills = ops_json_integer_of(memory, "oom_kills", 0);
	}
	fact_step(facts);
	fact_over(facts);
	fact_end(facts);
	PARSE_STACKS(facts, "threads", &facts->threads);
	PARSE_STACKS(facts, "samples", &facts->samples);
	fact_native(facts);
	return OPS_OK;
}

void incident_facts_release(struct incident_facts *facts)
{
	OPS_ARRAY_RELEASE(&facts->threads);
	OPS_ARRAY_RELEASE(&facts->samples);
	ops_buffer_release(&facts->texts);
}
