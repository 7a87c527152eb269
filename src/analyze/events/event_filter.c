/* SPDX-License-Identifier: Apache-2.0
 *
 * See event_filter.h.
 */
#include "analyze/events/event_filter.h"

#include <math.h>
#include <string.h>

#include "analyze/events/event_query.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/limit.h"
#include "base/order.h"
#include "base/pattern.h"
#include "base/text.h"

#define LIST_MAX 64 /* numbers or texts in a condition */
#define FILTERS_MAX 64

enum place { ANYWHERE, UNDER, AFTER, BEFORE };

/* The conditions of one JSON object. */
struct filter {
	bool has_iterations, has_range, has_depth, has_streams, has_query;
	int64_t iterations[LIST_MAX], streams[LIST_MAX];
	size_t iteration_count, stream_count;
	bool by_position; /* iterations are positions among all steps */
	double from_us, to_us;
	struct ops_pattern *name; /* NULL: any */
	struct event_query query;
	struct ops_buffer text; /* scratch */
	struct ops_string categories;
	struct ops_buffer copies; /* "HtoD"; empty: any row */
	bool non_zero, kernels, operators, with_kernels;
	enum place place;
	struct ops_buffer anchor; /* name of the rows that `place` refers to */
	int64_t occurrence;
	int64_t depth_min, depth_max;
	struct ops_error *error;
	enum ops_code code;
};

/* --- parsing -------------------------------------------------------------------------------------------------------- */

static void event_filter_refuse(struct filter *filter, struct ops_string key, const char *wanted)
{
	if (!filter->code)
		filter->code = ops_fault(filter->error, OPS_INVALID, "'%.*s' of a filter %s", (int)(key.size < 80 ? key.size : 80),
		                         key.bytes, wanted);
}

static void event_filter_parse_text(struct filter *filter, struct ops_string key, struct ops_string value,
                                    struct ops_buffer *ret)
{
	if (!ops_json_decode_value(ret, value))
		event_filter_refuse(filter, key, "must be a text");
	if (ret->failed && !filter->code)
		filter->code = ops_fault_memory(filter->error);
}

static void parse_bool(struct filter *filter, struct ops_string key, struct ops_string value, bool *ret)
{
	*ret = ops_string_is(value, "true");
	if (!*ret && !ops_string_is(value, "false"))
		event_filter_refuse(filter, key, "must be true or false");
}

static size_t parse_integers(struct filter *filter, struct ops_string key, struct ops_string value, int64_t *ret)
{
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	struct ops_string item;
	size_t count = 0;

	if (value.bytes[0] != '[')
		event_filter_refuse(filter, key, "must be a list of whole numbers");
	while (value.bytes[0] == '[' && ops_json_next_element(&walk, &item)) {
		if (count == LIST_MAX || !ops_json_parse_integer(item, &ret[count]))
			event_filter_refuse(filter, key, "must be a list of at most 64 whole numbers");
		else
			count++;
	}
	return count;
}

static void parse_range(struct filter *filter, struct ops_string key, struct ops_string value)
{
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	struct ops_string from, to, more;

	filter->has_range = true;
	if (value.bytes[0] != '[' || !ops_json_next_element(&walk, &from) || !ops_json_next_element(&walk, &to) ||
	    ops_json_next_element(&walk, &more) || !ops_json_parse_number(from, &filter->from_us) ||
	    !ops_json_parse_number(to, &filter->to_us) || !isfinite(filter->from_us) || !isfinite(filter->to_us))
		event_filter_refuse(filter, key, "must be two times in microseconds");
}

static void event_filter_parse_name(struct filter *filter, struct ops_string key, struct ops_string value)
{
	filter->text.size = 0;
	event_filter_parse_text(filter, key, value, &filter->text);
	if (filter->code)
		return;
	ops_pattern_free(filter->name);
	filter->name = NULL;
	filter->code = ops_pattern_new(ops_buffer_text(&filter->text), filter->text.size, &filter->name, filter->error);
	if (filter->code)
		ops_fault_context(filter->error, filter->code, "'name' of a filter");
}

static void parse_query(struct filter *filter, struct ops_string key, struct ops_string value)
{
	filter->text.size = 0;
	event_filter_parse_text(filter, key, value, &filter->text);
	if (filter->code)
		return;
	if (filter->has_query)
		event_query_release(&filter->query);
	filter->has_query = true;
	filter->code = event_query_parse(&filter->query,
	                                 (struct ops_string){ops_buffer_text(&filter->text), filter->text.size},
	                                 filter->error);
}

