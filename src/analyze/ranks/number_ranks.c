/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rank each trace of a run is of.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <opstrobe/analyses.h>

static bool is_taken(const struct ops_rank *ranks, size_t count, int64_t rank)
{
	for (size_t i = 0; i < count; i++)
		if (ranks[i].rank == rank)
			return true;
	return false;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct ops_rank *left = a, *right = b;

	return (left->rank > right->rank) - (left->rank < right->rank);
}

/* Runs have thousands of ranks at most. */
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
		qsort(ranks, count, sizeof(*ranks), compare_ranks);
}
