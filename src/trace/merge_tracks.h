/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks of a merged trace, and the numbers that threads and processes have in it. All in about constant time, whatever
 * the number of threads.
 */
#ifndef OPS_TRACE_MERGE_TRACKS_H
#define OPS_TRACE_MERGE_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intern.h"

/* Zero-initialised is empty. */
struct merge_tracks {
	OPS_ARRAY(struct ops_track) list;
	struct ops_intern known; /* the identities of tracks */
	OPS_ARRAY(uint32_t) of_known; /* by id of `known`: the first such track */
	struct ops_intern numbers; /* of threads */
	struct ops_intern pids;
	uint32_t number_max;
	int64_t pid_max;
};

/* The first track like this one; OPS_NONE. */
uint32_t merge_tracks_find(const struct merge_tracks *tracks, const struct ops_track *track);
/* Adds it; a thread whose number is taken gets another. OPS_NONE when memory is out. */
uint32_t merge_tracks_add(struct merge_tracks *tracks, struct ops_track *track);
/* A process number that nobody has, and that is then taken: this one or another. False when memory is out. */
bool merge_tracks_reserve_pid(struct merge_tracks *tracks, int64_t *pid);
void merge_tracks_release(struct merge_tracks *tracks);

#endif
