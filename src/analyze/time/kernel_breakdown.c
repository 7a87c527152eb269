/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernels, and which annotated ranges, take the time of devices.
 */
#include "analyze/time/device_time.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/compare/short_name.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

static const enum event_class classes[] = {EVENT_COMPUTATION, EVENT_COMMUNICATION, EVENT_MEMORY};
#define CLASS_COUNT 3
#define MIX_COUNT (1 << CLASS_COUNT)

/* --- by type ------------------------------------------------------------------------------------------------------ */

/* The time at which work of a class begins or ends. */
struct boundary {
	int64_t time_ns;
	int class_;
	int change;
};

OPS_ORDER(compare_boundaries, struct boundary, OPS_UP(time_ns))

/* Adds to `sums_ns[mix]` how long exactly the classes of that mix (a bit each) ran. */
static bool sum_mixes(const struct ops_intervals *spans, int64_t sums_ns[MIX_COUNT])
{
	size_t count = spans[0].count + spans[1].count + spans[2].count, filled = 0;
	struct boundary *boundaries = ops_alloc_zeroed(2 * count + 1, sizeof(*boundaries));
	int running[CLASS_COUNT] = {0};

	if (!boundaries)
		return false;
	for (int class_ = 0; class_ < CLASS_COUNT; class_++) {
		for (size_t i = 0; i < spans[class_].count; i++) {
			boundaries[filled++] = (struct boundary){spans[class_].items[i].start_ns, class_, 1};
			boundaries[filled++] = (struct boundary){spans[class_].items[i].end_ns, class_, -1};
		}
	}
	qsort(boundaries, filled, sizeof(*boundaries), compare_boundaries);
	for (size_t i = 0; i + 1 < filled; i++) {
		running[boundaries[i].class_] += boundaries[i].change;
		sums_ns[(running[0] > 0) | (running[1] > 0) << 1 | (running[2] > 0) << 2] +=
			boundaries[i + 1].time_ns - boundaries[i].time_ns;
	}
	ops_free(boundaries);
	return true;
}

static bool sum_rank(const struct event_table *table, bool memory, int64_t sums_ns[MIX_COUNT])
{
	struct ops_intervals spans[CLASS_COUNT] = {{0}};
	bool done = true;

	for (int i = 0; done && i < CLASS_COUNT; i++)
		if (memory || classes[i] != EVENT_MEMORY)
			done = device_spans(table, 1u << classes[i], &spans[i]);
	done = done && sum_mixes(spans, sums_ns);
	for (int i = 0; i < CLASS_COUNT; i++)
		ops_intervals_release(&spans[i]);
	return done;
}

/* How long a set of classes of work ran together, without other classes. */
struct mix {
	struct ops_string name;
	int64_t sum_ns;
	double percent;
};

static const struct result_column mix_columns[] = {
	{.name = "kernel_type", .type = RESULT_TEXT, .title = "Type",
	 .about = "Class of the work; of several that overlap, all of them", RESULT_FIELD(struct mix, name)},
	{.name = "sum", .type = RESULT_TIME, .title = "Total", .about = "Time with this work alone, over all ranks",
	 RESULT_FIELD(struct mix, sum_ns)},
	{.name = "percentage", .type = RESULT_PERCENT, .title = "Of all rows", .about = "The time, of that of all rows",
	 RESULT_FIELD(struct mix, percent)},
};
const struct result_declaration table_kernels_by_type =
	RESULT_DECLARATION("gpu_kernel_breakdown.by_type", "A class of device work, or classes that overlap", mix_columns);

#define MIX_NAME_SIZE 96
static struct ops_string mix_name(int mix, char name[MIX_NAME_SIZE])
{
	*name = 0;
	for (int i = 0; i < CLASS_COUNT; i++) {
		if (!(mix >> i & 1))
			continue;
		if (*name)
			strcat(name, " overlapping ");
		strcat(name, event_class_name(classes[i]));
	}
	return (struct ops_string){name, strlen(name)};
}

