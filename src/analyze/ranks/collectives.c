/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding collective operations, and the sums of identical ones.
 */
#include "analyze/ranks/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/events/event_query.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/arguments.h"

/* --- search ----------------------------------------------------------------------------------------------------------- */

/* Returns the id of an argument's text, or of "" if there is none; OPS_INTERN_NONE if out of memory. */
static uint32_t collectives_text(struct collectives *collectives, const struct event_table *table, uint32_t source,
                                 const char *key)
{
	struct ops_buffer *scratch = &collectives->scratch;
	struct ops_string value = {"", 0};

	scratch->size = 0;
	ops_event_arg(table->trace, source, key, &value);
	if (!ops_json_decode_value(scratch, value))
		ops_buffer_append(scratch, value.bytes, value.size);
	if (scratch->failed)
		return OPS_INTERN_NONE;
	return ops_intern_add(&collectives->texts, ops_buffer_text(scratch), scratch->size);
}

bool collectives_add(struct collectives *collectives, const struct event_table *table, uint32_t row, bool unnamed)
{
	static const char *const keys[COLLECTIVE_TEXT_COUNT] = {"Collective name", "dtype", "Process Group Name",
	                                                        "Process Group Description", "Process Group Ranks"};
	uint32_t source = table->rows[row].source;
	struct collective_kind kind = {.group_size = ops_argument_integer(table->trace, source, "Group size", 0)};
	struct collective *collective;
	struct ops_string name;
	uint32_t id;

	for (size_t i = 0; i < COLLECTIVE_TEXT_COUNT; i++) {
		kind.texts[i] = collectives_text(collectives, table, source, keys[i]);
		if (kind.texts[i] == OPS_INTERN_NONE)
			return false;
	}
	if (!collective_text(collectives, &kind, COLLECTIVE_NAME).size) {
		if (!unnamed || table->rows[row].class_ != EVENT_COMMUNICATION)
			return true;
		name = event_name(table, &table->rows[row]);
		kind.texts[COLLECTIVE_NAME] = ops_intern_add(&collectives->texts, name.bytes, name.size);
		if (kind.texts[COLLECTIVE_NAME] == OPS_INTERN_NONE)
			return false;
	}
	id = ops_intern_add(&collectives->kinds, &kind, sizeof(kind));
	collective = id == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&collectives->items);
	if (collective)
		*collective = (struct collective){.kind = id,
		                                  .row = row,
		                                  .elements_in = ops_argument_integer(table->trace, source, "In msg nelems", 0),
		                                  .elements_out = ops_argument_integer(table->trace, source, "Out msg nelems", 0)};
	return collective != NULL;
}

void collectives_release(struct collectives *collectives)
{
	ops_intern_release(&collectives->texts);
	ops_intern_release(&collectives->kinds);
	OPS_ARRAY_RELEASE(&collectives->items);
	ops_buffer_release(&collectives->scratch);
}

/* --- properties ------------------------------------------------------------------------------------------------------- */

struct collective_kind collective_kind(const struct collectives *collectives, uint32_t kind)
{
	struct collective_kind copy;

	memcpy(&copy, collectives->kinds.entries[kind].bytes, sizeof(copy));
	return copy;
}

struct ops_string collective_text(const struct collectives *collectives, const struct collective_kind *kind,
                                  enum collective_text which)
{
	return ops_intern_text(&collectives->texts, kind->texts[which]);
}

int collective_compare(const struct collectives *collectives, uint32_t left, uint32_t right)
{
	struct collective_kind a = collective_kind(collectives, left), b = collective_kind(collectives, right);

	for (int i = 0; i < COLLECTIVE_TEXT_COUNT; i++) {
		int order = ops_string_compare(collective_text(collectives, &a, (enum collective_text)i),
		                               collective_text(collectives, &b, (enum collective_text)i));

		if (order)
			return order;
		if (i == COLLECTIVE_DTYPE && a.group_size != b.group_size)
			return a.group_size < b.group_size ? -1 : 1;
	}
	return 0;
}

/* --- sums ------------------------------------------------------------------------------------------------------------- */

struct sums {
	uint32_t kind;
	int64_t count;
	int64_t dur_ns;
	int64_t elements_in;
	int64_t elements_out;
};

static int collectives_compare_sums(const void *a, const void *b, void *collectives)
{
	return collective_compare(collectives, ((const struct sums *)a)->kind, ((const struct sums *)b)->kind);
}

struct sums_row {
	struct ops_string name, dtype, group, description, members;
	int64_t group_size, count, dur_ns, elements_in, elements_out;
};

