/* SPDX-License-Identifier: Apache-2.0
 *
 * A diagnostic as JSON, and the notes that are copied to traces derived from a trace.
 */
#ifndef OPS_TRACE_DIAGNOSTICS_H
#define OPS_TRACE_DIAGNOSTICS_H

#include <opstrobe/trace.h>

#include "base/json_writer.h"

/* {"source": …, "kind": …, "message": …, "count": …, "byte": … or null}. */
void ops_diagnostic_write(const struct ops_diagnostic *item, struct ops_json_writer *json);

/* Returns the name of a note that changes figures, such as "truncated"; NULL for other notes. Static. */
const char *ops_note_name(enum ops_note_kind kind);
/* Finds the kind with this name. Returns false if there is none. */
bool ops_note_find(const char *name, size_t size, enum ops_note_kind *ret_kind);

#endif
