/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' storages and their roles (opstrobe/storage.h) in a Chrome trace, an extension of Kineto's
 * conventions. Storages are listed once, in the member "opstrobe"; events refer to them by index.
 */
#ifndef OPS_WRITE_CHROME_STORAGES_H
#define OPS_WRITE_CHROME_STORAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"
#include "base/intern.h"

/* A zero-initialised struct is empty. */
struct ops_chrome_storages {
	struct ops_intern table; /* struct ops_storage, without its role and whether an operator writes to it */
	struct ops_buffer text;  /* the last rendered argument; its failure is sticky */
};

/* Collects the storages of a trace. Returns false if out of memory. */
bool ops_chrome_storages_collect(struct ops_chrome_storages *storages, const struct ops_trace *trace);
void ops_chrome_storages_release(struct ops_chrome_storages *storages);

/* Appends the members "storages" and "roles" of "opstrobe", each preceded by a comma, if the trace has any. Times are relative to
 * `base_ns`. Roles beyond a reader's limit are left out; their number is a member. */
void ops_chrome_add_storages(struct ops_buffer *out, const struct ops_chrome_storages *storages,
                             const struct ops_trace *trace, int64_t base_ns);

/* Returns the argument of a row that has storages, followed by a comma; valid until the next call. */
struct ops_string ops_chrome_row_storages(struct ops_chrome_storages *storages, const struct ops_trace *trace, uint32_t row);

#endif
