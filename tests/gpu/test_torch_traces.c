/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays traces that torch wrote on GPUs: their rows are converted to CUPTI's records (replay/trace_records.h), and the
 * collector's result must equal torch's: every row of device work and host calls, their arguments, the operator of each, and
 * every analysis of them. Prints for each trace how many agree. The traces are not part of the repository: they are in a folder
 * next to it, or in OPSTROBE_TRACES; without them nothing is tested.
 *
 *     test_torch_traces FOLDER
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/merge.h>
#include <opstrobe/read.h>

#include "base/json_walk.h"
#include "replay/replaying.h"
#include "replay/trace_records.h"

#define SKIPPED 77 /* to Meson */

static const char *folder;

struct file {
	const char *name;
	const char *except; /* analyses that it is not asked, with spaces around each */
};

/* "stream" is an argument of an operator there, which counts as one of a device and is not replayed. */
#define ARGUMENT_OF_AN_OPERATOR                                                                                         \
	" temporal_breakdown gpu_kernel_breakdown.by_type gpu_kernel_breakdown.by_kernel call_graph critical_path "

struct pair {
	struct ops_trace *torch;
	struct ops_trace *replayed;
	bool has_ns; /* torch's times are finer than microseconds */
};

struct tally {
	size_t agreed;
	size_t of;
};

/* --- rows in an order that both traces have --------------------------------------------------------------------------- */

static const struct ops_trace *sorting;

static struct ops_string name_of(const struct ops_trace *trace, uint32_t row)
{
	return ops_trace_string(trace, ops_trace_events(trace)->name[row]);
}

static int64_t correlation_of(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *e = ops_trace_events(trace);

	return e->correlation && e->correlation[row] > 0 ? e->correlation[row] : 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct ops_events *e = ops_trace_events(sorting);
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (e->kind[x] != e->kind[y])
		return e->kind[x] < e->kind[y] ? -1 : 1;
	if (e->start_ns[x] != e->start_ns[y])
		return e->start_ns[x] < e->start_ns[y] ? -1 : 1;
	if (correlation_of(sorting, x) != correlation_of(sorting, y))
		return correlation_of(sorting, x) < correlation_of(sorting, y) ? -1 : 1;
	return strcmp(name_of(sorting, x).bytes, name_of(sorting, y).bytes);
}

static bool is_of_a_device(uint8_t kind)
{
	return kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET ||
	       kind == OPS_EVENT_SYNC || kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER || kind == OPS_EVENT_OVERHEAD;
}

static uint32_t *rows_of(const struct ops_trace *trace, size_t *ret_count)
{
	const struct ops_events *e = ops_trace_events(trace);
	uint32_t *rows = malloc((e->count + 1) * sizeof(*rows));

	*ret_count = 0;
	for (uint32_t row = 0; row < e->count; row++)
		if (is_of_a_device(e->kind[row]))
			rows[(*ret_count)++] = row;
	sorting = trace;
	qsort(rows, *ret_count, sizeof(*rows), compare_rows);
	return rows;
}

/* --- what rows say ---------------------------------------------------------------------------------------------------- */

static void count(struct tally *tally, bool agrees, const struct pair *pair, uint32_t row, const char *what)
{
	tally->of++;
	tally->agreed += agrees;
	if (!agrees && tally->of - tally->agreed <= 5)
		printf("  %s of row %u, '%.60s'\n", what, row, name_of(pair->torch, row).bytes);
}

static bool is_call(const struct ops_trace *trace, uint32_t row)
{
	return ops_trace_events(trace)->kind[row] == OPS_EVENT_RUNTIME || ops_trace_events(trace)->kind[row] == OPS_EVENT_DRIVER;
}

/* Kineto writes no occupancy where a block has more shared memory than 48 KiB. Rates of copies are of nanoseconds, which old
 * files do not have. Calls of ROCm have more arguments than those of CUDA. */
