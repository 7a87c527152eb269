/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of recording files, for the writer (spill.c) and the reader (read/recovery.c). docs/reference/recording-format.md
 * describes it and its guarantees; a change of a layout here must increase OPS_SPILL_VERSION.
 */
#ifndef OPS_RECORD_SPILL_FORMAT_H
#define OPS_RECORD_SPILL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/shadow_steps.h>

#include "base/clock.h"

#define OPS_SPILL_MAGIC 0x4345524fu     /* "OREC" in memory order on little endian: unit 0 */
#define OPS_SPILL_LOG_MAGIC 0x474f4c4fu /* "OLOG": a part of the log */
#define OPS_SPILL_BASELINE_MAGIC 0x4d454d4fu /* "OMEM": memory records from before the window */
#define OPS_SPILL_VERSION 3u
#define OPS_SPILL_BYTE_ORDER 0x01020304u

/* Number of bytes by which files grow: a chunk of the pool. */
#define OPS_SPILL_GROWTH_BYTES (OPS_BLOCK_BYTES * 32u)

/* Each unit of a file begins with the header of a block. The rest of a part of the log has this size. */
#define OPS_SPILL_LOG_BYTES (OPS_BLOCK_BYTES - (uint32_t)sizeof(struct ops_block))

enum ops_spill_state {
	OPS_SPILL_RECORDING = 0,
	OPS_SPILL_STOPPED = 1,
};

/* The rest of unit 0. */
struct ops_spill_header {
	uint32_t version;
	uint32_t byte_order;
	uint32_t slot_bytes;
	uint32_t tsc;
	uint32_t args_are_inputs;
	uint32_t state; /* enum ops_spill_state */
	uint32_t end_errno;
	uint32_t unused;
	int64_t pid;
	struct ops_clock_pair first;
	struct ops_clock_pair start;
	char boot_id[40];
	char opstrobe_version[24];
	char process_name[64];
	char host_name[256];
	uint64_t window_ticks; /* for a ring: records that started earlier may be missing; 0: none are. Written after `dropped` */
	uint64_t dropped;
	struct ops_overhead overhead;
	struct ops_clock_pair end; /* of a copy: when it was made; later records are left out. Zeros in other files */
};
_Static_assert(sizeof(struct ops_clock_pair) == 32, "layout of recording files");
_Static_assert(offsetof(struct ops_spill_header, first) == 40, "layout of recording files");
_Static_assert(sizeof(struct ops_overhead) == 32, "layout of recording files");
_Static_assert(sizeof(struct ops_spill_header) == 568, "layout of recording files");

/* A record of the log: this header and its payload, padded to a multiple of 8. */
struct ops_spill_record {
	uint32_t bytes;
	uint32_t kind;
};

enum ops_spill_kind {
	OPS_SPILL_THREAD = 1,
	OPS_SPILL_THREAD_NAME = 2,
	OPS_SPILL_NAME = 3,
	OPS_SPILL_FUNCTION = 4,
	OPS_SPILL_MODULE = 5,
	OPS_SPILL_MODULES = 6,
	OPS_SPILL_METADATA = 7,
	OPS_SPILL_CLOCK = 8,
};

#endif
