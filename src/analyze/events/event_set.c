/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a run's ranks. The tables of loaded traces are built once. A trace from a source is loaded on request
 * and released when the next one is loaded, so at most one of these is in memory. Facts of all ranks (steps, device,
 * first start) are collected first.
 */
#include "analyze/events/event_filter.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/run_trace.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/calls.h"

/* --- facts -------------------------------------------------------------------------------------------------------- */

static bool is_mtia(const struct ops_trace *trace)
{
	struct ops_string json;

	return ops_trace_find_metadata(trace, "distributedInfo", &json) && ops_string_contains(json, "mtia:hccl");
}

/* The interface of the launch calls identifies the vendor of the device. */
static void event_set_find_launches(const struct ops_trace *trace, struct ops_rank_facts *facts)
{
	size_t count = ops_trace_string_count(trace);

	for (uint32_t i = 0; i < count; i++) {
		struct ops_string name = ops_trace_string(trace, i);

		if (!(ops_call_of(name) & OPS_CALL_LAUNCH))
			continue;
		facts->launches[0] |= ops_string_starts(name, "cu");
		facts->launches[1] |= ops_string_starts(name, "hip");
		facts->launches[2] |= ops_string_starts(name, "runFunction");
	}
}

static bool find_facts(const struct event_table *table, struct ops_rank_facts *facts)
{
	*facts = (struct ops_rank_facts){.first_ns = INT64_MAX, .mtia = is_mtia(table->trace)};
	event_set_find_launches(table->trace, facts);
	for (size_t row = 0; row < table->count; row++)
		if (table->rows[row].ts_ns < facts->first_ns)
			facts->first_ns = table->rows[row].ts_ns;
	if (!OPS_ARRAY_RESERVE(&facts->steps, table->steps.count + 1))
		return false;
	for (size_t i = 0; i < table->steps.count; i++)
		ops_step_number(event_name(table, &table->rows[table->steps.items[i]]),
		                  &facts->steps.items[facts->steps.count++]);
	facts->steps.count = ops_sort_unique_int64(facts->steps.items, facts->steps.count);
	return true;
}

static void release_facts(struct ops_rank_facts *facts)
{
	OPS_ARRAY_RELEASE(&facts->steps);
}

enum ops_code ops_rank_facts_new(const struct ops_trace *trace, bool round_to_us, struct ops_rank_facts **ret_facts,
                                 struct ops_error *error)
{
	struct ops_rank_facts *facts = ops_alloc_zeroed(1, sizeof(*facts));
	struct event_table table = {0};
	bool done = facts && event_table_build(&table, trace, round_to_us, OPS_RULES_OPSTROBE) && find_facts(&table, facts);

	event_table_release(&table);
	if (!done) {
		ops_rank_facts_free(facts);
		return ops_fault_memory(error);
	}
	*ret_facts = facts;
	return OPS_OK;
}

void ops_rank_facts_free(struct ops_rank_facts *facts)
{
	if (facts)
		release_facts(facts);
	ops_free(facts);
}

/* Merges the facts of one rank into those of all ranks. */
static bool event_set_add_facts(struct event_set *set, const struct ops_rank_facts *facts, struct ops_rank_facts *all)
{
	if (facts->first_ns < all->first_ns)
		all->first_ns = facts->first_ns;
	all->mtia |= facts->mtia;
	for (size_t i = 0; i < 3; i++)
		all->launches[i] |= facts->launches[i];
	if (!OPS_ARRAY_RESERVE(&set->steps, facts->steps.count + 1))
		return false;
	if (facts->steps.count)
		memcpy(set->steps.items + set->steps.count, facts->steps.items,
		       facts->steps.count * sizeof(*facts->steps.items));
	set->steps.count = ops_sort_unique_int64(set->steps.items, set->steps.count + facts->steps.count);
	return true;
}

static enum event_device_type event_set_device_of(const struct ops_rank_facts *all)
{
	if (all->mtia)
		return EVENT_MTIA;
	if (all->launches[0])
		return EVENT_NVIDIA;
	if (all->launches[1])
		return EVENT_AMD;
	return all->launches[2] ? EVENT_MTIA : EVENT_UNKNOWN_DEVICE;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void release_table(struct event_set *set, size_t i)
{
	const struct ops_trace *trace = set->tables[i].trace;

	event_table_release(&set->tables[i]);
	ops_trace_unref((struct ops_trace *)trace);
}

/* Builds the table, without applying its filter. */
static enum ops_code make_table(struct event_set *set, size_t i)
{
	bool is_guest = !set->ranks[i].trace;
	struct ops_trace *trace = NULL;
	enum ops_code code;

