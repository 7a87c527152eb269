/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that hand work to a device.
 */
#ifndef OPS_ANALYZE_LAUNCHES_H
#define OPS_ANALYZE_LAUNCHES_H

#include "analyze/analysis.h"
#include "analyze/describe.h"

/* Flaws 5 and 6: launches of every interface and of graphs are launches. */
enum launch_kind {
	LAUNCH_NONE,
	LAUNCH_KERNEL, /* or graph */
	LAUNCH_MEMORY, /* a copy or fill */
};

/* By string id of a trace's names; freed by the caller. NULL when memory is out. */
uint8_t *launch_kinds(const struct event_table *table);

/* A step in the length of a queue, or in the traffic of memory. */
struct queue_point {
	int64_t ts_ns;
	uint32_t row;   /* launch or device work */
	uint32_t queue; /* which, from 0 */
	int64_t length; /* from then on */
};

struct queue {
	int64_t device;
	int64_t stream;
};

/* Lengths of the queues of a rank's streams over time, in order of time. */
struct queues {
	OPS_ARRAY(struct queue_point) points;
	OPS_ARRAY(struct queue) queues; /* by stream and device */
};

bool queues_build(struct queues *queues, const struct event_table *table);
void queues_release(struct queues *queues);

/* Traffic of copies and fills, by kind. */
struct traffic_point {
	int64_t ts_ns;
	uint32_t row;
	uint32_t kind;
	double gbps; /* from then on */
	bool is_end;
};

struct traffic {
	OPS_ARRAY(struct traffic_point) points;
	OPS_ARRAY(struct ops_string) kinds; /* by name */
};

bool traffic_build(struct traffic *traffic, const struct event_table *table);
void traffic_release(struct traffic *traffic);

#endif
