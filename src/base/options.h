/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of options whose first member is their size, `size_t size`, so that a program keeps working with a library whose
 * structs have grown.
 */
#ifndef OPS_BASE_OPTIONS_H
#define OPS_BASE_OPTIONS_H

#include <stddef.h>

#include <opstrobe/error.h>

/* Copies `from`, of the size that it states, to `to`. Members that the caller's struct lacks, or all if `from` is NULL, are zero.
 * OPS_INVALID if the size is not set; OPS_UNSUPPORTED if members that this library does not know are not zero. `to` is
 * initialized even on failure. */
enum ops_code ops_options_read(void *to, size_t to_size, const void *from, struct ops_error *error);

#endif
