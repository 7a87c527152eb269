/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that launch work on a device.
 */
#ifndef OPS_ANALYZE_LAUNCHES_H
#define OPS_ANALYZE_LAUNCHES_H

#include "analyze/analysis.h"
#include "analyze/describe.h"

/* A change in the length of a queue, or in memory traffic. */
struct queue_point {
	int64_t ts_ns;
	uint32_t row;   /* launch or device work */
	uint32_t queue; /* index of the queue, from 0 */
	int64_t length; /* length from then on */
};

struct queue {
	int64_t device;
	int64_t stream;
};

/* Queue lengths of a rank's streams in order of time. */
struct queues {
	OPS_ARRAY(struct queue_point) points;
	OPS_ARRAY(struct queue) queues; /* by stream and device */
};

bool queues_build(struct queues *queues, const struct event_table *table);
void queues_release(struct queues *queues);

/* Bandwidth of copies and fills, by kind. */
struct traffic_point {
	int64_t ts_ns;
	uint32_t row;
	uint32_t kind;
	double gbps; /* bandwidth from then on */
	bool is_end;
};

struct traffic {
	OPS_ARRAY(struct traffic_point) points;
	OPS_ARRAY(struct ops_string) kinds; /* by name */
};

bool traffic_build(struct traffic *traffic, const struct event_table *table);
void traffic_release(struct traffic *traffic);

#endif
