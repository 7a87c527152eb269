/* SPDX-License-Identifier: Apache-2.0
 *
 * A diagnostic as JSON, and the notes that a trace hands on to those that are made of it.
 */
#ifndef OPS_TRACE_DIAGNOSTICS_H
#define OPS_TRACE_DIAGNOSTICS_H

#include <opstrobe/trace.h>

#include "base/json_writer.h"

/* {"source": …, "kind": …, "message": …, "count": …, "byte": … or null}. */
void ops_diagnostic_write(const struct ops_diagnostic *item, struct ops_json_writer *json);

/* "truncated": the name of a note that changes figures; NULL for one that does not. Static. */
const char *ops_note_name(enum ops_note_kind kind);
/* The kind that has this name; false when none has. */
bool ops_note_find(const char *name, size_t size, enum ops_note_kind *ret_kind);

#endif
