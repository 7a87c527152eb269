/* SPDX-License-Identifier: Apache-2.0
 *
 * The torch bridge that this process has loaded (bridge.c), for the sessions that attach to it (session.c).
 */
#ifndef OPS_EXT_BRIDGE_H
#define OPS_EXT_BRIDGE_H

#include "torch_bridge.h"

/* NULL before load_bridge. */
const struct ops_torch_bridge *ops_ext_bridge(void);

#endif
