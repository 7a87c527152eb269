/* SPDX-License-Identifier: Apache-2.0
 *
 * What advice keeps of each rank of a run once its trace is gone: its steps, its collectives, and what its time goes to. A few
 * megabytes a rank at most, so that a run of many ranks is read one after the other.
 *
 * Ranks take part in a collective until it is done for all, so whoever comes first waits longest. No clocks are compared: of
 * one collective the shortest span of all ranks is the transfer, and what a rank's own is longer it has waited.
 *
 *     rank 0   ──compute──[ wait            ][transfer]
 *     rank 1   ──compute──────compute───────[transfer]      is late
 */
#ifndef OPS_ANALYZE_ADVICE_RANKS_H
#define OPS_ANALYZE_ADVICE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/views.h>

#include "base/array.h"
#include "base/intern.h"

struct advice;

struct rank_step {
	uint32_t name; /* id in ranks.texts */
	bool steady;
	int64_t ns;
	int64_t exposed_ns;  /* collectives run, and nothing is computed */
	int64_t backward_ns; /* the backward pass computes, and no collective runs */
	int64_t transfer_ns; /* of the collectives; these two are known when all ranks are */
	int64_t wait_ns;     /* what is exposed beyond that */
};

/* One run of a collective operation on a rank. */
struct rank_collective {
	uint32_t key;   /* the same on all ranks for what they do together */
	uint32_t step;  /* index */
	uint32_t kind;  /* texts: "nccl:all_reduce" */
	uint32_t group; /* texts: the ranks that take part, as the file says it; "" not said */
	uint32_t place;
	int64_t start_ns;
	int64_t end_ns;
	int64_t bytes; /* 0 not said */
	double bus_bytes; /* that a link carries; 0 unknown */
	int64_t call_ns; /* what the host spends on asking for it */
};

/* A line or operator of the program, the same for all ranks. */
struct rank_place {
	uint32_t file, function, module, operator_name; /* texts */
	uint32_t line;
};

struct rank_time {
	uint32_t place;
	int64_t ns; /* in steady steps */
};

struct rank {
	int64_t number; /* -1 unknown */
	uint32_t name;  /* texts */
	size_t step_count;
	int64_t steps_ns;
	OPS_ARRAY(struct rank_step) steps;
	OPS_ARRAY(struct rank_collective) collectives; /* in order of time */
	OPS_ARRAY(struct rank_time) times;
};

struct advice_ranks {
	struct ops_intern texts;
	struct ops_intern keys;
	struct ops_intern places; /* of struct rank_place */
	OPS_ARRAY(struct rank) ranks; /* with collectives; of each worker's last span */
	int64_t *shortest_ns; /* by key */
	uint32_t *taking;     /* by key: ranks */
	int64_t largest_group; /* ranks of it, as files say; 0 not said */
	double explained_ns;  /* exposed communication of all ranks that a rule's gain already counts */
};

/* Keeps what there is of a trace. False when memory is out, as all below. */
bool advice_ranks_add(struct advice_ranks *ranks, struct advice *advice, const struct ops_rank *worker);
/* Works out transfers and waits, once all are added. */
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
