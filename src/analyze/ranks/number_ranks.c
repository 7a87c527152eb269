/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns a rank to each trace of a run: the rank that it states, else the one in its file's name, else an unused one.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/ranks/trace_job.h"
#include "base/order.h"
#include "base/text.h"

#define KEY "distributedInfo"

/* --- rank of one trace ------------------------------------------------------------------------------------------------ */

static bool digits(const char *text, int64_t *ret_number)
{
	int count = 0;

	for (*ret_number = 0; text[count] >= '0' && text[count] <= '9' && count < 9; count++)
		*ret_number = *ret_number * 10 + (text[count] - '0');
	return count > 0;
}

/* Returns true if a number is a process id, by what follows it in the names that profilers give their files:
 * "host_4711.1795263960573.pt.trace.json". */
static bool is_process(const char *number)
{
	const char *time = number + strspn(number, "0123456789") + 1;
	size_t count = strspn(time, "0123456789");

	return count >= 10 && !strncmp(time + count, ".pt.trace.json", 14);
}

static int64_t rank_of_name(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *at = strstr(name, "rank");
	int64_t number;

	if (at) {
		at += 4;
		at += *at == '-' || *at == '_';
		if (digits(at, &number))
			return number;
	}
	for (at = name; *at; at++)
		if (*at == '_' && digits(at + 1, &number) && at[1 + strspn(at + 1, "0123456789")] == '.' && !is_process(at + 1))
			return number;
	return -1;
}

/* Returns what a trace says about its rank among the other processes; empty: nothing. */
static struct ops_string distributed_info(const struct ops_trace *trace)
{
	struct ops_string json;

	return ops_trace_find_metadata(trace, KEY, &json) && json.bytes[0] == '{' ? json : (struct ops_string){"", 0};
}

int64_t ops_trace_rank(const struct ops_trace *trace, const char *path)
{
	struct ops_string value;
	int64_t rank;

	if (trace_find_member(trace, KEY, "rank", &value) && ops_json_parse_integer(value, &rank) && rank >= 0)
		return rank;
	return path ? rank_of_name(path) : -1;
}

enum ops_code ops_trace_set_rank(struct ops_trace *trace, int64_t rank, struct ops_error *error)
{
	struct ops_string info = distributed_info(trace);
	struct ops_json_walk cursor = ops_json_walk(info.bytes, info.size);
	struct ops_string member, value;
	struct ops_buffer out = {0};
	enum ops_code code;

	if (rank < 0)
		return ops_fault(error, OPS_INVALID, "rank %lld is negative", (long long)rank);
	ops_buffer_printf(&out, "{\"rank\":%lld", (long long)rank);
	while (ops_json_next_member(&cursor, &member, &value)) {
		if (ops_string_is(member, "rank"))
			continue;
		ops_buffer_append_text(&out, ",\"");
		ops_buffer_append(&out, member.bytes, member.size);
		ops_buffer_append_text(&out, "\":");
		ops_buffer_append(&out, value.bytes, value.size);
	}
	ops_buffer_append_text(&out, "}");
	code = out.failed ? ops_fault_memory(error)
	                  : ops_trace_set_metadata(trace, KEY, strlen(KEY), out.bytes, out.size, error);
	ops_buffer_release(&out);
	return code;
}

/* --- ranks of a run --------------------------------------------------------------------------------------------------- */

static bool is_taken(const struct ops_rank *ranks, size_t count, int64_t rank)
{
	for (size_t i = 0; i < count; i++)
		if (ranks[i].rank == rank)
			return true;
	return false;
}

OPS_ORDER(number_ranks_compare_ranks, struct ops_rank, OPS_UP(rank))

/* Quadratic, but runs have thousands of ranks at most. */
void ops_number_ranks(struct ops_rank *ranks, size_t count)
{
	int64_t next = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t said = ranks[i].trace ? ops_trace_rank(ranks[i].trace, ranks[i].path) : ranks[i].rank;

		ranks[i].rank = said >= 0 && is_taken(ranks, i, said) ? -1 : said;
	}
	for (size_t i = 0; i < count; i++) {
		if (ranks[i].rank >= 0)
			continue;
		while (is_taken(ranks, count, next))
			next++;
		ranks[i].rank = next;
	}
	if (count)
		qsort(ranks, count, sizeof(*ranks), number_ranks_compare_ranks);
}
