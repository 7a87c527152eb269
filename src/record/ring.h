/* SPDX-License-Identifier: Apache-2.0
 *
 * A session that keeps its last part alone: blocks that threads have filled are in a queue, and the oldest one is used again when
 * it is older than the session keeps, or when another one does not fit.
 *
 *     queue   oldest ─▶ block ─▶ block ─▶ … ─▶ block ◀─ pushed when a thread has filled it
 *                         │
 *                         ├─ all slots are closed: its memory records go to the baseline, and it is used again
 *                         └─ a slot is open, somebody will write to it: back to the end of the queue
 *
 * What a block goes by is when it was filled: whatever started after the last block that was used again had been filled is there, of
 * all threads. That moment is where the window begins that a reader shows.
 *
 * The baseline is the last memory record of each address from the blocks that were used again, in units that lie where blocks do, so
 * that a recording file has them. With it a reader knows what lived when the window began.
 *
 * All of it with recorder.lock held.
 */
#ifndef OPS_RECORD_RING_H
#define OPS_RECORD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

#include "record/recording.h"

struct ops_ring;

/* NULL when memory is out. `keep_ns` 0: blocks are used again only when another one does not fit. */
struct ops_ring *ops_ring_new(uint64_t keep_ns);
/* The thread of the share has filled the block, which is the share's last one. False when memory is out: it is kept to the end. */
bool ops_ring_push(struct ops_ring *ring, struct ops_share *share, struct ops_block *block);
/* Takes the oldest block out if it is too old or, `for_room`, whatever its age. NULL: there is none. */
struct ops_block *ops_ring_pop(struct ops_ring *ring, bool for_room);
/* The recording gets the baseline and where its window begins. */
void ops_ring_finish(struct ops_ring *ring, struct ops_recording *recording);
/* Frees it, but for blocks that shares have. NULL is allowed. */
void ops_ring_free(struct ops_ring *ring);

#endif
