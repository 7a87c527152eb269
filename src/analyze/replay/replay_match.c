/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the rows that a text of the user matches.
 */
#include <ctype.h>
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/pattern.h"
#include "base/text.h"
#include "derive/modules.h"
#include "derive/work.h"
#include "trace/kinds.h"

#define SEARCH_STEPS_MAX UINT64_C(2000000000)

/* --- lines of the program ----------------------------------------------------------------------------------------------- */

struct place {
	struct ops_string file;
	uint32_t line;
};

/* Parses "train.py:88". */
static bool parse_place(struct ops_string text, struct place *ret_place)
{
	const char *colon = text.size ? memrchr(text.bytes, ':', text.size) : NULL;
	size_t digits = colon ? (size_t)(text.bytes + text.size - colon - 1) : 0;
	uint32_t line = 0;

	if (!digits || digits > 9 || colon == text.bytes || colon[-1] == ':')
		return false;
	for (size_t i = 1; i <= digits; i++) {
		if (!isdigit((unsigned char)colon[i]))
			return false;
		line = 10 * line + (uint32_t)(colon[i] - '0');
	}
	*ret_place = (struct place){{text.bytes, (size_t)(colon - text.bytes)}, line};
	return true;
}

/* Returns true if a path is that file, or ends with a slash and that file. */
static bool is_file(struct ops_string path, struct ops_string file)
{
	return path.size >= file.size && !memcmp(path.bytes + path.size - file.size, file.bytes, file.size) &&
	       (path.size == file.size || path.bytes[path.size - file.size - 1] == '/');
}

static bool is_at(const struct replay *replay, uint32_t row, const struct place *place)
{
	const struct ops_events *events = replay->events;
	struct ops_function_text function;
	uint32_t line, caller;

	if (events->call_line && events->call_line[row]) {
		if (events->call_line[row] != place->line)
			return false;
		caller = ops_event_caller(replay->trace, row);
		return caller != OPS_NONE && ops_event_function(replay->trace, caller, &function) && is_file(function.file, place->file);
	}
	if (events->kind[row] != OPS_EVENT_CPU_OP || (events->parent[row] != OPS_NONE && events->kind[events->parent[row]] == OPS_EVENT_CPU_OP))
		return false;
	return is_file(ops_event_line(replay->trace, row, &line), place->file) && line == place->line;
}

/* --- names -------------------------------------------------------------------------------------------------------------- */

/* Recognises a class of work, on devices or of a collective on the host. Returns false for other words. */
static bool is_class(struct ops_string word, enum ops_work *ret_work)
{
	static const char *const words[] = {[OPS_WORK_COMPUTE] = "compute", [OPS_WORK_COMMUNICATION] = "communication",
	                                    [OPS_WORK_COPY] = "copy", [OPS_WORK_SET] = "memset"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (ops_string_is(word, words[i])) {
			*ret_work = (enum ops_work)i;
			return true;
		}
	return false;
}

static bool communicates_here(const struct replay *replay, uint32_t row)
{
	return ops_kind_is_work(replay->events->kind[row])
	               ? ops_work_of(replay->events->kind[row], ops_trace_string(replay->trace, replay->events->name[row])) ==
	                         OPS_WORK_COMMUNICATION
	               : replay_name_is(replay, row, REPLAY_NAME_COLLECTIVE);
}

/* "allreduce" matches "ncclDevKernel_AllReduce_Sum" and "gloo:all_reduce". */
static bool has_part(struct ops_string name, struct ops_string part)
{
	for (size_t begin = 0; begin < name.size; begin++) {
		size_t n = begin, p = 0;

		while (p < part.size && n < name.size) {
			if (name.bytes[n] == '_' && part.bytes[p] != '_') {
				n++;
			} else if (part.bytes[p] == '_' && name.bytes[n] != '_') {
				p++;
			} else {
				if (tolower((unsigned char)name.bytes[n]) != tolower((unsigned char)part.bytes[p]))
					break;
				n++;
				p++;
			}
		}
		if (p == part.size)
			return true;
	}
	return part.size == 0;
}

/* Returns the name to match: for a Python function the name without its file. */
static struct ops_string short_name_of(struct ops_string name)
{
	struct ops_function_text function;

	return ops_function_parse(name, &function) ? function.name : name;
}

/* By string of the trace: 1 if the name matches, 2 if not. */
static enum ops_code replay_match_names(const struct replay *replay, struct ops_string what, uint8_t *matches, struct ops_error *error)
{
	enum ops_module_source source = ops_module_source(replay->trace);
	struct ops_pattern *pattern = NULL;
	uint64_t steps = SEARCH_STEPS_MAX;
	enum ops_code code = ops_pattern_new(what.bytes, what.size, &pattern, error);

	for (size_t row = 0; !code && row < replay->events->count; row++) {
		uint32_t name = replay->events->name[row];
		struct ops_string text = short_name_of(ops_trace_string(replay->trace, name));

		if (!matches[name])
			matches[name] = ops_pattern_find(pattern, text.bytes, text.size, false, &steps) ? 1 : 2;
	}
	/* Modules also match by their paths. */
	for (uint32_t row = 0; !code && source != OPS_MODULES_NONE && row < replay->events->count; row++) {
		struct ops_string path;

		if (!ops_is_module_call(replay->trace, source, row))
			continue;
		path = ops_module_of_call(replay->trace, row);
		if (matches[replay->events->name[row]] == 2 && ops_pattern_find(pattern, path.bytes, path.size, false, &steps))
			matches[replay->events->name[row]] = 1;
	}
	ops_pattern_free(pattern);
	return code;
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

static void match_communication(const struct replay *replay, struct ops_string part, uint16_t *mask, uint16_t bit)
{
	bool all = ops_string_is(part, "communication");

	for (uint32_t row = 0; row < replay->events->count; row++)
		if (communicates_here(replay, row) && (all || has_part(ops_trace_string(replay->trace, replay->events->name[row]), part)))
			mask[row] |= bit;
}

enum ops_code replay_match(const struct replay *replay, struct ops_string what, bool communication, uint16_t *mask,
                           uint16_t bit, struct ops_error *error)
{
	const struct ops_events *events = replay->events;
	struct place place;
	enum ops_work work;
	uint8_t *matches;
	enum ops_code code;

	if (communication || ops_string_is(what, "communication")) {
		match_communication(replay, what, mask, bit);
		return OPS_OK;
	}
	if (is_class(what, &work)) {
		for (uint32_t row = 0; row < events->count; row++)
			if (ops_kind_is_work(events->kind[row]) &&
			    ops_work_of(events->kind[row], ops_trace_string(replay->trace, events->name[row])) == work)
				mask[row] |= bit;
		return OPS_OK;
	}
	if (parse_place(what, &place)) {
		for (uint32_t row = 0; row < events->count; row++)
			if (replay_is_host_row(replay, row) && is_at(replay, row, &place))
				mask[row] |= bit;
		return OPS_OK;
	}
	matches = ops_alloc_zeroed(ops_trace_string_count(replay->trace) + 1, 1);
	if (!matches)
		return ops_fault_memory(error);
	code = replay_match_names(replay, what, matches, error);
	for (uint32_t row = 0; !code && row < events->count; row++)
		if (matches[events->name[row]] == 1 && events->kind[row] != OPS_EVENT_TRACE &&
		    !replay_name_is(replay, row, REPLAY_NAME_STEP))
			mask[row] |= bit;
	ops_free(matches);
	return code;
}