static void event_filter_parse_place(struct filter *filter, struct ops_string key, struct ops_string value, enum place place)
{
	filter->place = place;
	filter->anchor.size = 0;
	event_filter_parse_text(filter, key, value, &filter->anchor);
}

static void event_filter_parse_member(struct filter *filter, struct ops_string key, struct ops_string value)
{
	int64_t numbers[LIST_MAX];
	bool first = false;

	if (ops_string_is(key, "iterations") || ops_string_is(key, "iteration_positions")) {
		filter->has_iterations = true;
		filter->by_position = key.size > 10;
		filter->iteration_count = parse_integers(filter, key, value, filter->iterations);
	} else if (ops_string_is(key, "first_iteration")) {
		parse_bool(filter, key, value, &first);
		filter->has_iterations = filter->by_position = first;
		filter->iteration_count = first;
		filter->iterations[0] = 0;
	} else if (ops_string_is(key, "streams")) {
		filter->has_streams = true;
		filter->stream_count = parse_integers(filter, key, value, filter->streams);
	} else if (ops_string_is(key, "depth")) {
		filter->has_depth = true;
		if (parse_integers(filter, key, value, numbers) != 2)
			event_filter_refuse(filter, key, "must be the least and the greatest depth");
		filter->depth_min = numbers[0];
		filter->depth_max = numbers[1];
	} else if (ops_string_is(key, "occurrence")) {
		if (!ops_json_parse_integer(value, &filter->occurrence))
			event_filter_refuse(filter, key, "must be a whole number");
	} else if (ops_string_is(key, "categories")) {
		filter->categories = value;
		if (value.bytes[0] != '[')
			event_filter_refuse(filter, key, "must be a list of texts");
	} else if (ops_string_is(key, "memcpy")) {
		filter->copies.size = 0;
		event_filter_parse_text(filter, key, value, &filter->copies);
	} else if (ops_string_is(key, "time_range")) {
		parse_range(filter, key, value);
	} else if (ops_string_is(key, "name")) {
		event_filter_parse_name(filter, key, value);
	} else if (ops_string_is(key, "query")) {
		parse_query(filter, key, value);
	} else if (ops_string_is(key, "under") || ops_string_is(key, "after") || ops_string_is(key, "before")) {
		event_filter_parse_place(filter, key, value,
		                         key.bytes[0] == 'u'   ? UNDER
		                         : key.bytes[0] == 'a' ? AFTER
		                                               : BEFORE);
	} else if (ops_string_is(key, "non_zero_duration")) {
		parse_bool(filter, key, value, &filter->non_zero);
	} else if (ops_string_is(key, "gpu_kernels")) {
		parse_bool(filter, key, value, &filter->kernels);
	} else if (ops_string_is(key, "cpu_operators")) {
		parse_bool(filter, key, value, &filter->operators);
	} else if (ops_string_is(key, "with_kernels")) {
		parse_bool(filter, key, value, &filter->with_kernels);
	} else {
		event_filter_refuse(filter, key, "is not known");
	}
}

static void event_filter_release(struct filter *filter)
{
	ops_pattern_free(filter->name);
	if (filter->has_query)
		event_query_release(&filter->query);
	ops_buffer_release(&filter->text);
	ops_buffer_release(&filter->copies);
	ops_buffer_release(&filter->anchor);
}

/* Parses an object. The caller must release the filter in any case; `code` is the result. */
static void read_filter(struct filter *filter, struct ops_string object, struct ops_error *error)
{
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	struct ops_string key, value;

	*filter = (struct filter){.error = error};
	if (object.bytes[0] == '"') {
		parse_query(filter, (struct ops_string){"query", 5}, object);
		return;
	}
	if (object.bytes[0] != '{') {
		filter->code = ops_fault(error, OPS_INVALID, "a filter must be an expression, an object, or a list of those");
		return;
	}
	while (!filter->code && ops_json_next_member(&walk, &key, &value))
		event_filter_parse_member(filter, key, value);
}

/* --- evaluation ----------------------------------------------------------------------------------------------------- */

