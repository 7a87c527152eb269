/* SPDX-License-Identifier: Apache-2.0
 *
 * The activities of devices during a session, as delivered by their collectors (gpu/intake.h): work on streams, the calls on the
 * host that started it, the devices themselves. A recording contains them for the reader (read/recording_devices.c), which
 * converts them to rows and finds the operator of each.
 *
 * An activity is 48 bytes; its texts are ids, so that the name of a kernel launched a million times is stored once. Activities
 * are stored in chunks that never move. One thread at a time may add. If out of memory, activities are lost and counted; nothing
 * else is lost.
 */
#ifndef OPS_RECORD_ACTIVITIES_H
#define OPS_RECORD_ACTIVITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/device.h>

#include "base/array.h"
#include "base/intern.h"

struct ops_activity {
	int64_t start_ns; /* on the collector's clock, see ops_activities.start */
	int64_t end_ns;
	union {
		uint64_t bytes; /* copy or set: bytes moved; GRAPH_NODE: the node of which it is a copy; GRAPH_DEPENDENCY: the
		                 * node that is waited for; else 0 */
		double value;   /* of a counter, from its start on */
	};
	uint64_t correlation; /* number shared by a call and the work it started; 0: none. GRAPH_NODE: the node; GRAPH_DEPENDENCY:
	                       * the waiting node */
	union {
		int32_t stream;  /* of device work; -1 if it concerns all streams, such as the synchronisation of a context */
		uint32_t thread; /* of a call: the thread's system id (gettid) */
	};
	uint32_t name;        /* text ids; 0 is "" */
	uint32_t details;     /* further arguments of its row: members of a JSON object without the braces */
	uint16_t device;      /* ordinal */
	uint8_t kind;         /* enum ops_activity_kind */
	uint8_t is_event : 1; /* SYNC: an event was recorded, and nothing waits */
	uint8_t is_held : 1;  /* MEMORY: a counter of live bytes */
};
_Static_assert(sizeof(struct ops_activity) == 48, "millions of them are kept");

#define OPS_ACTIVITIES_A_CHUNK 4096u

/* The graph node of work with these details. Stored separately, because only few activities have one. */
struct ops_activity_node {
	uint64_t node;
	uint32_t details;
};

/* The function that a host node of a CUDA graph calls. */
struct ops_host_function {
	uint64_t node;
	uint64_t address;
	uint32_t name; /* text; 0: unknown */
};

/* A stream that the program named. */
struct ops_activity_stream {
	int32_t stream;
	uint32_t name; /* text */
	uint16_t device;
};

/* A device, which becomes an element of torch's "deviceProperties". */
struct ops_device {
	uint32_t ordinal;
	uint32_t properties; /* text: a JSON object */
};

/* A top-level member of the trace file, such as the version of the driver. */
struct ops_device_metadata {
	uint32_t key;   /* texts */
	uint32_t value; /* JSON */
};

/* One moment on the collector's clock and on the recorder's (ops_ticks). */
struct ops_activity_clock {
	int64_t device_ns;
	uint64_t ticks;       /* midpoint of two readings of the recorder's clock */
	uint64_t width_ticks; /* distance of the two readings */
};

struct ops_activities {
	OPS_ARRAY(struct ops_activity *) chunks; /* full except for the last; activities are in any order */
	size_t count;
	OPS_ARRAY(struct ops_device) devices;
	OPS_ARRAY(struct ops_device_metadata) metadata;
	OPS_ARRAY(struct ops_activity_node) nodes;
	OPS_ARRAY(struct ops_host_function) host_functions; /* the last entry of a node is valid */
	OPS_ARRAY(struct ops_activity_stream) streams; /* the last name of a stream is valid */
	struct ops_intern texts;              /* id 0 is "" */
	struct ops_activity_clock start;      /* the rate of the collector's clock is constant between these two */
	struct ops_activity_clock stop;
	uint64_t lost;
};

/* Returns NULL if out of memory. */
struct ops_activities *ops_activities_new(void);
void ops_activities_free(struct ops_activities *activities); /* NULL is allowed */

/* Returns the id of a text, added if new; 0 if out of memory. */
uint32_t ops_activities_text(struct ops_activities *activities, const char *bytes, size_t size);
/* Adds a copy of an activity; if out of memory, counts it as lost. */
void ops_activities_add(struct ops_activities *activities, const struct ops_activity *activity);
/* Sets the graph node of the work with these details; required once for each `details`. If out of memory, counts it as lost. */
void ops_activities_node(struct ops_activities *activities, uint32_t details, uint64_t node);
/* Sets the function that a node, or the node of which it is a copy, calls. If out of memory, counts it as lost. */
void ops_activities_host_function(struct ops_activities *activities, const struct ops_host_function *function);
/* Sets the name of a stream. If out of memory, counts it as lost. */
void ops_activities_stream(struct ops_activities *activities, uint16_t device, int32_t stream, uint32_t name);
/* Adds a device, once for each ordinal; `properties` is a JSON object. Returns false if out of memory or if it is not JSON. */
bool ops_activities_device(struct ops_activities *activities, uint32_t ordinal, const char *properties, size_t size);

/* Sets a member for all devices, once for each key; `value` is JSON. Returns false as above. */
bool ops_activities_metadata(struct ops_activities *activities, const char *key, const char *value, size_t size);

static inline const struct ops_activity *ops_activity_at(const struct ops_activities *activities, size_t i)
{
	return &activities->chunks.items[i / OPS_ACTIVITIES_A_CHUNK][i % OPS_ACTIVITIES_A_CHUNK];
}

static inline bool ops_activity_is_call(const struct ops_activity *activity)
{
	return activity->kind >= OPS_ACTIVITY_RUNTIME && activity->kind < OPS_ACTIVITY_ENVIRONMENT;
}

static inline bool ops_activity_is_counter(const struct ops_activity *activity)
{
	return activity->kind >= OPS_ACTIVITY_ENVIRONMENT || activity->is_held;
}

#endif
