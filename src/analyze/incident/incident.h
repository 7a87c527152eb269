/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of an incident as read from its file, and the conclusions drawn from them and the trace.
 *
 *     incident_facts.c   the facts, from JSON
 *     incident_cause.c   what a thread waits for or does, and a sentence about the cause
 *     incident_samples.c  sampled stacks of the step, compared with those of other steps
 *     incident_report.c  the report: facts, cause, what differed, memory
 *     incident_list.c    the incidents of a directory
 *     incident_page.c    the report as a page of text or Markdown
 *     incident_overhead.c  the overhead of recording
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
#include "derive/python_samples.h"

#define INCIDENT_FRAMES_MAX 64u

#define INCIDENT_NATIVE_MAX 12u

/* A Python frame. Its texts are decoded and belong to the facts. */
struct incident_frame {
	struct ops_string file;
	struct ops_string function;
	int64_t line;
};

/* The stack of a thread, or a stack that was sampled `count` times. */
struct incident_stack {
	int64_t tid;
	struct ops_string name;
	bool is_main;
	bool has_gil;
	char state;
	int64_t system_call; /* -1: none */
	int64_t count;
	size_t frame_count;
	struct incident_frame frames[INCIDENT_FRAMES_MAX]; /* innermost first */
	size_t native_count;
	struct incident_frame native[INCIDENT_NATIVE_MAX]; /* frames of C code called by the innermost Python frame, innermost first; the file
	                                                    * is the library if the line is unknown */
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
	struct incident_stack end; /* where a signal, an exit or an exception occurred; without frames: unknown */
	OPS_ARRAY(struct incident_stack) threads;
	OPS_ARRAY(struct incident_stack) samples;
	struct ops_buffer texts; /* storage of the decoded texts */
};

/* Returns OPS_CORRUPT if the text is not a JSON object. The caller must release the facts in any case. */
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
	INCIDENT_IO,         /* a file, a pipe or the network: which of them is unknown */
	INCIDENT_DISK,       /* in the kernel, for a disk */
	INCIDENT_COLLECTS,   /* collects garbage */
	INCIDENT_UNKNOWN,
};
const char *incident_doing_name(enum incident_doing doing); /* name in JSON: "lock" */
const char *incident_doing_text(enum incident_doing doing); /* phrase: "waiting for a lock or another thread" */

/* Returns the number of outermost frames that only start the program or the thread (derive/program.h). */
size_t incident_stack_launchers(const struct incident_stack *stack);
enum incident_doing incident_stack_doing(const struct incident_stack *stack);
/* Returns the innermost frame of the program, the innermost frame if all are of libraries, or NULL if there are no
 * frames. */
const struct incident_frame *incident_stack_place(const struct incident_stack *stack);

/* The cause: what happened at which line. */
struct incident_cause {
	enum incident_doing doing;
	const char *kind; /* kind in JSON: that of `doing`, or "signal", "exception", … */
	struct incident_frame place; /* without a file: unknown */
	struct ops_buffer text;  /* a paragraph */
	struct ops_buffer title; /* a line */
};

/* Where a thread was by samples: the time of the step, and that of another step on average. */
struct incident_sampled_place {
	struct incident_frame place;
	enum incident_doing doing;
	double ns, usual_ns;
};

/* The sampled stacks of the thread of a step, in wall-clock time (derive/python_samples.h). */
struct incident_sampled {
	int64_t tid;
	size_t count, usual_count; /* samples of the step; of all others */
	size_t usual_steps;
	double total_ns, usual_total_ns; /* of the step; of another step on average */
	OPS_ARRAY(struct incident_sampled_place) places; /* those with most time beyond the usual first */
	struct ops_python_samples samples;               /* texts of the places */
};

/* Finds nothing if `trace` is NULL, has no samples, or does not have the step. Returns false if out of memory; released in any case. */
bool incident_sampled_find(const struct incident_facts *facts, const struct ops_trace *trace, struct incident_sampled *ret_sampled);
void incident_sampled_release(struct incident_sampled *sampled);
/* Returns the place with half or more of the time beyond the usual, or NULL if there is none or too few samples. */
const struct incident_sampled_place *incident_sampled_cause(const struct incident_sampled *sampled);
/* Returns the share of a total, 0 if that is 0. */
double incident_sampled_share(double ns, double total_ns);

/* Finds the cause. `outlier` explains the step by the trace; NULL: the trace does not explain it. Returns false if out
 * of memory. */
bool incident_cause_find(const struct incident_facts *facts, const struct ops_views *views, const struct view_outlier *outlier,
                         const struct incident_sampled *sampled, struct incident_cause *ret_cause);

/* Appends a time in UTC: "2026-11-23 10:45:12". */
void incident_moment_append(struct ops_buffer *out, int64_t time_ns);
/* Appends the overhead in the member "black_box" of a report: "0.4 % (0.2 to 0.6 %)". Appends nothing if it was not
 * measured. */
void incident_overhead_append(struct ops_buffer *out, struct ops_string json);
/* Appends a place with its unchanged path: "train.py:12". */
void incident_place_append(struct ops_buffer *out, const struct incident_frame *place);

#endif