/* The evaluation of one filter on one table. */
struct work {
	struct filter *filter;
	const struct event_set *set;
	struct event_table *table;
	uint8_t *named;    /* by string: 0 not tested yet, 1 does not match, 2 matches */
	uint32_t *depths;  /* by row of the trace */
	uint8_t *chosen;   /* by row */
	uint32_t anchor;   /* row that `place` refers to; OPS_NONE: none */
	uint64_t *steps_left;
};

static bool is_one_of(const int64_t *numbers, size_t count, int64_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static bool is_in_iteration(const struct work *work, int64_t step)
{
	const struct filter *filter = work->filter;

	if (step == EVENT_NO_STEP)
		return false;
	return is_one_of(filter->iterations, filter->iteration_count,
	                 filter->by_position ? (int64_t)event_step_index(work->set, step) : step);
}

/* Counts one unit of work. Returns false if none are left or the request has run out of time. */
static bool spend(const struct work *work)
{
	if (ops_limit_reached())
		*work->steps_left = 0;
	if (*work->steps_left)
		--*work->steps_left;
	return *work->steps_left;
}

/* Each name is matched once. */
static bool event_filter_is_named(const struct work *work, const struct event_row *row)
{
	struct ops_string name = event_name(work->table, row);

	if (!work->named[row->name])
		work->named[row->name] = ops_pattern_find(work->filter->name, name.bytes, name.size, true, work->steps_left) ? 2 : 1;
	return work->named[row->name] == 2;
}

static bool has_category(const struct work *work, const struct event_row *row)
{
	struct ops_json_walk walk = ops_json_walk(work->filter->categories.bytes, work->filter->categories.size);
	struct ops_string category = ops_event_category(work->table->trace, row->source);
	struct ops_string item;

	while (ops_json_next_element(&walk, &item) && spend(work))
		if (item.size == category.size + 2 && !memcmp(item.bytes + 1, category.bytes, category.size))
			return true;
	return false;
}

static bool is_copy(const struct work *work, const struct event_row *row)
{
	struct ops_string kind = event_memory_kind(event_name(work->table, row));
	const struct ops_buffer *wanted = &work->filter->copies;

	return row->class_ == EVENT_MEMORY && row->on_device && kind.size >= wanted->size &&
	       !memcmp(kind.bytes + kind.size - wanted->size, wanted->bytes, wanted->size);
}

static bool is_at_place(const struct work *work, const struct event_row *row)
{
	const struct event_row *anchor = &work->table->rows[work->anchor];

	if (row->track != anchor->track || row->stream != anchor->stream)
		return false;
	if (work->filter->place == UNDER)
		return row->ts_ns >= anchor->ts_ns && event_end(row) <= event_end(anchor);
	return work->filter->place == AFTER ? row->ts_ns >= event_end(anchor) : event_end(row) <= anchor->ts_ns;
}

static bool is_in_range(const struct work *work, const struct event_row *row)
{
	double from_us = (double)(row->ts_ns - work->set->first_ns) / 1e3;

	return from_us >= work->filter->from_us && from_us + (double)row->dur_ns / 1e3 <= work->filter->to_us;
}

static bool event_filter_is_chosen(const struct work *work, const struct event_row *row)
{
	const struct filter *filter = work->filter;
	uint32_t depth = work->depths ? work->depths[row->source] : 0;

	return (!filter->has_iterations || is_in_iteration(work, row->step)) &&
	       (!filter->has_range || is_in_range(work, row)) && (!filter->name || event_filter_is_named(work, row)) &&
	       (!filter->categories.bytes || has_category(work, row)) &&
	       (!filter->has_streams || is_one_of(filter->streams, filter->stream_count, row->stream)) &&
	       (!filter->non_zero || row->dur_ns > 0) &&
	       (!filter->kernels || (row->on_device && row->kind == OPS_EVENT_KERNEL)) &&
	       (!filter->operators || row->kind == OPS_EVENT_CPU_OP) && (!filter->copies.size || is_copy(work, row)) &&
	       (!filter->has_depth || (row->stream < 0 && depth >= filter->depth_min && depth <= filter->depth_max)) &&
	       (filter->place == ANYWHERE || (work->anchor != OPS_NONE && is_at_place(work, row))) &&
	       (!filter->has_query || event_query_holds(&work->filter->query, work->set, work->table, row));
}

/* Finds the row that `place` refers to: the kept rows of its name are counted in order of time. Returns false if out of
 * memory. */
static bool find_anchor(struct work *work)
{
	const struct ops_buffer *wanted = &work->filter->anchor;
	const struct event_table *table = work->table;
	uint32_t *found = ops_alloc_zeroed(table->kept_count + 1, sizeof(*found));
	int64_t at = work->filter->occurrence, count = 0;

	work->anchor = OPS_NONE;
	for (size_t i = 0; found && i < table->kept_count; i++) {
		struct ops_string name = event_name(table, &table->rows[table->kept[i]]);

		if (name.size == wanted->size && !memcmp(name.bytes, wanted->bytes, name.size))
			found[count++] = table->kept[i];
	}
	if (!found || !ops_sort_rows(found, (size_t)count, event_starts_before, table->rows)) {
		ops_free(found);
		return false;
	}
	at = at < 0 ? at + count : at;
	if (at >= 0 && at < count)
		work->anchor = found[at];
	ops_free(found);
	return true;
}

/* Parents precede their children. */
static bool event_filter_find_depths(struct work *work)
{
	const struct ops_events *events = ops_trace_events(work->table->trace);

	work->depths = ops_alloc_zeroed(events->count + 1, sizeof(*work->depths));
	for (size_t i = 0; work->depths && i < events->count; i++)
		work->depths[i] = events->parent[i] == OPS_NONE ? 0 : work->depths[events->parent[i]] + 1;
	return work->depths != NULL;
}

static bool event_filter_choose(struct work *work)
{
	struct event_table *table = work->table;
	size_t count = 0;

	work->chosen = ops_alloc_zeroed(table->count + 1, 1);
	work->named = ops_alloc_zeroed(ops_trace_string_count(table->trace) + 1, 1);
	if (!work->chosen || !work->named || (work->filter->has_depth && !event_filter_find_depths(work)) ||
	    (work->filter->place != ANYWHERE && !find_anchor(work)))
		return false;
	for (size_t i = 0; i < table->kept_count && spend(work); i++)
		work->chosen[table->kept[i]] = event_filter_is_chosen(work, &table->rows[table->kept[i]]);
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];
		bool started = work->filter->with_kernels && row->on_device && row->partner != OPS_NONE && work->chosen[row->partner];

		if (work->chosen[table->kept[i]] || started)
			table->kept[count++] = table->kept[i];
	}
	table->kept_count = count;
	return !work->filter->has_query || !event_query_failed(&work->filter->query);
}

