/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of collective operations, and the skew between ranks. All ranks leave an operation together, so it lasts
 * longest on the rank that arrives first and shortest on the one that arrives last. The shortest duration is the
 * transfer time; the rest of a longer one is wait time. Clocks are not compared. The nth operation of a kind is the
 * same operation on all ranks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/ranks/collectives.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/sum.h"
#include "derive/messages.h"

/* One operation, on all ranks that recorded it. */
struct operation {
	uint32_t kind;
	uint32_t ranks;
	size_t last_rank; /* index of the rank on which it was shortest */
	int64_t shortest_ns, longest_ns, sum_ns;
	int64_t elements; /* of the larger side */
};

struct operation_key {
	uint32_t kind, nth;
};

struct meeting {
	struct analysis_run *run;
	struct collectives collectives;
	struct ops_intern keys; /* struct operation_key, in the order of `operations` */
	OPS_ARRAY(struct operation) operations;
};

/* --- collection ------------------------------------------------------------------------------------------------------- */

struct by_time {
	const struct event_table *table;
	const struct collective *items;
};

static bool collective_bandwidth_starts_before(const void *context, uint32_t a, uint32_t b)
{
	const struct by_time *list = context;

	return list->table->rows[list->items[a].row].ts_ns < list->table->rows[list->items[b].row].ts_ns;
}

static bool add_operation(struct meeting *meeting, const struct collective *item, uint32_t nth, int64_t dur_ns, size_t rank)
{
	struct operation_key key = {item->kind, nth};
	size_t known = meeting->keys.count;
	uint32_t id = ops_intern_add(&meeting->keys, &key, sizeof(key));
	struct operation *operation;
	int64_t elements = item->elements_in > item->elements_out ? item->elements_in : item->elements_out;

	if (id == OPS_INTERN_NONE || !OPS_ARRAY_RESERVE(&meeting->operations, 1))
		return false;
	operation = &meeting->operations.items[id];
	if (id == known) {
		*operation = (struct operation){item->kind, 0, rank, INT64_MAX, 0, 0, elements};
		meeting->operations.count++;
	}
	operation->ranks++;
	operation->sum_ns = ops_sum(operation->sum_ns, dur_ns);
	operation->longest_ns = dur_ns > operation->longest_ns ? dur_ns : operation->longest_ns;
	if (dur_ns < operation->shortest_ns) {
		operation->shortest_ns = dur_ns;
		operation->last_rank = rank;
	}
	return true;
}

static bool collective_bandwidth_collect(struct collectives *collectives, const struct event_table *table)
{
	for (size_t i = 0; i < table->kept_count; i++)
		if (table->rows[table->kept[i]].on_device && !collectives_add(collectives, table, table->kept[i], true))
			return false;
	return true;
}

/* Numbers a rank's operations of each kind in order of time. */
static bool collective_bandwidth_number(struct meeting *meeting, const struct event_table *table, size_t from, size_t rank)
{
	const struct collective *items = meeting->collectives.items.items;
	size_t count = meeting->collectives.items.count;
	uint32_t *nth = ops_alloc_zeroed(meeting->collectives.kinds.count + 1, sizeof(*nth));
	uint32_t *order = ops_alloc_zeroed(count - from + 1, sizeof(*order));
	bool done = nth && order;

	for (size_t i = from; done && i < count; i++)
		order[i - from] = (uint32_t)i;
	done = done && ops_sort_rows(order, count - from, collective_bandwidth_starts_before, &(struct by_time){table, items});
	for (size_t i = 0; done && i < count - from; i++) {
		const struct collective *item = &items[order[i]];
		int64_t dur_ns = table->rows[item->row].dur_ns;

		done = add_operation(meeting, item, nth[item->kind]++, dur_ns > 0 ? dur_ns : 0, rank);
	}
	ops_free(nth);
	ops_free(order);
	return done;
}

/* --- figures ---------------------------------------------------------------------------------------------------------- */

