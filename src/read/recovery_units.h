/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of a recording file (docs/reference/recording-format.md), which a process may write to meanwhile.
 */
#ifndef OPS_READ_RECOVERY_UNITS_H
#define OPS_READ_RECOVERY_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/recovery.h"
#include "record/spill_format.h"

struct ops_recovery_units {
	const struct ops_recovery_source *source;
	uint64_t count; /* the last one may be incomplete */
	uint64_t session; /* units of others are from before the file was reused */
	struct ops_spill_header header;
};

/* Reads and checks the header. */
enum ops_code ops_recovery_open(struct ops_recovery_units *units, const struct ops_recovery_source *source, struct ops_error *error);

/* Opens a file to read. The caller closes the descriptor. */
enum ops_code ops_recovery_open_file(const char *path, struct ops_recovery_source *ret_source, struct ops_error *error);
/* Sets the current size of the file. */
enum ops_code ops_recovery_measure(struct ops_recovery_source *source, struct ops_error *error);

/* Reads the available part of a unit, at most `size` bytes; the rest is zeros. */
enum ops_code ops_recovery_unit(const struct ops_recovery_units *units, uint64_t unit, void *out, size_t size, size_t *ret_got,
                                struct ops_error *error);
/* Returns whether a unit was not reused while it was copied. The contents of a reused block are older than the window by now. */
bool ops_recovery_is_still(const struct ops_recovery_units *units, uint64_t unit, const struct ops_block *copy);

/* Reads the header again for its current window. OPS_BUSY if the window begins after `until_ticks` (0: never). */
enum ops_code ops_recovery_read_window(struct ops_recovery_units *units, uint64_t until_ticks, struct ops_error *error);

/* Returns whether the times in the file are readings of this process's clock, in ticks of the same kind. */
bool ops_recovery_has_this_clock(const struct ops_recovery_units *units);

#endif
