/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups the traces that were read by job; see analyze/ranks/trace_job.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/catalog.h"

bool served_in_one_folder(const struct served *a, const struct served *b)
{
	const char *left = strrchr(a->path, '/'), *right = strrchr(b->path, '/');
	size_t size = left ? (size_t)(left - a->path) : 0;

	return size == (right ? (size_t)(right - b->path) : 0) && !strncmp(a->path, b->path, size);
}

static int compare_starts(const void *left, const void *right)
{
	const struct served *a = *(struct served *const *)left, *b = *(struct served *const *)right;

	if (a->job_facts.start_ns != b->job_facts.start_ns)
		return a->job_facts.start_ns < b->job_facts.start_ns ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* Collects the traces that were read and have a rank, in order of their start. All others are alone. */
static size_t collect_ranks(struct catalog *catalog, struct served **ranks)
{
	size_t count = 0;

	for (size_t i = 0; i < catalog->traces.count; i++) {
		struct served *served = catalog->traces.items[i];
		bool known = served->is_listed && served->events >= 0;

		served->job_key = known ? served : NULL;
		if (known && served->job_facts.rank >= 0)
			ranks[count++] = served;
	}
	if (count)
		qsort(ranks, count, sizeof(*ranks), compare_starts);
	return count;
}

static bool are_of_one_job(const struct served *a, const struct served *b)
{
	return ops_trace_job_is_shared(&a->job_facts, &b->job_facts, true) &&
	       ops_trace_job_is_shared(&a->job_facts, &b->job_facts, served_in_one_folder(a, b));
}

/* Adds a trace to the first earlier job whose traces all match it. `first[i]` is the first trace of the job of trace i. */
static void find_job(struct served **ranks, size_t *first, bool *fits, size_t i)
{
	first[i] = i;
	memset(fits, true, i);
	for (size_t j = 0; j < i; j++)
		fits[first[j]] = fits[first[j]] && are_of_one_job(ranks[j], ranks[i]);
	for (size_t j = 0; j < i && first[i] == i; j++)
		if (first[j] == j && fits[j])
			first[i] = j;
	ranks[i]->job_key = ranks[first[i]];
}

void catalog_find_jobs(struct catalog *catalog)
{
	size_t room = catalog->traces.count + 1;
	struct served **ranks;
	size_t *first;
	bool *fits;

	if (!catalog->jobs_changed)
		return;
	ranks = ops_alloc_zeroed(room, sizeof(struct served *));
	first = ops_alloc_zeroed(room, sizeof(*first));
	fits = ops_alloc_zeroed(room, sizeof(*fits));
	if (ranks && first && fits) {
		size_t count = collect_ranks(catalog, ranks);

		for (size_t i = 0; i < count; i++)
			find_job(ranks, first, fits, i);
	} else {
		for (size_t i = 0; i < catalog->traces.count; i++)
			catalog->traces.items[i]->job_key = NULL; /* the trace to which it points may be gone */
	}
	catalog->jobs_changed = !ranks || !first || !fits;
	ops_free(ranks);
	ops_free(first);
	ops_free(fits);
}