static void write_mixes(struct result_table *table, const int64_t sums_ns[MIX_COUNT])
{
	int64_t total_ns = 0;
	int order[MIX_COUNT], count = 0;

	for (int mix = 1; mix < MIX_COUNT; mix++) {
		int at = count;

		if (!sums_ns[mix])
			continue;
		total_ns = ops_sum(total_ns, sums_ns[mix]);
		for (count++; at && sums_ns[order[at - 1]] < sums_ns[mix]; at--)
			order[at] = order[at - 1];
		order[at] = mix;
	}
	table->copies = true;
	for (int i = 0; i < count; i++) {
		char name[MIX_NAME_SIZE];
		int64_t sum_ns = sums_ns[order[i]];

		result_add(table, &(struct mix){mix_name(order[i], name), sum_ns,
		                                result_round(100.0 * (double)sum_ns / (double)total_ns, 1)});
	}
}

enum ops_code analysis_kernels_by_type(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	int64_t sums_ns[MIX_COUNT] = {0};
	bool memory = analysis_bool(run, "include_memory_kernels");
	enum ops_code code = run->code;

	result_declare(table, &table_kernels_by_type, 0);
	for (size_t i = 0; !code && i < run->count; i++) {
		const struct event_table *events = analysis_table(run, i);

		if (!events || !sum_rank(events, memory, sums_ns))
			code = analysis_failed(run);
	}
	if (!code)
		write_mixes(table, sums_ns);
	return code;
}

/* --- by name ------------------------------------------------------------------------------------------------------ */

OPS_ORDER(by_type_name_rank, struct name_sum, OPS_BY_WORD(type) OPS_BY_TEXT(name) OPS_UP(rank))

OPS_ORDER(by_rank_type_sum, struct name_sum, OPS_UP(rank) OPS_BY_WORD(type) OPS_DOWN(sum_ns) OPS_BY_TEXT(name))

OPS_ORDER(by_rank_name, struct name_sum, OPS_UP(rank) OPS_BY_TEXT(name))

RESULT_GETTER(get_deviation, struct name_sum, number, row->deviation_ns / 1000)
RESULT_GETTER(get_mean, struct name_sum, number, (double)row->sum_ns / (double)row->count / 1000)

#define SUM_COLUMNS(of)                                                                                                 \
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the " of "; \"others\" sums the rest",      \
	 RESULT_FIELD(struct name_sum, name)},                                                                           \
	{.name = "sum (us)", .type = RESULT_TIME, .title = "Total", .about = "Sum of the durations",                       \
	 RESULT_FIELD(struct name_sum, sum_ns)},                                                                         \
	{.name = "max (us)", .type = RESULT_TIME, .title = "Longest", .about = "Longest duration",                             \
	 RESULT_FIELD(struct name_sum, max_ns)},                                                                         \
	{.name = "min (us)", .type = RESULT_TIME, .priority = RESULT_MINOR, .title = "Shortest", .about = "Shortest duration", \
	 RESULT_FIELD(struct name_sum, min_ns)},                                                                         \
	{.name = "stddev", .type = RESULT_NUMBER, .priority = RESULT_MINOR, .title = "Std", .unit = "us",               \
	 .about = "Standard deviation of the durations, of a sample", .get = get_deviation},                             \
	{.name = "mean (us)", .type = RESULT_NUMBER, .title = "Mean", .unit = "us", .about = "Mean duration", .get = get_mean}

static const struct result_column kernel_columns[] = {
	SUM_COLUMNS("kernel"),
	{.name = "kernel_type", .type = RESULT_TEXT, .title = "Type", .about = "Class of the work",
	 RESULT_FIELD(struct name_sum, type)},
	RANK_COLUMN(struct name_sum),
};
const struct result_declaration table_kernels_by_name =
	RESULT_DECLARATION("gpu_kernel_breakdown.by_kernel", "The kernels of a name on a rank", kernel_columns);

static const struct result_column annotation_columns[] = {SUM_COLUMNS("annotation"), RANK_COLUMN(struct name_sum)};
const struct result_declaration table_user_annotations =
	RESULT_DECLARATION("user_annotation_breakdown", "The annotations of a name on a rank", annotation_columns);

static void kernel_breakdown_write_sums(struct result_table *table, const struct result_declaration *declaration,
                                        const struct name_sums *sums)
{
	table->copies = true;
	result_declare(table, declaration, 0);
	for (size_t i = 0; i < sums->items.count; i++)
		result_add(table, &sums->items.items[i]);
}

