/* SPDX-License-Identifier: Apache-2.0
 *
 * The activity of devices in a recording. Calls of the host are met in order of time among the slots of the threads, so that
 * the operator and the annotation around each are what is open on its thread; then what ran on the devices is tied to the
 * calls that started it.
 *
 *     slots ─▶ recording_devices_open ──▶ what is open on each thread ─┐
 *     calls ─▶ recording_devices_until ────────────────────────────────┴▶ rows of calls
 *     work on streams ─▶ recording_devices_finish ─▶ its rows, arrows from calls, annotations over streams
 */
#ifndef OPS_READ_RECORDING_DEVICES_H
#define OPS_READ_RECORDING_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/intern.h"
#include "read/device_graphs.h"
#include "record/activities.h"
#include "record/recording.h"
#include "trace/builder.h"

/* An operator or range under which calls may be made. */
struct recording_range {
	int64_t end_ns;
	uint64_t operator_id; /* of the innermost operator, this one included; 0 none */
	uint32_t operator_name; /* string id */
	uint32_t collective;  /* members that say what the operator is if it is one: string id, OPS_NONE none */
	uint32_t annotation;  /* the innermost one likewise; OPS_NONE none */
};

/* Those of one thread that have not ended, outermost first. */
struct recording_ranges {
	OPS_ARRAY(struct recording_range) open;
};

struct recording_annotation {
	uint64_t id;
	uint32_t name;  /* string id */
	uint32_t outer; /* the annotation around it, OPS_NONE none */
};

/* A thread that makes calls or records slots. */
struct recording_thread {
	uint32_t track;
	struct recording_ranges *ranges; /* NULL for one without slots */
};

/* A call that was met. */
struct recording_call {
	uint64_t correlation;
	uint64_t operator_id;
	uint32_t row; /* place in order of adding */
	uint32_t annotation;
	uint32_t collective; /* that made it: as of recording_range */
};

/* What work that was started under an annotation covers of a stream. */
struct recording_span {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t annotation;
	uint32_t track;
};

struct recording_devices {
	const struct ops_activities *activities; /* NULL: the recording has none, and nothing below is used */
	struct ops_builder *builder;
	uint32_t *strings;         /* of activities->texts */
	int64_t from_wall_ns;      /* activities->start, since the epoch */
	double rate;               /* of the wall clock to the collector's */
	uint32_t *calls;           /* indexes of the activities that are calls, in order of time */
	size_t call_count;
	size_t next_call;
	uint64_t last_id;          /* of operators and ranges: 1, 2, … */
	struct ops_intern tids;    /* system's ids of threads */
	OPS_ARRAY(struct recording_thread) threads; /* by number in tids */
	int64_t last_tid;          /* most calls come from where the one before did */
	uint32_t last_thread;      /* its number, OPS_INTERN_NONE before the first */
	OPS_ARRAY(struct recording_annotation) annotations;
	OPS_ARRAY(struct recording_call) met;
	struct ops_intern streams; /* struct ops_track's pid and tid */
	OPS_ARRAY(uint32_t) stream_tracks; /* by number in streams */
	struct ops_intern span_keys; /* annotation and track */
	OPS_ARRAY(struct recording_span) spans; /* by number in span_keys */
	struct device_graphs graphs;
	struct ops_intern counter_keys; /* of tracks of counters: uint16_t device */
	OPS_ARRAY(uint32_t) counter_tracks;
	struct ops_buffer metadata; /* of the trace: a JSON object */
	struct ops_buffer text;    /* scratch */
};

/* False, here and below, when memory is out. */
bool recording_devices_init(struct recording_devices *devices, const struct ops_recording *recording,
                            const struct ops_clock_map *clock, struct ops_builder *builder);
void recording_devices_release(struct recording_devices *devices);

/* Makes a thread of the recording known. `ranges` is its own, and empty. */
bool recording_devices_thread(struct recording_devices *devices, int64_t tid, uint32_t track,
                              struct recording_ranges *ranges);

/* An operator or range begins on the thread that these ranges are of; gives it its id and adds it to the builder. `collective` as
 * in recording_range. In order of time. Returns its place in order of adding; OPS_NONE when memory is out, and then it can be
 * added again. */
uint32_t recording_devices_open(struct recording_devices *devices, struct recording_ranges *ranges,
                                struct ops_new_event *event, uint32_t collective);
/* Adds the calls that were made before a time. When memory is out, the next call of this function continues there. */
bool recording_devices_until(struct recording_devices *devices, int64_t time_ns);
/* Adds all that is left once all calls are met: work on streams, annotations, devices. When memory is out, the caller rewinds the
 * builder before the next attempt. */
bool recording_devices_finish(struct recording_devices *devices);

/* device_work.c: what ran on the devices, once all calls are met. */
bool recording_devices_add_work(struct recording_devices *devices);
/* device_counters.c: the counters of devices. */
bool recording_devices_add_counters(struct recording_devices *devices);
/* When an activity began and ended, since the epoch. */
void recording_devices_times(const struct recording_devices *devices, const struct ops_activity *activity,
                             struct ops_new_event *event);

/* Says of the finished trace which devices there were. */
enum ops_code recording_devices_describe(const struct recording_devices *devices, struct ops_trace *trace,
                                         struct ops_error *error);

#endif
