/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call launched which work of a device, as arrows tell.
 */
#ifndef OPS_ANALYZE_LAUNCHING_CALLS_H
#define OPS_ANALYZE_LAUNCHING_CALLS_H

#include <opstrobe/trace.h>

/* By row: the row of the call that launched it, OPS_NONE for none. Of a CUDA graph whose dependencies are known, the arrow from the
 * call goes to what waits for nothing alone: the rest of that launch is the same call's. Freed with ops_free; NULL when memory
 * is out. */
uint32_t *ops_launching_calls(const struct ops_trace *trace);

#endif