static enum ops_code apply_one(struct ops_string object, const struct event_set *set, struct event_table *table,
                               uint64_t *steps_left)
{
	struct filter filter;
	struct work work = {.filter = &filter, .set = set, .table = table, .anchor = OPS_NONE, .steps_left = steps_left};
	enum ops_code code;

	read_filter(&filter, object, set->error);
	filter.query.steps_left = steps_left;
	code = filter.code;
	if (!code && !event_filter_choose(&work))
		code = ops_fault_memory(set->error);
	if (!code)
		code = event_query_check_steps(*steps_left, set->error);
	event_filter_release(&filter);
	ops_free(work.named);
	ops_free(work.depths);
	ops_free(work.chosen);
	return code;
}

enum ops_code event_filter_apply(struct ops_string json, const struct event_set *set, struct event_table *table)
{
	struct ops_json_walk walk = ops_json_walk(json.bytes, json.size);
	struct ops_string object;
	uint64_t steps_left = EVENT_QUERY_STEPS_MAX;
	enum ops_code code = OPS_OK;

	if (json.bytes[0] != '[')
		return apply_one(json, set, table, &steps_left);
	while (!code && ops_json_next_element(&walk, &object))
		code = apply_one(object, set, table, &steps_left);
	return code;
}

static enum ops_code check_one(struct ops_string object, struct ops_error *error)
{
	struct filter filter;
	enum ops_code code;

	read_filter(&filter, object, error);
	code = filter.code;
	event_filter_release(&filter);
	return code;
}

enum ops_code event_filter_check(struct ops_string json, struct ops_error *error)
{
	struct ops_json_walk walk = ops_json_walk(json.bytes, json.size);
	struct ops_string object;
	enum ops_code code = OPS_OK;
	size_t count = 0;

	if (json.bytes[0] != '[')
		return check_one(json, error);
	while (!code && ops_json_next_element(&walk, &object))
		code = count++ < FILTERS_MAX ? check_one(object, error)
		                             : ops_fault(error, OPS_INVALID, "more than %d filters", FILTERS_MAX);
	return code;
}
