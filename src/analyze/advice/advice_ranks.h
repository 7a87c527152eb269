/* SPDX-License-Identifier: Apache-2.0
 *
 * The summary of each rank of a run, which outlives its trace: its steps, its collectives, and its times by place. It
 * takes a few megabytes at most, so the traces of many ranks can be read one after another.
 *
 * Ranks stay in a collective until all have completed it, so the first one waits longest. Clocks are not compared: the
 * shortest time of a collective on any rank is the transfer time, and the rest of a rank's time is wait time.
 *
 *     rank 0   ──compute──[ wait            ][transfer]
 *     rank 1   ──compute──────compute───────[transfer]      straggler
 */
#ifndef OPS_ANALYZE_ADVICE_RANKS_H
#define OPS_ANALYZE_ADVICE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/views.h>

#include "base/array.h"
#include "base/intern.h"
#include "derive/operations.h"

struct advice;

struct rank_step {
	uint32_t name; /* id in ranks.texts */
	bool steady;
	int64_t ns;
	int64_t exposed_ns;  /* collectives run, and nothing is computed */
	int64_t backward_ns; /* the backward pass computes, and no collective runs */
	int64_t transfer_ns; /* transfer time of the collectives; this and the next are known once all ranks are added */
	int64_t wait_ns;     /* exposed time beyond the transfer */
};

/* One run of a collective operation on a rank. */
struct rank_collective {
	uint32_t row;
	uint32_t operation; /* the same on all ranks: one of a kind, size and process group in a step of the same name */
	uint32_t step;  /* index of the step */
	uint32_t kind;  /* texts: "nccl:all_reduce" */
	uint32_t group; /* texts: its ranks in the form of the file; "": unknown */
	uint32_t place;
	int64_t start_ns;
	int64_t end_ns;
	int64_t bytes; /* 0: unknown */
	double bus_bytes; /* bytes that a link carries; 0: unknown */
	int64_t call_ns; /* time of the request on the host */
};

/* A line or operator of the program, the same for all ranks. */
struct rank_place {
	uint32_t file, function, module, operator_name; /* texts */
	uint32_t line;
};

struct rank_time {
	uint32_t place;
	int64_t ns; /* time in steady steps */
};

struct rank {
	int64_t number; /* -1: unknown */
	uint32_t name;  /* texts */
	size_t step_count;
	int64_t steps_ns;
	OPS_ARRAY(struct rank_step) steps;
	OPS_ARRAY(struct rank_collective) collectives; /* in order of time */
	OPS_ARRAY(struct rank_time) times;
};

struct advice_ranks {
	struct ops_intern texts;
	struct ops_operations operations;
	struct ops_intern places; /* struct rank_place */
	OPS_ARRAY(struct rank) ranks; /* ranks with collectives; from the last profiling cycle of each worker */
	int64_t *shortest_ns; /* by operation */
	uint32_t *taking;     /* by operation: number of ranks that take part */
	int64_t largest_group; /* size of the largest group; 0: unknown */
	double explained_ns;  /* exposed communication of all ranks that is part of gains of earlier stages */
};

/* Adds a summary of a trace. This and the next function return false if out of memory. */
bool advice_ranks_add(struct advice_ranks *ranks, struct advice *advice, const struct ops_rank *worker);
/* Computes transfers and waits, after all traces are added. */
bool advice_ranks_finalize(struct advice_ranks *ranks);
void advice_ranks_release(struct advice_ranks *ranks);

static inline struct ops_string rank_text(const struct advice_ranks *ranks, uint32_t id)
{
	return (struct ops_string){ranks->texts.entries[id].bytes, ranks->texts.entries[id].size};
}

static inline double rank_step_ms(const struct rank *rank, double ns)
{
	return rank->step_count ? ns / 1e6 / (double)rank->step_count : 0;
}

#endif
