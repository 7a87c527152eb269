/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of an analysis: given values, or the defaults in its table.
 */
#include "analyze/analysis.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_value.h"
#include "base/limit.h"
#include "base/text.h"

struct ops_string analysis_arg(const struct analysis_run *run, const char *name)
{
	struct ops_json_walk cursor = ops_json_walk(run->args.bytes, run->args.size);
	struct ops_string key, value, found = {"null", 4};
	const struct ops_query_option *option = run->analysis->options;

	for (; option && option->name; option++)
		if (!strcmp(option->name, name))
			found = (struct ops_string){option->default_value, strlen(option->default_value)};
	while (ops_json_next_member(&cursor, &key, &value))
		if (ops_string_is(key, name))
			found = value;
	return found;
}

static enum ops_code analysis_args_fail(const struct analysis_run *run, const char *name, const char *wanted)
{
	struct ops_string value = analysis_arg(run, name);

	return ops_fault(run->error, OPS_INVALID, "option '%s' of %s must be %s, not '%.*s'", name, run->analysis->id, wanted,
	                 (int)(value.size < 80 ? value.size : 80), value.bytes);
}

/* Records that an option that is read has another type. */
static void analysis_args_refuse(struct analysis_run *run, const char *name, const char *wanted)
{
	if (!run->code)
		run->code = analysis_args_fail(run, name, wanted);
}

int64_t analysis_integer(struct analysis_run *run, const char *name)
{
	struct ops_string value = analysis_arg(run, name);
	int64_t number = 0;

	if (value.bytes[0] == '"' || !ops_json_parse_integer(value, &number))
		analysis_args_refuse(run, name, "a whole number");
	return number;
}

int64_t analysis_count(struct analysis_run *run, const char *name)
{
	int64_t count = analysis_integer(run, name);

	if (count < 0)
		analysis_args_refuse(run, name, "a whole number from 0 on");
	return count < 0 ? 0 : count;
}

int64_t analysis_limit(struct analysis_run *run)
{
	return ops_string_is(analysis_arg(run, "limit"), "null") ? -1 : analysis_count(run, "limit");
}

double analysis_number(struct analysis_run *run, const char *name)
{
	struct ops_string value = analysis_arg(run, name);
	double number = 0;

	if (value.bytes[0] == '"' || !ops_json_parse_number(value, &number) || !isfinite(number))
		analysis_args_refuse(run, name, "a number");
	return isfinite(number) ? number : 0;
}

bool analysis_bool(struct analysis_run *run, const char *name)
{
	struct ops_string value = analysis_arg(run, name);
	bool is_true = ops_string_is(value, "true");

	if (!is_true && !ops_string_is(value, "false"))
		analysis_args_refuse(run, name, "true or false");
	return is_true;
}

/* Returns a text in JSON; "" for other values. */
static struct ops_string analysis_args_decode(struct analysis_run *run, struct ops_string json)
{
	struct ops_buffer text = {0};
	struct ops_string copy = {"", 0};
	const char *bytes;

	ops_json_decode_value(&text, json);
	ops_buffer_append(&text, "", 1);
	bytes = text.failed ? NULL : ops_arena_copy(&run->texts, text.bytes, text.size);
	if (bytes)
		copy = (struct ops_string){bytes, text.size - 1};
	else if (!run->code)
		run->code = ops_fault_memory(run->error);
	ops_buffer_release(&text);
	return copy;
}

struct ops_string analysis_text(struct analysis_run *run, const char *name)
{
	struct ops_string value = analysis_arg(run, name);

	if (value.bytes[0] != '"' && !ops_string_is(value, "null"))
		analysis_args_refuse(run, name, "a text");
	return analysis_args_decode(run, value);
}

const struct ops_string *analysis_texts(struct analysis_run *run, const char *name, size_t *ret_count)
{
	struct ops_string list = analysis_arg(run, name), item;
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string *texts = ops_arena_alloc(&run->texts, (list.size + 1) * sizeof(*texts)); /* an item takes a byte */

	*ret_count = 0;
	if (!texts && !run->code)
		run->code = ops_fault_memory(run->error);
	if (list.bytes[0] != '[' && !ops_string_is(list, "null"))
		analysis_args_refuse(run, name, "a list of texts");
	while (texts && list.bytes[0] == '[' && ops_json_next_element(&walk, &item)) {
		if (item.bytes[0] != '"')
			analysis_args_refuse(run, name, "a list of texts");
		texts[(*ret_count)++] = analysis_args_decode(run, item);
	}
	return texts;
}

