/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows around rows, found for all rows at once: a walk up from each would cost as much as the calls are deep.
 */
#ifndef OPS_DERIVE_AROUND_H
#define OPS_DERIVE_AROUND_H

#include <opstrobe/trace.h>

typedef bool ops_is_such(const void *context, uint32_t row);

/* Returns, by row, the innermost row that contains it and for which `is_such` returns true; OPS_NONE: none. Linear in the number of
 * rows. The caller frees the list with ops_free. Returns NULL if out of memory. */
uint32_t *ops_rows_around(const struct ops_trace *trace, ops_is_such *is_such, const void *context);

#endif