static const struct result_column sums_columns[] = {
	COLLECTIVE_COLUMNS(struct sums_row),
	{.name = "process_group_desc", .type = RESULT_TEXT, .title = "Group description", .about = "Description of the process group",
	 RESULT_FIELD(struct sums_row, description)},
	COLLECTIVE_RANKS_COLUMN(struct sums_row),
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of operations", RESULT_FIELD(struct sums_row, count)},
	{.name = "dur", .type = RESULT_TIME, .title = "Total", .about = "Sum of the durations", RESULT_FIELD(struct sums_row, dur_ns)},
	{.name = "in_msg_nelems", .type = RESULT_COUNT, .title = "Elements in", .about = "Elements of the inputs, in all operations",
	 RESULT_FIELD(struct sums_row, elements_in)},
	{.name = "out_msg_nelems", .type = RESULT_COUNT, .title = "Elements out", .about = "Elements of the outputs, in all operations",
	 RESULT_FIELD(struct sums_row, elements_out)},
};
const struct result_declaration table_nccl_collectives =
	RESULT_DECLARATION("nccl_collectives", "The operations of a kind on a rank", sums_columns);

static void collectives_write_sums(struct result_table *out, const struct collectives *collectives, const struct sums *sums,
                                   size_t count)
{
	result_declare(out, &table_nccl_collectives, 0);
	for (size_t i = 0; i < count; i++) {
		struct collective_kind kind = collective_kind(collectives, sums[i].kind);

		result_add(out, &(struct sums_row){
			collective_text(collectives, &kind, COLLECTIVE_NAME), collective_text(collectives, &kind, COLLECTIVE_DTYPE),
			collective_text(collectives, &kind, COLLECTIVE_GROUP), collective_text(collectives, &kind, COLLECTIVE_GROUP_DESC),
			collective_text(collectives, &kind, COLLECTIVE_RANKS), kind.group_size, sums[i].count, sums[i].dur_ns,
			sums[i].elements_in, sums[i].elements_out});
	}
}

static bool collectives_find(struct collectives *collectives, const struct event_set *set, const struct event_table *table,
                             struct event_query *filter)
{
	for (size_t i = 0; i < table->kept_count; i++)
		if (event_query_holds(filter, set, table, &table->rows[table->kept[i]]) &&
		    !collectives_add(collectives, table, table->kept[i], false))
			return false;
	return !event_query_failed(filter);
}

/* Adds the rows of a rank's table. Returns false if out of memory. */
static bool collectives_sum_up(struct collectives *collectives, const struct event_table *table, struct result *result)
{
	struct result_table out = {.copies = true, .rounded = result->table.rounded};
	struct sums *sums = ops_alloc_zeroed(collectives->kinds.count + 1, sizeof(*sums));

	if (!sums)
		return false;
	for (size_t i = 0; i < collectives->items.count; i++) {
		const struct collective *collective = &collectives->items.items[i];
		struct sums *sum = &sums[collective->kind];

		sum->count++;
		sum->dur_ns = ops_sum(sum->dur_ns, table->rows[collective->row].dur_ns);
		sum->elements_in = ops_sum(sum->elements_in, collective->elements_in);
		sum->elements_out = ops_sum(sum->elements_out, collective->elements_out);
	}
	for (size_t i = 0; i < collectives->kinds.count; i++)
		sums[i].kind = (uint32_t)i;
	qsort_r(sums, collectives->kinds.count, sizeof(*sums), collectives_compare_sums, collectives);
	collectives_write_sums(&out, collectives, sums, collectives->kinds.count);
	result_put_table(result, &out);
	ops_free(sums);
	return true;
}

static enum ops_code collectives_write_rank(struct analysis_run *run, size_t rank, struct ops_string filter_text)
{
	const struct event_table *table = analysis_table(run, rank);
	struct collectives collectives = {0};
	struct event_query filter = {0};
	uint64_t steps_left = EVENT_QUERY_STEPS_MAX;
	enum ops_code code = table ? event_query_parse(&filter, filter_text, run->error) : analysis_failed(run);

	filter.steps_left = &steps_left;
	analysis_rank_key(&run->result.json, run->ranks[rank].rank);
	if (!code && !(collectives_find(&collectives, &run->events, table, &filter) &&
	               collectives_sum_up(&collectives, table, &run->result)))
		code = analysis_failed(run);
	if (!code)
		code = event_query_check_steps(steps_left, run->error);
	collectives_release(&collectives);
	event_query_release(&filter);
	return code;
}

enum ops_code analysis_nccl_collectives(struct analysis_run *run)
{
	struct ops_string filter = analysis_text(run, "filter");
	enum ops_code code = run->code;

	run->events.all_steps = true;
	ops_json_open(&run->result.json, '{');
	for (size_t i = 0; !code && i < run->count; i++)
		code = collectives_write_rank(run, i, filter);
	ops_json_close(&run->result.json, '}');
	return code;
}

double collective_bus_factor(struct ops_string name, int64_t ranks)
{
	static const char *const parts[] = {"allgather", "all_gather", "reduce_scatter", "alltoall", "all_to_all", NULL};
	double others = ranks > 1 ? (double)(ranks - 1) / (double)ranks : 1;

	if (ops_string_contains(name, "allreduce") || ops_string_contains(name, "all_reduce"))
		return 2 * others;
	for (size_t i = 0; parts[i]; i++)
		if (ops_string_contains(name, parts[i]))
			return others;
	return 1;
}