static bool is_compared(const struct ops_trace *torch, uint32_t row, const char *key, bool has_ns)
{
	struct ops_string shared;
	int64_t bytes;

	if (is_call(torch, row))
		return strcmp(key, "cbid") == 0;
	if (strcmp(key, "memory bandwidth (GB/s)") == 0)
		return has_ns;
	return strcmp(key, "est. achieved occupancy %") != 0 || !ops_event_arg(torch, row, "shared memory", &shared) ||
	       !ops_json_parse_integer(shared, &bytes) || bytes <= 48 << 10;
}

/* Percents are whole: 12.5 is 12 or 13. */
static double tolerance_of(const char *key, double value)
{
	return strcmp(key, "est. achieved occupancy %") == 0 ? 1 : 1e-3 * (value > 1 ? value : 1);
}

static bool same_value(const char *key, struct ops_string a, struct ops_string b)
{
	double x, y;
	size_t i = 0, j = 0;

	if (ops_json_parse_number(a, &x) &&
	    ops_json_parse_number(b, &y))
		return (x - y <= tolerance_of(key, y) && y - x <= tolerance_of(key, y)) || (x == UINT32_MAX && y == -1);
	for (;; i++, j++) {
		while (i < a.size && a.bytes[i] == ' ')
			i++;
		while (j < b.size && b.bytes[j] == ' ')
			j++;
		if (i == a.size || j == b.size || a.bytes[i] != b.bytes[j])
			return i == a.size && j == b.size;
	}
}

