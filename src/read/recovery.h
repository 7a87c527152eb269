/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading recording files (docs/reference/recording-format.md) from any source: a file is read unit by unit, each into memory
 * first and only then looked at, for the process that writes it may still run.
 */
#ifndef OPS_READ_RECOVERY_H
#define OPS_READ_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/read.h>

struct ops_recovery_source {
	int fd;            /* of a file; -1: memory */
	const char *bytes; /* of memory */
	uint64_t size;
	bool is_running;  /* somebody may write to it: what is recorded from now on is left out */
	uint64_t last_ns; /* this last part of the recording alone; 0: all of it */
};

/* As ops_trace_recover; `name` is what errors call it. */
enum ops_code ops_trace_recover_from(const struct ops_recovery_source *source, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error);

#endif
