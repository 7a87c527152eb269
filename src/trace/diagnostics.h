/* SPDX-License-Identifier: Apache-2.0
 *
 * A diagnostic as JSON.
 */
#ifndef OPS_TRACE_DIAGNOSTICS_H
#define OPS_TRACE_DIAGNOSTICS_H

#include <opstrobe/trace.h>

#include "base/json_writer.h"

/* {"source": …, "kind": …, "message": …, "count": …, "byte": … or null}. */
void ops_diagnostic_write(const struct ops_diagnostic *item, struct ops_json_writer *json);

#endif
