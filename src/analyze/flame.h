/* SPDX-License-Identifier: Apache-2.0
 *
 * What a flame graph shows, for the writers of it.
 */
#ifndef OPS_ANALYZE_FLAME_H
#define OPS_ANALYZE_FLAME_H

#include "analyze/frames.h"

struct ops_flame {
	struct ops_frames frames;
	OPS_ARRAY(int64_t) self_ns; /* by chain. Below zero where events of a file overlap each other: not to be shown */
};

#endif
