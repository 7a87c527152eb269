/* SPDX-License-Identifier: Apache-2.0
 *
 * What devices did during a session, as their collectors (gpu/intake.h) hand it over: work on streams, the calls on the
 * host that started it, the devices themselves. A recording carries it to the reader (read/recording_devices.c), which
 * makes rows of it and finds the operator behind each.
 *
 * An activity is 48 bytes; its texts are ids, so that a kernel launched a million times is named once. They lie in chunks,
 * which never move. One thread at a time adds. Running out of memory loses activities, which are counted, and nothing else.
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
	int64_t start_ns; /* of the collector's clock, see ops_activities.start */
	int64_t end_ns;
	union {
		uint64_t bytes; /* moved by a copy or set; of a GRAPH_NODE the node that it is a copy of, of a GRAPH_DEPENDENCY
	                         * the node that is waited for; else 0 */
		double value;   /* of a counter, at its start */
	};
	uint64_t correlation; /* what a call and the work it started have in common; 0 none. Of a GRAPH_NODE: the node, of a
	                       * GRAPH_DEPENDENCY: the node that waits */
	union {
		int32_t stream;  /* of work on a device; -1 when it concerns all, as the synchronisation of a context does */
		uint32_t thread; /* of a call: the thread's id in the system (gettid) */
	};
	uint32_t name;        /* ids of texts; 0 is "" */
	uint32_t details;     /* what else its row says: members of a JSON object without the braces */
	uint16_t device;      /* ordinal */
	uint8_t kind;         /* enum ops_activity_kind */
	uint8_t is_event : 1; /* of a SYNC: an event was recorded there, and nothing waits */
	uint8_t is_held : 1;  /* of a MEMORY: a counter, of what is held */
};
_Static_assert(sizeof(struct ops_activity) == 48, "millions of them are kept");

#define OPS_ACTIVITIES_A_CHUNK 4096u

/* Work with these details is a node of a CUDA graph: few of the millions are. */
struct ops_activity_node {
	uint64_t node;
	uint32_t details;
};

/* What a node of a CUDA graph that runs on the host calls. */
struct ops_host_function {
	uint64_t node;
	uint64_t address;
	uint32_t name; /* text, 0 when that is not known */
};

/* A stream that its program gave a name. */
struct ops_activity_stream {
	int32_t stream;
	uint32_t name; /* text */
	uint16_t device;
};

/* A device that was there: one element of torch's "deviceProperties". */
struct ops_device {
	uint32_t ordinal;
	uint32_t properties; /* text: a JSON object */
};

/* A member of the trace file's top level, such as the version of the driver. */
struct ops_device_metadata {
	uint32_t key;   /* texts */
	uint32_t value; /* JSON */
};

/* One moment on the collector's clock and on the recorder's (ops_ticks). */
struct ops_activity_clock {
	int64_t device_ns;
	uint64_t ticks;       /* the middle of the two readings of the recorder's clock around it */
	uint64_t width_ticks; /* the distance of those two */
};

struct ops_activities {
	OPS_ARRAY(struct ops_activity *) chunks; /* full but for the last; in any order */
	size_t count;
	OPS_ARRAY(struct ops_device) devices;
	OPS_ARRAY(struct ops_device_metadata) metadata;
	OPS_ARRAY(struct ops_activity_node) nodes;
	OPS_ARRAY(struct ops_host_function) host_functions; /* the latest of a node counts */
	OPS_ARRAY(struct ops_activity_stream) streams; /* the last name of one counts */
	struct ops_intern texts;              /* number 0 is "" */
	struct ops_activity_clock start;      /* the collector's clock runs evenly between these two */
	struct ops_activity_clock stop;
	uint64_t lost;
};

/* NULL when memory is out. */
struct ops_activities *ops_activities_new(void);
void ops_activities_free(struct ops_activities *activities); /* NULL is allowed */

/* The id of a text, added if new; 0 when memory is out. */
uint32_t ops_activities_text(struct ops_activities *activities, const char *bytes, size_t size);
/* Adds a copy, or counts it as lost. */
void ops_activities_add(struct ops_activities *activities, const struct ops_activity *activity);
/* Says which node of a CUDA graph work with these details is; once for each details is enough. Or counts it as lost. */
void ops_activities_node(struct ops_activities *activities, uint32_t details, uint64_t node);
/* Says what a node calls, or that of which it is a copy. Or counts it as lost. */
void ops_activities_host_function(struct ops_activities *activities, const struct ops_host_function *function);
/* Says what a stream is called. Or counts it as lost. */
void ops_activities_stream(struct ops_activities *activities, uint16_t device, int32_t stream, uint32_t name);
/* Adds a device; `properties` is a JSON object. Once for each ordinal. False when memory is out or it is not JSON. */
bool ops_activities_device(struct ops_activities *activities, uint32_t ordinal, const char *properties, size_t size);

/* Says `value`, which is JSON, of all devices. Once for each key. False as above. */
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