static void compare_values(const struct pair *pair, uint32_t torch, uint32_t replayed, struct tally *tally)
{
	static const char *const keys[] = {
		"device", "context", "stream", "registers per thread", "shared memory", "blocks per SM", "warps per SM", "grid", "block",
		"est. achieved occupancy %", "bytes", "memory bandwidth (GB/s)", "graph id", "graph node id", "cbid", "cuda_sync_kind",
		"wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id"};
	struct ops_string said, says;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (ops_event_arg(pair->torch, torch, keys[i], &said) && is_compared(pair->torch, torch, keys[i], pair->has_ns))
			count(tally, ops_event_arg(pair->replayed, replayed, keys[i], &says) && same_value(keys[i], said, says), pair,
			      torch, keys[i]);
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Ids of operators and their rows, in order of ids. */
static uint64_t (*operators_of(const struct ops_trace *trace, size_t *ret_count))[2]
{
	const struct ops_events *e = ops_trace_events(trace);
	uint64_t(*ids)[2] = malloc((e->count + 1) * sizeof(*ids));

	*ret_count = 0;
	for (uint32_t row = 0; e->id && row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_CPU_OP && e->id[row]) {
			ids[*ret_count][0] = e->id[row];
			ids[(*ret_count)++][1] = row;
		}
	qsort(ids, *ret_count, sizeof(*ids), compare_ids);
	return ids;
}

static uint32_t operator_of(const struct ops_trace *trace, uint32_t row, const uint64_t (*ids)[2], size_t id_count)
{
	const struct ops_events *e = ops_trace_events(trace);
	/* Some of Kineto's files have the correlation where the operator should be. */
	const uint64_t key[2] = {e->id && (int64_t)e->id[row] != correlation_of(trace, row) ? e->id[row] : 0, 0};
	const uint64_t *found = key[0] ? bsearch(key, ids, id_count, sizeof(*ids), compare_ids) : NULL;

	return found ? (uint32_t)found[1] : OPS_NONE;
}

static bool same_operator(const struct pair *pair, uint32_t torch, uint32_t replayed)
{
	return replayed != OPS_NONE &&
	       ops_trace_events(pair->torch)->start_ns[torch] == ops_trace_events(pair->replayed)->start_ns[replayed] &&
	       strcmp(name_of(pair->torch, torch).bytes, name_of(pair->replayed, replayed).bytes) == 0;
}

static void compare_all_rows(const struct pair *pair, struct tally *rows, struct tally *values, struct tally *operators)
{
	const struct ops_events *said = ops_trace_events(pair->torch), *says = ops_trace_events(pair->replayed);
	size_t torch_count, replayed_count, torch_ids, replayed_ids;
	uint32_t *torch = rows_of(pair->torch, &torch_count), *replayed = rows_of(pair->replayed, &replayed_count);
	uint64_t(*by_torch)[2] = operators_of(pair->torch, &torch_ids);
	uint64_t(*by_us)[2] = operators_of(pair->replayed, &replayed_ids);

	assert_int_equal(torch_count, replayed_count);
	for (size_t i = 0; i < torch_count; i++) {
		uint32_t a = torch[i], b = replayed[i], operator= operator_of(pair->torch, a, by_torch, torch_ids);

		count(rows,
		      said->kind[a] == says->kind[b] && said->start_ns[a] == says->start_ns[b] &&
			      said->end_ns[a] == says->end_ns[b] &&
			      correlation_of(pair->torch, a) == correlation_of(pair->replayed, b) &&
			      strcmp(name_of(pair->torch, a).bytes, name_of(pair->replayed, b).bytes) == 0,
		      pair, a, "times, correlation or name");
		compare_values(pair, a, b, values);
		if (operator!= OPS_NONE)
			count(operators, same_operator(pair, operator, operator_of(pair->replayed, b, by_us, replayed_ids)), pair, a,
			      "operator");
	}
	free(torch);
	free(replayed);
	free(by_torch);
	free(by_us);
}

/* --- analyses --------------------------------------------------------------------------------------------------------- */

/* Without what is not replayed, and without annotations over streams: Kineto draws only the innermost, ours are all. */
static struct ops_trace *without_the_rest(const struct ops_trace *trace)
{
	static const uint8_t kept[] = {OPS_EVENT_CPU_OP,     OPS_EVENT_USER_ANNOTATION, OPS_EVENT_KERNEL, OPS_EVENT_GPU_MEMCPY,
	                               OPS_EVENT_GPU_MEMSET, OPS_EVENT_RUNTIME,         OPS_EVENT_DRIVER, OPS_EVENT_SYNC};
	uint32_t left_out = UINT32_MAX;
	struct ops_trace *part;
	struct ops_error error;

	for (size_t i = 0; i < sizeof(kept); i++)
		left_out &= ~(1u << kept[i]);
	if (ops_trace_select(trace, left_out, &part, &error))
		fail_msg("%s", error.text);
	return part;
}

static char *answer(const char *id, const struct ops_trace *trace)
{
	const struct ops_rank rank = {.rank = 0, .trace = trace};
	struct ops_error error;
	char *text;
	size_t size;

	return ops_analyze(id, &rank, 1, NULL, &text, &size, &error) ? NULL : text;
}

/* Those that count rows and processes, or look at arguments of operators; and rates, where times are in microseconds. */
static bool is_asked(const char *id, const struct file *file, bool has_ns)
{
	static const char not_replayed[] = " parse load events nccl_collectives collective_bandwidth ";
	char word[64];

	snprintf(word, sizeof(word), " %s ", id);
	return !strstr(not_replayed, word) && !strstr(file->except, word) && (has_ns || strncmp(id, "memory_bw", 9) != 0);
}

static void compare_analyses(const struct pair *pair, const struct file *file, struct tally *tally)
{
	size_t analyses;
	const struct ops_query_info *all = ops_analyses(&analyses);
	struct ops_trace *torch = without_the_rest(pair->torch), *replayed = without_the_rest(pair->replayed);

	for (size_t i = 0; i < analyses; i++) {
		char *said, *says;

		if (all[i].inputs != OPS_QUERY_RANKS || !is_asked(all[i].id, file, pair->has_ns))
			continue;
		said = answer(all[i].id, torch);
		says = answer(all[i].id, replayed);
		tally->of += said != NULL;
		tally->agreed += said && says && strcmp(said, says) == 0;
		if (said && (!says || strcmp(said, says) != 0))
			printf("  %s\n    %.300s\n    %.300s\n", all[i].id, said, says ? says : "none");
		ops_free(said);
		ops_free(says);
	}
	ops_trace_unref(torch);
	ops_trace_unref(replayed);
}

/* --- traces ----------------------------------------------------------------------------------------------------------- */

static struct ops_trace *replay(const struct ops_trace *torch)
{
	struct ops_trace *trace;
	char *bytes;
	size_t size;
	FILE *file = open_memstream(&bytes, &size);

	write_trace_records(file, torch);
	fclose(file);
	trace = replay_bytes(bytes, size);
	free(bytes);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	return trace;
}

static bool has_ns(const struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t finer = 0;

	for (uint32_t row = 0; row < e->count; row++)
		finer += e->start_ns[row] % 1000 != 0;
	return finer > e->count / 2;
}

static void replayed_records_equal_torch(void **state)
{
	const struct file *file = *state;
	struct tally rows = {0}, values = {0}, operators = {0}, analyses = {0};
	struct ops_error error;
	char path[4096];
	struct pair pair;

	snprintf(path, sizeof(path), "%s/%s", folder, file->name);
	if (ops_trace_read(path, NULL, &pair.torch, &error))
		fail_msg("%s", error.text);
	pair.has_ns = has_ns(pair.torch);
	pair.replayed = replay(pair.torch);
	compare_all_rows(&pair, &rows, &values, &operators);
	compare_analyses(&pair, file, &analyses);
	printf("%s: %zu rows of %zu, %zu values of %zu, %zu operators of %zu, %zu analyses of %zu\n", file->name, rows.agreed, rows.of,
	       values.agreed, values.of, operators.agreed, operators.of, analyses.agreed, analyses.of);
	ops_trace_unref(pair.torch);
	ops_trace_unref(pair.replayed);
	assert_int_equal(rows.agreed, rows.of);
	assert_int_equal(values.agreed, values.of);
	assert_int_equal(operators.agreed, operators.of);
	assert_int_equal(analyses.agreed, analyses.of);
}

static struct file files[] = {
	{"hta/simple_add/trace.json.gz", " call_graph frequent_cuda_kernel_sequences critical_path "}, /* stream 4294967295 for none */
	{"hta/event_sync_multi_stream/trace.json.gz", ""},
	{"hta/execution_trace/trace.json.gz", ""},
	{"hta/gpu_user_annotation/trace.json.gz", ""},
	{"hta/h100_bert_small/trace.json.gz", ""},
	{"hta/b200_vllm_eager/trace.json.gz", ARGUMENT_OF_AN_OPERATOR},
	{"hta/vllm_decode_graph/trace.json.gz", " memory_bw_summary memory_bw_time_series "}, /* calls say what they copied */
	{"hta/triton/trace.json.gz", ARGUMENT_OF_AN_OPERATOR},
	{"hta/dlrm_8rank/rank-3.json.gz", ""},
	{"hta/nccl_args/rank-0.json.gz", ""},
	{"hta/ns_resolution/rank-0.json.gz", ""},
	/* what is equal is in the order of the file */
	{"hta/param_resnet/trace.json.gz", " gpu_kernel_breakdown.by_kernel "},
	{"hta/negative_queue_length/rank-0.json.gz",
	 " gpu_kernel_breakdown.by_kernel idle_time_breakdown idle_time_breakdown.interval_stats "},
};
#define FILES (sizeof(files) / sizeof(files[0]))

int main(int argument_count, char **arguments)
{
	struct CMUnitTest tests[FILES];

	folder = getenv("OPSTROBE_TRACES");
	if (!folder)
		folder = argument_count > 1 ? arguments[1] : ".";
	if (access(folder, R_OK)) {
		printf("no shared traces in %s; OPSTROBE_TRACES names their folder\n", folder);
		return SKIPPED;
	}
	for (size_t i = 0; i < FILES; i++)
		tests[i] = (struct CMUnitTest){files[i].name, replayed_records_equal_torch, NULL, NULL, &files[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