const int64_t *analysis_integers(struct analysis_run *run, const char *name, size_t *ret_count)
{
	struct ops_string list = analysis_arg(run, name), item;
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size); /* a single number counts as one element */
	int64_t *numbers;

	*ret_count = 0;
	if (ops_string_is(list, "null"))
		return NULL;
	numbers = ops_arena_alloc(&run->texts, (list.size + 1) * sizeof(*numbers)); /* a number takes a byte */
	if (!numbers && !run->code)
		run->code = ops_fault_memory(run->error);
	if (list.bytes[0] == '{')
		analysis_args_refuse(run, name, "a list of whole numbers");
	while (numbers && ops_json_next_element(&walk, &item))
		if (!ops_json_parse_integer(item, &numbers[(*ret_count)++]))
			analysis_args_refuse(run, name, "a list of whole numbers");
	return numbers;
}

bool analysis_integers_have(const int64_t *list, size_t count, int64_t number)
{
	for (size_t i = 0; i < count && !ops_limit_reached(); i++)
		if (list[i] == number)
			return true;
	return false;
}

static bool find_rank(const struct analysis_run *run, int64_t rank, size_t *ret_index)
{
	for (size_t i = 0; i < run->count; i++) {
		if (run->ranks[i].rank == rank) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static size_t lowest_rank(const struct analysis_run *run)
{
	size_t lowest = 0;

	for (size_t i = 1; i < run->count; i++)
		if (run->ranks[i].rank < run->ranks[lowest].rank)
			lowest = i;
	return lowest;
}

static enum ops_code fail_rank(const struct analysis_run *run, int64_t rank)
{
	return ops_fault(run->error, OPS_INVALID, "rank %lld does not exist; the lowest is %lld", (long long)rank,
	                 (long long)run->ranks[lowest_rank(run)].rank);
}

size_t analysis_rank(struct analysis_run *run)
{
	size_t index = lowest_rank(run);
	int64_t rank;

	if (ops_string_is(analysis_arg(run, "rank"), "null"))
		return index;
	rank = analysis_integer(run, "rank");
	if (!run->code && !find_rank(run, rank, &index))
		run->code = fail_rank(run, rank);
	return index;
}

enum ops_code analysis_ranks(const struct analysis_run *run, size_t **ret_indexes, size_t *ret_count)
{
	struct ops_string list = analysis_arg(run, "ranks"), item;
	struct ops_json_walk cursor = ops_json_walk(list.bytes, list.size);
	size_t *indexes = ops_alloc_zeroed(list.size + 1, sizeof(*indexes)); /* a rank takes at least one digit */
	enum ops_code code = OPS_OK;
	int64_t rank;

	*ret_indexes = indexes;
	*ret_count = 0;
	if (!indexes)
		return ops_fault_memory(run->error);
	if (ops_string_is(list, "null"))
		indexes[(*ret_count)++] = lowest_rank(run);
	else if (list.bytes[0] != '[')
		code = analysis_args_fail(run, "ranks", "a list of ranks");
	while (!code && list.bytes[0] == '[' && ops_json_next_element(&cursor, &item)) {
		if (!ops_json_parse_integer(item, &rank))
			code = analysis_args_fail(run, "ranks", "a list of ranks");
		else if (!find_rank(run, rank, &indexes[*ret_count]))
			code = fail_rank(run, rank);
		else
			(*ret_count)++;
	}
	if (code) {
		ops_free(indexes);
		*ret_indexes = NULL;
	}
	return code;
}

bool analysis_has_events(const struct ops_rank *rank)
{
	return rank->trace && ops_trace_events(rank->trace)->count > 0 && !ops_trace_has_note(rank->trace, OPS_NOTE_NO_TIMES);
}

enum ops_code analysis_fail_not_a_trace(const struct analysis_run *run, size_t i)
{
	return ops_fault(run->error, OPS_CORRUPT, "'%s' is not a trace", run->ranks[i].path ? run->ranks[i].path : "");
}

enum ops_code analysis_first_trace(const struct analysis_run *run, const struct ops_trace **ret_trace)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->ranks[i].trace) {
			*ret_trace = run->ranks[i].trace;
			return OPS_OK;
		}
	return analysis_fail_not_a_trace(run, 0);
}

const struct event_table *analysis_table(struct analysis_run *run, size_t i)
{
	return event_set_table(&run->events, i);
}

enum ops_code analysis_failed(const struct analysis_run *run)
{
	return run->events.code ? run->events.code : ops_fault_memory(run->error);
}

enum ops_code analysis_each_rank(struct analysis_run *run, analysis_rank_function *answer, const void *context)
{
	size_t *ranks, count;
	enum ops_code code = analysis_ranks(run, &ranks, &count);

	for (size_t i = 0; !code && i < count; i++) {
		const struct event_table *table = analysis_table(run, ranks[i]);

		if (!table || !answer(run, table, context))
			code = analysis_failed(run);
	}
	ops_free(ranks);
	return code;
}

void analysis_rank_key(struct ops_json_writer *json, int64_t rank)
{
	char text[24];

	ops_json_key_of(json, text, (size_t)(ops_json_int_to(text, rank) - text));
}
