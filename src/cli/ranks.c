/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run. As in HTA, the rank is the one that the trace states, else that in the file's name, else the lowest unused
 * one. Each trace is read for its rank and facts, and released before the next is read, unless it is small; the analysis reads it
 * again from the stream.
 */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool ranks_fail(const char *text)
{
	cli_log("opstrobe: %s\n", text);
	return false;
}

/* Adds what a file of the stream states about itself, with its trace if `hold`, else with the facts. */
static bool ranks_get(struct cli_ranks *ranks, struct cli_stream *stream, size_t file, bool hold, bool round_to_us)
{
	struct ops_rank *rank = &ranks->items[ranks->count];
	struct ops_rank_facts *facts = NULL;
	struct ops_trace *trace;
	struct ops_error error;
	bool done = true;

	if (cli_stream_get(stream, file, &trace, &error))
		return ranks_fail(error.text);
	*rank = (struct ops_rank){.rank = -1, .path = stream->files.list.items[file].path};
	ranks->count++;
	if (trace)
		rank->rank = ops_trace_rank(trace, rank->path);
	else if (!*ranks->odd.text)
		ranks->odd = error;
	if (hold) {
		rank->trace = trace;
		return true;
	}
	if (ops_rank_facts_new(trace, round_to_us, &facts, &error))
		done = ranks_fail(error.text);
	rank->facts = facts;
	ops_trace_unref(trace);
	return done;
}

/* Returns the file of a rank, found by its path, which is the file's own pointer. */
static size_t file_of(const struct cli_stream *stream, const char *path)
{
	size_t i = 0;

	while (stream->files.list.items[i].path != path)
		i++;
	return i;
}

/* Numbers and sorts the ranks, warns about ranks that several files state, and sorts the stream in the same way. */
static bool ranks_number(struct cli_ranks *ranks, struct cli_stream *stream, size_t from)
{
	size_t count = ranks->count - from;
	int64_t *said = calloc(stream->count + 1, sizeof(*said));

	if (!said)
		return ranks_fail("out of memory");
	for (size_t i = 0; i < count; i++)
		said[file_of(stream, ranks->items[from + i].path)] = ranks->items[from + i].rank;
	ops_number_ranks(ranks->items + from, count);
	for (size_t i = 0; i < count; i++) {
		const struct ops_rank *rank = &ranks->items[from + i];

		stream->order[i] = file_of(stream, rank->path);
		if (said[stream->order[i]] >= 0 && said[stream->order[i]] != rank->rank)
			cli_log("opstrobe: '%s' is of rank %lld, and so is another file\n", rank->path,
			        (long long)said[stream->order[i]]);
	}
	free(said);
	return true;
}

static void ranks_release_rank(const struct ops_rank *rank)
{
	ops_trace_unref((struct ops_trace *)rank->trace);
	ops_rank_facts_free((struct ops_rank_facts *)rank->facts);
}

static bool read_run(struct cli_ranks *ranks, size_t side, char *const *paths, size_t count, enum ops_query_inputs inputs,
                     bool round_to_us)
{
	struct cli_stream *stream = &ranks->streams[side];
	bool hold = inputs != OPS_QUERY_RANKS, done;
	size_t from = ranks->count;
	struct ops_rank *grown;

	if (!cli_stream_open(stream, paths, count, hold ? SIZE_MAX / 2 : CLI_AHEAD,
	                     inputs == OPS_QUERY_FILES ? CLI_ANY_FILE : hold ? 0 : CLI_AGAIN))
		return false;
	grown = realloc(ranks->items, (from + stream->count) * sizeof(*grown));
	if (!grown)
		return ranks_fail("out of memory");
	ranks->items = grown;
	done = true;
	for (size_t i = 0; done && i < stream->count; i++)
		done = ranks_get(ranks, stream, i, hold, round_to_us);
	done = done && ranks_number(ranks, stream, from);
	while (done && inputs == OPS_QUERY_PAIR && ranks->count > from + 1)
		ranks_release_rank(&ranks->items[--ranks->count]);
	return done;
}

bool cli_ranks_read(struct cli_ranks *ranks, char *const *paths, size_t count, enum ops_query_inputs inputs,
                    bool round_to_us)
{
	*ranks = (struct cli_ranks){.source = {cli_stream_get, &ranks->streams[0]}};
	if (inputs != OPS_QUERY_PAIR)
		return read_run(ranks, 0, paths, count, inputs, round_to_us);
	if (count != 2)
		return ranks_fail("two traces are required: control and test");
	return read_run(ranks, 0, paths, 1, inputs, round_to_us) && read_run(ranks, 1, paths + 1, 1, inputs, round_to_us);
}

void cli_ranks_release(struct cli_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++)
		ranks_release_rank(&ranks->items[i]);
	free(ranks->items);
	for (size_t side = 0; side < 2; side++)
		if (ranks->streams[side].slots)
			cli_stream_close(&ranks->streams[side]);
	*ranks = (struct cli_ranks){0};
}
