/* SPDX-License-Identifier: Apache-2.0
 *
 * A session that keeps only its last part: filled blocks are in a queue, and the oldest one is reused when it is older than the
 * session requires, or when there is no room for another one.
 *
 *     queue   oldest ─▶ block ─▶ block ─▶ … ─▶ block ◀─ pushed when a thread has filled it
 *                         │
 *                         ├─ all slots are closed: its memory records are added to the baseline, and it is reused
 *                         └─ a slot is open, so a thread will write to it, or ended long after the block was full: back to the
 *                            end of the queue
 *
 * The age of a block is determined by when it was filled: everything that started after the last reused block was filled, and its
 * slots had ended, is available, for all threads. At that moment begins the window that a reader shows.
 *
 * The baseline is the last memory record of each address in reused blocks. It is stored in units like blocks, so that a recording
 * file contains it. From it a reader knows which allocations existed at the start of the window.
 *
 * All functions require recorder.lock.
 */
#ifndef OPS_RECORD_RING_H
#define OPS_RECORD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

#include "record/recording.h"

struct ops_ring;

/* Returns NULL if out of memory. If `keep_ns` is 0, blocks are reused only if there is no room for another one. */
struct ops_ring *ops_ring_new(uint64_t keep_ns);
/* Called when the thread of the share has filled the block, which is the last one of the share. Returns false if out of memory:
 * then the block is kept until the end. */
bool ops_ring_push(struct ops_ring *ring, struct ops_share *share, struct ops_block *block);
/* Removes and returns the oldest block if it is too old or, with `for_room`, whatever its age; NULL if there is none. */
struct ops_block *ops_ring_pop(struct ops_ring *ring, bool for_room);
/* Stores the baseline and the start of the window in the recording. */
void ops_ring_finish(struct ops_ring *ring, struct ops_recording *recording);
/* Frees the ring, except for blocks that belong to shares. NULL is allowed. */
void ops_ring_free(struct ops_ring *ring);

#endif
