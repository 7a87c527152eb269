/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads recording files (docs/reference/recording-format.md) from any source. A file is read unit by unit, each copied to memory
 * before it is parsed, because the process that writes it may still run.
 */
#ifndef OPS_READ_RECOVERY_H
#define OPS_READ_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/shadow_steps.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/read.h>

struct ops_recovery_source {
	int fd;            /* descriptor of a file; -1: memory */
	const char *bytes; /* for memory */
	uint64_t size;
	bool is_running;  /* a process may write to it: later records are left out */
	uint64_t last_ns; /* only the last part of this length; 0: everything */
};

/* Like ops_trace_recover. */
enum ops_code ops_trace_recover_from(const struct ops_recovery_source *source, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error);

/* Like ops_trace_recover_last, but errors do not name the file. */
enum ops_code ops_trace_recover_path(const char *path, uint64_t last_ns, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error);

#define OPS_RECOVERY_ATTEMPTS 5 /* to read a ring before it is overwritten */

#define OPS_RECOVERY_OVERHEAD_ROOM sizeof(((struct ops_recording_copy *)0)->black_box)
/* Formats the overhead of a black box as JSON. Returns its size; 0 if the recording has none. */
size_t ops_recovery_describe_overhead(const struct ops_overhead *overhead, char ret_json[OPS_RECOVERY_OVERHEAD_ROOM]);

#endif
