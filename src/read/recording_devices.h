/* SPDX-License-Identifier: Apache-2.0
 *
 * The activity of devices in a recording. Host calls are read in order of time together with the slots of the threads, so that
 * the operator and annotation around each are those open on its thread. Then device work is connected to the calls that started
 * it.
 *
 *     slots ─▶ recording_devices_open ──▶ open ranges of each thread ──┐
 *     calls ─▶ recording_devices_until ────────────────────────────────┴▶ rows of calls
 *     work on streams ─▶ recording_devices_finish ─▶ its rows, links from calls, annotations over streams
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
#include "read/recording_ranges.h"
#include "record/activities.h"
#include "record/recording.h"
#include "trace/builder.h"

/* A thread that makes calls or records slots. */
struct recording_thread {
	uint32_t track;
	struct recording_ranges *ranges; /* NULL for a thread without slots */
};

/* A call that has been read. */
struct recording_call {
	uint64_t correlation;
	uint64_t operator_id;
	uint32_t row; /* number in order of adding */
	uint32_t annotation;
	uint32_t collective; /* of the operator that made it, as in recording_range */
};

/* A stream. */
struct recording_stream {
	uint32_t track;
	uint32_t work_count;
};

/* The part of a stream covered by work that was started under an annotation. While the coroutine of an annotation waits, others
 * start work on the same stream; then each uninterrupted part has its own span. */
struct recording_span {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t annotation; /* its first item */
	uint32_t track;
	uint32_t last_work;  /* number of the last work in it among that of the stream */
};

struct recording_devices {
	const struct ops_activities *activities; /* NULL: the recording has none, and the following members are not used */
	struct ops_builder *builder;
	uint32_t *strings;         /* string ids of activities->texts */
	int64_t from_wall_ns;      /* activities->start, in ns since the epoch */
	double rate;               /* rate of the wall clock relative to the collector's */
	uint32_t *calls;           /* indexes of the activities that are calls, in order of time */
	size_t call_count;
	size_t next_call;
	uint64_t last_id;          /* id of the last operator or range: 1, 2, … */
	struct ops_intern tids;    /* system ids of threads */
	OPS_ARRAY(struct recording_thread) threads; /* by id in tids */
	int64_t last_tid;          /* thread of the last call, because most calls come from the same thread */
	uint32_t last_thread;      /* its number; OPS_INTERN_NONE before the first call */
	struct recording_annotations annotations;
	OPS_ARRAY(struct recording_call) met;
	struct ops_intern streams; /* pid and tid of struct ops_track */
	OPS_ARRAY(struct recording_stream) stream_list; /* by id in streams */
	struct ops_intern span_keys; /* annotation and track */
	OPS_ARRAY(uint32_t) latest_spans; /* by id in span_keys */
	OPS_ARRAY(struct recording_span) spans;
	struct device_graphs graphs;
	struct ops_intern counter_keys; /* tracks of counters: uint16_t device */
	OPS_ARRAY(uint32_t) counter_tracks;
	struct ops_buffer metadata; /* members of the trace's metadata: a JSON object */
	struct ops_buffer text;    /* scratch */
};

/* These functions return false if out of memory. */
bool recording_devices_init(struct recording_devices *devices, const struct ops_recording *recording,
                            const struct ops_clock_map *clock, struct ops_builder *builder);
void recording_devices_release(struct recording_devices *devices);

/* Adds a thread of the recording. `ranges` are those of this thread, and empty. */
bool recording_devices_thread(struct recording_devices *devices, int64_t tid, uint32_t track,
                              struct recording_ranges *ranges);

/* Called when an operator or range begins on the thread of these ranges: assigns its id and adds it to the builder. `collective`
 * as `own_collective` in recording_range. Called in order of time. Returns its number in order of adding; OPS_NONE if out of memory, and then it
 * can be added again. */
uint32_t recording_devices_open(struct recording_devices *devices, struct recording_ranges *ranges,
                                struct ops_new_event *event, uint32_t collective);
/* Called when another coroutine begins to run on the thread of these ranges. If out of memory, it can be called again. */
bool recording_devices_switch(struct recording_devices *devices, struct recording_ranges *ranges,
                              const struct recording_running *running, int64_t time_ns);
/* Adds the calls that were made before a time. If out of memory, the next call of this function continues. */
bool recording_devices_until(struct recording_devices *devices, int64_t time_ns);
/* Adds everything else after all calls: work on streams, annotations, devices. If out of memory, the caller rewinds the builder
 * before the next attempt. */
bool recording_devices_finish(struct recording_devices *devices);

/* device_work.c: adds device work, after all calls. */
bool recording_devices_add_work(struct recording_devices *devices);
/* device_counters.c: adds the counters of devices. */
bool recording_devices_add_counters(struct recording_devices *devices);
/* Returns begin and end of an activity in ns since the epoch. */
void recording_devices_times(const struct recording_devices *devices, const struct ops_activity *activity,
                             struct ops_new_event *event);

/* Adds the description of the devices to the finished trace. */
enum ops_code recording_devices_describe(const struct recording_devices *devices, struct ops_trace *trace,
                                         struct ops_error *error);

#endif