	if (is_guest && set->guest < set->count)
		release_table(set, set->guest);
	set->guest = is_guest ? set->count : set->guest;
	code = ops_run_trace(set->ranks, set->source, i, &trace, set->error);
	if (code)
		return code;
	set->guest = is_guest ? i : set->guest;
	if (!event_table_build(&set->tables[i], trace, set->round_to_us, set->rules)) {
		release_table(set, i);
		set->guest = set->guest == i ? set->count : set->guest;
		return ops_fault_memory(set->error);
	}
	set->tables[i].rank = set->ranks[i].rank;
	return OPS_OK;
}

/* Traces that are not ranks of one run share neither time nor steps: a filter applies to each separately. */
static enum ops_code choose_apart(const struct event_set *set, struct event_table *table)
{
	struct event_set own = *set;
	struct ops_rank_facts facts;
	enum ops_code code = find_facts(table, &facts) ? OPS_OK : ops_fault_memory(set->error);

	own.first_ns = facts.first_ns;
	own.steps.items = facts.steps.items;
	own.steps.count = facts.steps.count;
	if (!code)
		code = event_filter_apply(set->where, &own, table);
	release_facts(&facts);
	return code;
}

static enum ops_code event_set_choose(const struct event_set *set, struct event_table *table)
{
	if (!set->where.bytes)
		return OPS_OK;
	return set->apart ? choose_apart(set, table) : event_filter_apply(set->where, set, table);
}

static enum ops_code event_set_filter(struct event_set *set, struct event_table *table)
{
	bool filtered = !set->all_steps && set->steps.count >= 2;
	enum ops_code code;

	set->leaves_out |= filtered && !set->include_last && set->device != EVENT_MTIA;
	if (!event_steps_filter(table, filtered, set->device == EVENT_MTIA, set->include_last))
		return ops_fault_memory(set->error);
	code = event_set_choose(set, table);
	for (size_t i = 0; !code && i < table->kept_count; i++)
		table->rows[table->kept[i]].is_kept = true;
	return code;
}

const struct event_table *event_set_table(struct event_set *set, size_t i)
{
	struct event_table *table = &set->tables[i];

	if (!set->code && !table->trace)
		set->code = make_table(set, i);
	if (!set->code && !table->kept)
		set->code = event_set_filter(set, table);
	return set->code ? NULL : table;
}

static enum ops_code event_set_collect_facts(struct event_set *set, size_t i, struct ops_rank_facts *all)
{
	struct ops_rank_facts facts = {0};
	bool done;

	if (set->ranks[i].facts)
		return event_set_add_facts(set, set->ranks[i].facts, all) ? OPS_OK : ops_fault_memory(set->error);
	set->code = make_table(set, i);
	if (set->code)
		return set->code;
	done = find_facts(&set->tables[i], &facts) && event_set_add_facts(set, &facts, all);
	release_facts(&facts);
	return done ? OPS_OK : ops_fault_memory(set->error);
}

enum ops_code event_set_init(struct event_set *set, const struct ops_rank *ranks, size_t count,
                             const struct ops_analyze_options *options, bool include_last, enum ops_rules rules,
                             struct ops_error *error)
{
	struct ops_rank_facts all = {.first_ns = INT64_MAX};
	enum ops_code code = OPS_OK;

	*set = (struct event_set){.ranks = ranks, .source = options->source, .guest = count, .error = error,
	                          .round_to_us = options->round_to_us, .include_last = include_last, .rules = rules,
	                          .tables = ops_alloc_zeroed(count + 1, sizeof(*set->tables))};
	if (!set->tables)
		return ops_fault_memory(error);
	set->count = count;
	for (size_t i = 0; !code && i < count; i++)
		code = event_set_collect_facts(set, i, &all);
	set->first_ns = all.first_ns == INT64_MAX ? 0 : all.first_ns;
	set->device = event_set_device_of(&all);
	return code;
}

void event_set_release(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->tables[i].trace)
			release_table(set, i);
	ops_free(set->tables);
	OPS_ARRAY_RELEASE(&set->steps);
	*set = (struct event_set){0};
}