static double element_bytes(struct ops_string dtype)
{
	int64_t bytes = ops_type_bytes(dtype);

	return bytes ? (double)bytes : (double)NAN;
}

/* Sums over all operations of a kind. */
struct sums {
	uint32_t kind;
	int64_t count, ranks, calls;
	int64_t sum_ns, transfer_ns, skew_ns, skew_max_ns;
	double elements;
	uint32_t *last; /* by rank: how often it arrived last */
};

static int collective_bandwidth_compare_sums(const void *a, const void *b, void *collectives)
{
	return collective_compare(collectives, ((const struct sums *)a)->kind, ((const struct sums *)b)->kind);
}

static void collective_bandwidth_add_sums(struct sums *sums, const struct operation *operation)
{
	int64_t skew_ns = operation->longest_ns - operation->shortest_ns;

	sums->count++;
	sums->calls += operation->ranks;
	sums->ranks = operation->ranks > sums->ranks ? operation->ranks : sums->ranks;
	sums->sum_ns = ops_sum(sums->sum_ns, operation->sum_ns);
	sums->transfer_ns = ops_sum(sums->transfer_ns, operation->shortest_ns);
	sums->skew_ns = ops_sum(sums->skew_ns, skew_ns);
	sums->skew_max_ns = skew_ns > sums->skew_max_ns ? skew_ns : sums->skew_max_ns;
	sums->elements += (double)operation->elements;
	if (operation->ranks > 1)
		sums->last[operation->last_rank]++;
}

/* Returns the rank that was last most often; RESULT_NULL: no rank was. */
static int64_t last_rank(const struct analysis_run *run, const struct sums *sums)
{
	size_t most = 0;

	for (size_t i = 1; i < run->count; i++)
		if (sums->last[i] > sums->last[most])
			most = i;
	return sums->last[most] ? run->ranks[most].rank : RESULT_NULL;
}

struct kind_row {
	struct ops_string name, dtype, group, members;
	int64_t group_size, ranks, count, dur_ns, transfer_ns, skew_ns, skew_max_ns, last_rank;
	double bytes, speed, bus_speed;
};

static const struct result_column kind_columns[] = {
	COLLECTIVE_COLUMNS(struct kind_row),
	COLLECTIVE_RANKS_COLUMN(struct kind_row),
	{.name = "ranks", .type = RESULT_COUNT, .title = "Ranks", .about = "Number of ranks whose traces contain it",
	 RESULT_FIELD(struct kind_row, ranks)},
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of operations", RESULT_FIELD(struct kind_row, count)},
	{.name = "bytes_mean", .type = RESULT_NUMBER, .title = "Mean size", .unit = "bytes",
	 .about = "Mean size of the larger side, input or output, of a rank", RESULT_FIELD(struct kind_row, bytes)},
	{.name = "dur_mean", .type = RESULT_TIME, .title = "Mean duration", .about = "Mean duration on a rank",
	 RESULT_FIELD(struct kind_row, dur_ns)},
	{.name = "transfer_mean", .type = RESULT_TIME, .title = "Mean transfer",
	 .about = "Mean of the shortest duration on any rank: the time without waiting", RESULT_FIELD(struct kind_row, transfer_ns)},
	{.name = "skew_mean", .type = RESULT_TIME, .title = "Mean skew", .about = "Mean wait time of the first rank for the last",
	 RESULT_FIELD(struct kind_row, skew_ns)},
	{.name = "skew_max", .type = RESULT_TIME, .title = "Max skew", .about = "Maximum of that wait time",
	 RESULT_FIELD(struct kind_row, skew_max_ns)},
	{.name = "algorithm_gb_per_s", .type = RESULT_NUMBER, .title = "Algorithm bandwidth", .unit = "GB/s",
	 .about = "Bytes by transfer time", RESULT_FIELD(struct kind_row, speed)},
	{.name = "bus_gb_per_s", .type = RESULT_NUMBER, .title = "Bus bandwidth", .unit = "GB/s",
	 .about = "What the link of each rank carries, as NCCL's tests define it", RESULT_FIELD(struct kind_row, bus_speed)},
	{.name = "last_rank", .type = RESULT_INTEGER, .title = "Last rank", .about = "Rank that is most often the last to arrive",
	 RESULT_FIELD(struct kind_row, last_rank)},
};
const struct result_declaration table_collective_bandwidth =
	RESULT_DECLARATION("collective_bandwidth", "The operations of a kind", kind_columns);

