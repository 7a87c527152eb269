/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the modules of a trace in its Chrome JSON.
 */
#ifndef OPS_WRITE_CHROME_MODULES_H
#define OPS_WRITE_CHROME_MODULES_H

#include <opstrobe/trace.h>

#include "base/buffer.h"

/* Appends `,"modules":[…]` to the member that only Opstrobe's files have; nothing if there are no modules. A module is [name,
 * number, class, path, parent, address, parameters, their bytes, own parameters, their bytes, [additional path, …]], with null
 * for missing values. */
void ops_chrome_add_modules(struct ops_buffer *out, const struct ops_trace *trace);

#endif
