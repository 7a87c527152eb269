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

/* Zero-initialised is empty. */
struct ops_chrome_storages {
	struct ops_intern table; /* struct ops_storage, without what an operator does to it and its role */
	struct ops_buffer text;  /* the argument that was made last; its failure is sticky */
};

/* Collects the storages of a trace; false when memory is out. */
bool ops_chrome_storages_collect(struct ops_chrome_storages *storages, const struct ops_trace *trace);
void ops_chrome_storages_release(struct ops_chrome_storages *storages);

/* Appends the members "storages" and "roles" of "opstrobe", each with a comma before; nothing for what a trace has not.
 * Times count from `base_ns`. Roles that a reader would not take any more are left out, and their number is a member. */
void ops_chrome_add_storages(struct ops_buffer *out, const struct ops_chrome_storages *storages,
                             const struct ops_trace *trace, int64_t base_ns);

/* The argument of a row that has storages, with a comma behind; good until the next call. */
struct ops_string ops_chrome_row_storages(struct ops_chrome_storages *storages, const struct ops_trace *trace, uint32_t row);

#endif