static void put_sums(struct meeting *meeting, const struct sums *sums)
{
	struct collective_kind kind = collective_kind(&meeting->collectives, sums->kind);
	struct ops_string name = collective_text(&meeting->collectives, &kind, COLLECTIVE_NAME);
	struct ops_string dtype = collective_text(&meeting->collectives, &kind, COLLECTIVE_DTYPE);
	double bytes = sums->elements * element_bytes(dtype);
	double speed = sums->transfer_ns > 0 && bytes > 0 ? bytes / (double)sums->transfer_ns : (double)NAN;

	result_add(&meeting->run->result.table, &(struct kind_row){
		.name = name,
		.dtype = dtype,
		.group = collective_text(&meeting->collectives, &kind, COLLECTIVE_GROUP),
		.members = collective_text(&meeting->collectives, &kind, COLLECTIVE_RANKS),
		.group_size = kind.group_size,
		.ranks = sums->ranks,
		.count = sums->count,
		.dur_ns = sums->sum_ns / sums->calls,
		.transfer_ns = sums->transfer_ns / sums->count,
		.skew_ns = sums->skew_ns / sums->count,
		.skew_max_ns = sums->skew_max_ns,
		.last_rank = last_rank(meeting->run, sums),
		.bytes = bytes > 0 ? result_round(bytes / (double)sums->count, 1) : (double)NAN,
		.speed = result_round(speed, 3),
		.bus_speed = result_round(speed * collective_bus_factor(name, kind.group_size), 3),
	});
}

static bool collective_bandwidth_sum_up(struct meeting *meeting)
{
	size_t kinds = meeting->collectives.kinds.count, ranks = meeting->run->count;
	struct sums *sums = ops_alloc_zeroed(kinds + 1, sizeof(*sums));
	uint32_t *last = ops_alloc_zeroed(kinds * ranks + 1, sizeof(*last));

	for (size_t i = 0; sums && last && i < kinds; i++)
		sums[i] = (struct sums){.kind = (uint32_t)i, .last = last + i * ranks};
	for (size_t i = 0; sums && last && i < meeting->operations.count; i++)
		collective_bandwidth_add_sums(&sums[meeting->operations.items[i].kind], &meeting->operations.items[i]);
	if (sums && last && kinds)
		qsort_r(sums, kinds, sizeof(*sums), collective_bandwidth_compare_sums, &meeting->collectives);
	for (size_t i = 0; sums && last && i < kinds; i++)
		if (sums[i].count)
			put_sums(meeting, &sums[i]);
	ops_free(last);
	ops_free(sums);
	return sums && last;
}

enum ops_code analysis_collective_bandwidth(struct analysis_run *run)
{
	struct meeting meeting = {.run = run};
	bool done = true;

	run->result.table.copies = true;
	result_declare(&run->result.table, &table_collective_bandwidth, 0);
	run->events.all_steps = true;
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);
		size_t from = meeting.collectives.items.count;

		done = table && collective_bandwidth_collect(&meeting.collectives, table) &&
		       collective_bandwidth_number(&meeting, table, from, i);
	}
	done = done && collective_bandwidth_sum_up(&meeting);
	collectives_release(&meeting.collectives);
	ops_intern_release(&meeting.keys);
	OPS_ARRAY_RELEASE(&meeting.operations);
	return done ? OPS_OK : analysis_failed(run);
}
