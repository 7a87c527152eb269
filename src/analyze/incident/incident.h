/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read of an incident's facts, and what is concluded from them and the trace.
 *
 *     incident_facts.c   the facts, from JSON
 *     incident_cause.c   what a thread waits for or does, and the cause in a sentence
 *     incident_report.c  the report: facts, cause, what differed, memory
 *     incident_list.c    the incidents of a directory
 *     incident_page.c    the report as a page of text or Markdown
 *     incident_overhead.c  what recording cost
 *     incident_table.c   a line for each of several reports
 */
#ifndef OPS_ANALYZE_INCIDENT_H
#define OPS_ANALYZE_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "analyze/views/view_step_stats.h"
#include "base/array.h"
#include "base/buffer.h"

#define INCIDENT_FRAMES_MAX 64u

/* A Python frame; texts are decoded and belong to the facts. */
struct incident_frame {
	struct ops_string file;
	struct ops_string function;
	int64_t line;
};

/* A thread, or an equal stack that was sampled `count` times. */
struct incident_stack {
	int64_t tid;
	struct ops_string name;
	bool is_main;
	bool has_gil;
	char state;
	int64_t system_call; /* -1 none */
	int64_t count;
	size_t frame_count;
	struct incident_frame frames[INCIDENT_FRAMES_MAX]; /* innermost first */
};

struct incident_facts {
	struct ops_string json;
	struct ops_string trigger;
	struct ops_string process, host, command;
	int64_t time_ns, pid, tid, rank, world_size, quiet_ns;
	bool has_step, step_goes_on;
	int64_t step, step_ns, usual_ns;
	bool has_over;
	int64_t over_ns, ran_ns, waited_ns, collecting_ns, major_faults, minor_faults;
	int64_t sample_count;
	int64_t rss_bytes, limit_bytes, oom_kills;
	struct ops_string signal_name;
	int64_t signal_address, exit_status;
	struct ops_string exception_type, exception_message;
	struct incident_stack end; /* of a signal, an exit or an exception: where; without frames: unknown */
	OPS_ARRAY(struct incident_stack) threads;
	OPS_ARRAY(struct incident_stack) samples;
	struct ops_buffer texts; /* what is decoded */
};

/* OPS_CORRUPT if it is not a JSON object. Released in any case. */
enum ops_code incident_facts_read(struct incident_facts *facts, struct ops_string json, struct ops_error *error);
void incident_facts_release(struct incident_facts *facts);

/* What a thread does. */
enum incident_doing {
	INCIDENT_RUNS,
	INCIDENT_SLEEPS,
	INCIDENT_LOCK,       /* waits for another thread */
	INCIDENT_GIL,        /* waits for the interpreter's lock */
	INCIDENT_LOADER,     /* waits for the workers of a data loader */
	INCIDENT_LOADS,      /* loads a batch itself */
	INCIDENT_COLLECTIVE, /* waits in a collective */
	INCIDENT_CHILD,      /* waits for a child process */
	INCIDENT_FILE,       /* reads or writes */
	INCIDENT_SOCKET,
	INCIDENT_DISK,       /* in the kernel, for a disk */
	INCIDENT_COLLECTS,   /* garbage */
	INCIDENT_UNKNOWN,
};
const char *incident_doing_name(enum incident_doing doing); /* "lock", in JSON */
const char *incident_doing_text(enum incident_doing doing); /* "waiting for a lock or another thread" */

enum incident_doing incident_stack_doing(const struct incident_stack *stack);
/* The innermost frame of the program; the innermost one if all are of libraries; NULL without frames. */
const struct incident_frame *incident_stack_place(const struct incident_stack *stack);

/* The cause: what happened at which line. */
struct incident_cause {
	enum incident_doing doing;
	const char *kind; /* in JSON; that of `doing`, or "signal", "exception", … */
	struct incident_frame place; /* without a file: unknown */
	struct ops_buffer text;  /* a paragraph */
	struct ops_buffer title; /* a line */
};

/* `outlier` explains the step by the trace, NULL: it does not. False when memory is out. */
bool incident_cause_find(const struct incident_facts *facts, const struct ops_views *views, const struct view_outlier *outlier,
                         struct incident_cause *ret_cause);

/* "2026-11-23 10:45:12", in UTC. */
void incident_moment_append(struct ops_buffer *out, int64_t time_ns);
/* "0.4 % (0.2 to 0.6 %)", of the member "black_box" of a report; nothing if it was not measured. */
void incident_overhead_append(struct ops_buffer *out, struct ops_string json);
/* "train.py:12", the path as it is. */
void incident_place_append(struct ops_buffer *out, const struct incident_frame *place);

#endif
