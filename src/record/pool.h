/* SPDX-License-Identifier: Apache-2.0
 *
 * The source of blocks: chunks of 2 MiB, each divided into 32 blocks.
 *
 *     chunk ┌───────┬───────┬───────┬ ─ ─ ─ ┬───────┐ 2 MiB, aligned, one huge page where the kernel gives one
 *           │ block │ block │ block │       │ block │
 *           └───────┴───────┴───────┴ ─ ─ ─ ┴───────┘
 *              0       1       2               31      ← bits of `free`
 *
 * Huge pages are used because page faults would otherwise be the main overhead of a record: 16 faults for each block are 21 ns
 * per event, a huge page 3 ns (measured in a virtual machine, 72 bytes per event). They are also the reason that memory is
 * returned to the system in complete chunks: threads fill the blocks of a chunk at about the same time, and the reader, which
 * proceeds by time, releases them at about the same time.
 *
 * While a session keeps a recording file (spill.h), blocks come from chunks that are shared mappings of it. Their space is
 * allocated before they are mapped, because accessing a page of a sparse file on a full disk would kill the program.
 *
 * Any thread may call these functions; one lock, used only on the slow path.
 */
#ifndef OPS_RECORD_POOL_H
#define OPS_RECORD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

/* Returns a block, uninitialised except for the pool's members of the header. Returns NULL if out of memory. */
struct ops_block *ops_pool_alloc(void);

/* Returns a block to the pool. Frees a packed block (ops_block_pack). */
void ops_pool_return(struct ops_block *block);

/* Maps and touches chunks until `bytes` of them are free, and keeps that amount until ops_pool_trim. */
bool ops_pool_prefault(uint64_t bytes);

/* Called at the end of a session: returns free memory to the system, except one chunk, and as much in partly used chunks. */
void ops_pool_trim(void);

/* A file that provides blocks. Reference-counted: by its creator and by each of its chunks. */
struct ops_pool_file;

/* Takes ownership of the descriptor. Returns NULL, and closes it, if out of memory. If the file cannot grow any more, blocks then
 * come from memory; or, if the file `stays`, ops_pool_alloc fails until a block is returned. */
struct ops_pool_file *ops_pool_file_new(int fd_taken, bool stays);
void ops_pool_file_unref(struct ops_pool_file *file);
/* Releases the lock on the file (flock) that its creator acquired. */
void ops_pool_file_unlock(const struct ops_pool_file *file);
/* Makes the file, from its beginning, the source of blocks; NULL: memory. If it cannot grow any more, memory is used instead,
 * unless the file stays. */
void ops_pool_use_file(struct ops_pool_file *file);
/* Returns another descriptor of the file, or -1 with errno set. */
int ops_pool_file_dup(const struct ops_pool_file *file);
/* Returns the errno with which the file failed to grow; 0: it did not fail. */
int ops_pool_file_error(const struct ops_pool_file *file);
/* Return whether the block is in a file, and whether it is in the current source of blocks. */
bool ops_pool_is_in_file(const struct ops_block *block);
bool ops_pool_is_current(const struct ops_block *block);
/* Returns the space of removed files to the system, except for blocks in use: as long as a thread has one, the system would keep
 * the rest, too. */
void ops_pool_trim_files(void);
/* Called in a forked child with the pool locked: replaces the file's blocks by copies that the parent does not see. */
void ops_pool_leave_files(void);

/* Called around fork, so that no other thread is inside the pool when the child is created. */
void ops_pool_lock(void);
void ops_pool_unlock(void);

/* For tests: number of bytes mapped now. */
uint64_t ops_pool_mapped_bytes(void);

#endif