typedef bool wanted_row(const struct event_table *table, const struct event_row *row, int which);

static bool is_of_class(const struct event_table *table, const struct event_row *row, int which)
{
	(void)table;
	return row->on_device && row->class_ == which;
}

static bool is_of_kind(const struct event_table *table, const struct event_row *row, int which)
{
	(void)table;
	return row->kind == which;
}

static bool kernel_breakdown_add_rows(struct name_sums *sums, const struct event_table *table, wanted_row *wanted, int which,
                                      const char *type, const struct name_limits *limits)
{
	uint32_t *rows = ops_alloc_zeroed(table->kept_count + 1, sizeof(*rows));
	size_t count = 0;
	bool done;

	for (size_t i = 0; rows && i < table->kept_count; i++)
		if (wanted(table, &table->rows[table->kept[i]], which))
			rows[count++] = table->kept[i];
	done = rows && name_sums_add(sums, table, rows, count, type, limits);
	ops_free(rows);
	return done;
}

static enum ops_code parse_limits(struct analysis_run *run, struct name_limits *limits)
{
	limits->names = analysis_count(run, "num_kernels");
	limits->ratio = analysis_number(run, "duration_ratio");
	limits->allowed = analysis_texts(run, "allowlist_patterns", &limits->allowed_count);
	return run->code;
}

enum ops_code analysis_kernels_by_name(struct analysis_run *run)
{
	struct name_sums sums = {0};
	struct name_limits limits;
	bool memory = analysis_bool(run, "include_memory_kernels"), done = true;
	struct ops_string order = analysis_arg(run, "order");
	bool by_rank = ops_string_is(order, "\"rank,kernel_type,sum desc,name\"");
	enum ops_code code = parse_limits(run, &limits);

	if (!code && !by_rank && !ops_string_is(order, "\"kernel_type,name,rank\""))
		code = ops_fault(run->error, OPS_INVALID, "option 'order' must be 'kernel_type,name,rank' or "
		                                          "'rank,kernel_type,sum desc,name'");
	for (size_t i = 0; !code && done && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);

		done = table != NULL;
		for (int at = 0; done && at < CLASS_COUNT; at++)
			if (memory || classes[at] != EVENT_MEMORY)
				done = kernel_breakdown_add_rows(&sums, table, is_of_class, (int)classes[at],
				                                 event_class_name(classes[at]), &limits);
	}
	if (!done)
		code = analysis_failed(run);
	if (!code && sums.items.count)
		qsort(sums.items.items, sums.items.count, sizeof(*sums.items.items),
		      by_rank ? by_rank_type_sum : by_type_name_rank);
	if (!code && !by_rank)
		run->result.table.matters = "sum (us)";
	if (!code)
		kernel_breakdown_write_sums(&run->result.table, &table_kernels_by_name, &sums);
	if (!code && run->format == OPS_FORMAT_TEXT && run->columns && !readable_name_column(&run->result.table))
		code = ops_fault_memory(run->error);
	name_sums_release(&sums);
	return code;
}

/* Writes no table if there are no annotations. */
enum ops_code analysis_user_annotations(struct analysis_run *run)
{
	struct name_sums sums = {0};
	struct name_limits limits;
	bool on_gpu = analysis_bool(run, "use_gpu_annotation"), done = true;
	enum ops_code code = parse_limits(run, &limits);

	for (size_t i = 0; !code && done && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);

		done = table && kernel_breakdown_add_rows(&sums, table, is_of_kind,
		                                          on_gpu ? OPS_EVENT_GPU_USER_ANNOTATION : OPS_EVENT_USER_ANNOTATION,
		                                          "", &limits);
	}
	if (!done)
		code = analysis_failed(run);
	if (!code && sums.items.count) {
		qsort(sums.items.items, sums.items.count, sizeof(*sums.items.items), by_rank_name);
		kernel_breakdown_write_sums(&run->result.table, &table_user_annotations, &sums);
		run->result.table.matters = "sum (us)";
	}
	name_sums_release(&sums);
	return code;
}
