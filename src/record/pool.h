/* SPDX-License-Identifier: Apache-2.0
 *
 * Where blocks come from: chunks of 2 MiB, each cut into 32 blocks.
 *
 *     chunk ┌───────┬───────┬───────┬ ─ ─ ─ ┬───────┐ 2 MiB, aligned, one huge page where the kernel gives one
 *           │ block │ block │ block │       │ block │
 *           └───────┴───────┴───────┴ ─ ─ ─ ┴───────┘
 *              0       1       2               31      ← bits of `free`
 *
 * Huge pages, because first touch is what a record costs most otherwise: 16 faults a block come to 21 ns an event, a
 * huge page to 3 ns (measured in a virtual machine, 72 bytes an event). They are also why memory goes back to the
 * system by whole chunks: threads fill a chunk at about the same time, and the reader, which goes by time, is done with
 * it at about the same time.
 *
 * While a session keeps a recording file (spill.h), blocks come from chunks that are shared mappings of it. Their space is
 * allocated before they are mapped: a page of a sparse file that finds the disk full would kill the program.
 *
 * Any thread; one lock, slow path only.
 */
#ifndef OPS_RECORD_POOL_H
#define OPS_RECORD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

/* A block, uninitialised but for what the pool keeps in its header; NULL when memory is out. */
struct ops_block *ops_pool_alloc(void);

/* Back to the pool. A packed block (ops_block_pack) is freed. */
void ops_pool_give(struct ops_block *block);

/* Maps and touches chunks until `bytes` of them lie free, and keeps that much until ops_pool_trim. */
bool ops_pool_prefault(uint64_t bytes);

/* Called at the end of a session: returns free memory to the system, except one chunk and as much in chunks that are in use. */
void ops_pool_trim(void);

/* A file that blocks come from. Counted: by its maker and by each of its chunks. */
struct ops_pool_file;

/* Owns the descriptor from here on; NULL, and it is closed, when memory is out. A file that `stays` is not left for memory when it
 * cannot grow any more: then ops_pool_alloc fails until a block comes back. */
struct ops_pool_file *ops_pool_file_new(int fd_taken, bool stays);
void ops_pool_file_unref(struct ops_pool_file *file);
/* Gives up the lock on the file (flock), which its maker took. */
void ops_pool_file_unlock(const struct ops_pool_file *file);
/* From here on blocks come from the file, from its start on; NULL: from memory. A file that cannot grow any more is left for memory,
 * unless it stays. */
void ops_pool_use_file(struct ops_pool_file *file);
/* Another descriptor of the file; -1: none, and errno says why. */
int ops_pool_file_dup(const struct ops_pool_file *file);
/* Why the file could not grow: an errno; 0: it could. */
int ops_pool_file_error(const struct ops_pool_file *file);
/* Whether the block lies in a file, and whether it lies where blocks come from now. */
bool ops_pool_is_in_file(const struct ops_block *block);
bool ops_pool_is_current(const struct ops_block *block);
/* Gives the space of files that are removed back to the system, but for the blocks in use: as long as a thread has one, the system
 * keeps the rest, too. */
void ops_pool_trim_files(void);
/* In a child of fork, with the pool locked: its blocks become copies that the parent does not see. */
void ops_pool_leave_files(void);

/* Around fork: no other thread is inside the pool when the child is made. */
void ops_pool_lock(void);
void ops_pool_unlock(void);

/* Tests: bytes mapped at this moment. */
uint64_t ops_pool_mapped_bytes(void);

#endif
