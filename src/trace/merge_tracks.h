/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks of a merged trace, and the numbers of threads and processes in it. All functions take about constant time, whatever the
 * number of threads.
 */
#ifndef OPS_TRACE_MERGE_TRACKS_H
#define OPS_TRACE_MERGE_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intern.h"

/* Zero-initialised, it is empty. */
struct merge_tracks {
	OPS_ARRAY(struct ops_track) list;
	struct ops_intern known; /* the identities of tracks */
	OPS_ARRAY(uint32_t) of_known; /* by id of `known`: the first track of that identity */
	struct ops_intern numbers; /* of threads */
	struct ops_intern pids;
	uint32_t number_max;
	int64_t pid_max;
};

/* Returns the first track with the same identity, or OPS_NONE. */
uint32_t merge_tracks_find(const struct merge_tracks *tracks, const struct ops_track *track);
/* Adds a track; a thread whose number is in use gets another. Returns OPS_NONE if out of memory. */
uint32_t merge_tracks_add(struct merge_tracks *tracks, struct ops_track *track);
/* Reserves a process number: the given one or, if it is in use, another. Returns false if out of memory. */
bool merge_tracks_reserve_pid(struct merge_tracks *tracks, int64_t *pid);
void merge_tracks_release(struct merge_tracks *tracks);

#endif
