/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/watch.h: watching a program for incidents: slow steps, hangs, errors, memory that runs out, and its end.
 *
 *     ops_watch_start(&options, &error);
 *     for (…) {
 *             …
 *             ops_watch_step(number, 0);
 *     }
 *     ops_watch_stop();
 *
 * A separate thread looks at the program; it needs no lock of the interpreter, which it reads from outside (`read_stacks`). Each
 * incident becomes a directory (opstrobe/internal/incidents.h) with the last part of the recording and a report.
 *
 * The first part of this header is the layout of watch files: what a watched process keeps in its watch file (NAME.opwatch), a shared mapping, so that it is known
 * afterwards, however the process ended: who it is, which step it was in, where its threads were last, and which
 * signal killed it. docs/reference/recording-format.md describes it; whoever changes the layout raises OPS_WATCH_VERSION.
 *
 * Two write to it: the watching thread, and the handler of a fatal signal, which allocates nothing and takes no lock.
 */
#ifndef OPSTROBE_WATCH_H
#define OPSTROBE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/internal/shadow_steps.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_WATCH_MAGIC 0x4843574fu /* "OWCH" in memory order on little endian */
#define OPS_WATCH_VERSION 1u
#define OPS_WATCH_SUFFIX ".opwatch"

#define OPS_STACK_FRAMES 48u
#define OPS_WATCH_THREADS 16u

/* A Python frame. Texts end with a NUL and may be cut; the end of a path is what is kept. */
struct ops_stack_frame {
	uint32_t line; /* 0 unknown */
	char function[92];
	char file[224];
};

/* A thread: what the kernel says of it, and its Python frames, innermost first. */
struct ops_stack {
	int64_t tid; /* 0 unknown */
	uint32_t count;
	uint32_t is_cut;   /* there are more frames */
	uint32_t has_gil;  /* it holds the interpreter's lock */
	int32_t system_call; /* number of the one it is in, -1 none or unknown */
	char state;          /* of /proc: R running, S sleeping, D waiting for a disk, …; 0 unknown */
	char name[23];
	struct ops_stack_frame frames[OPS_STACK_FRAMES];
};

struct ops_watch_sample {
	int64_t time_ns; /* wall clock; 0: none */
	uint32_t count;
	uint32_t unused;
	struct ops_stack stacks[OPS_WATCH_THREADS];
};

struct ops_watch_page {
	uint32_t magic; /* written last */
	uint32_t version;
	uint32_t bytes; /* of this structure */
	uint32_t latest; /* index of the newest complete sample */
	int64_t pid;
	uint64_t start_time; /* of the process, as /proc/PID/stat says: another process of that number has another */
	int64_t started_ns;  /* of the watch, wall clock */
	char boot_id[40];
	char process_name[64];
	char host_name[256];
	char command[2048];
	char recording[1024]; /* path of the recording file, "" none */
	int32_t rank;         /* -1 none */
	int32_t world_size;
	int64_t main_tid;

	int64_t step;         /* the one under way, -1 unknown */
	int64_t step_tid;     /* the thread that makes them, 0 unknown */
	int64_t step_begin_ns; /* wall clock */
	int64_t step_median_ns;
	int64_t rss_bytes;
	int64_t rss_peak_bytes;
	int64_t memory_limit_bytes; /* of the control group, 0 none */
	int64_t oom_kills;          /* of the control group, at the start */

	uint32_t exits;       /* 1: by os._exit */
	int32_t exit_status;
	int32_t signal;       /* that killed it, 0 none */
	int32_t signal_code;
	uint64_t signal_address;
	int64_t signal_ns; /* wall clock */
	struct ops_stack end_stack; /* of the thread that the signal reached, or that ended the process */
	struct ops_watch_sample samples[2];
};

/* --- watching -------------------------------------------------------------------------------------------------------- */

/* What makes an incident; a bit of `triggers` each. */
#define OPS_TRIGGERS(X)                                                                                                 \
	X(SLOW_STEP, "slow_step")                                                                                       \
	X(HANG, "hang")                                                                                                 \
	X(EXCEPTION, "exception")                                                                                       \
	X(OOM, "oom")                                                                                                   \
	X(SIGNAL, "signal")                                                                                             \
	X(MEMORY, "memory")                                                                                             \
	X(REQUEST, "request")                                                                                           \
	X(EXIT, "exit")     /* os._exit; found afterwards */                                                            \
	X(KILLED, "killed") /* by SIGKILL or the like; found afterwards */

enum ops_trigger {
#define OPS_TRIGGER_ENUM(name, text) OPS_TRIGGER_##name,
	OPS_TRIGGERS(OPS_TRIGGER_ENUM)
#undef OPS_TRIGGER_ENUM
	OPS_TRIGGER_COUNT
};
const char *ops_trigger_name(enum ops_trigger trigger);
/* OPS_TRIGGER_COUNT if there is none of that name. */
enum ops_trigger ops_trigger_find(const char *name, size_t size);

/* Zeros mean the default. Texts are copied. */
struct ops_watch_options {
	const char *page;      /* path of the watch file; NULL: none */
	const char *incidents; /* the directory of incidents, which exists */
	const char *recording; /* path of the recording file; NULL: incidents have no trace */
	const char *process_name;
	const char *command;
	int32_t rank, world_size; /* rank -1: none */
	uint32_t triggers; /* a set of enum ops_trigger */
	double per_hour;   /* incidents, on average; default 3. As many may follow each other at once */
	uint64_t window_ns;   /* of the recording, that is kept of each; 0: all that there is */
	uint64_t min_excess_ns; /* of a slow step, see slow_steps.h */
	uint64_t hang_ns;       /* without a step or an operator; default 120 s */
	uint64_t rss_limit_bytes; /* 0: 95 % of what the control group allows */
	uint64_t max_bytes;     /* of all incidents in the directory; default 2 GiB */
	size_t (*read_stacks)(struct ops_stack *ret_stacks, size_t capacity); /* of all threads; NULL: none */
	void (*read_own_stack)(struct ops_stack *ret_stack); /* also in the handler of a signal */
	void (*set_detail)(enum ops_detail detail); /* sets how much is recorded; NULL: there are no shadow steps. Must not call these functions */
	uint32_t budget_ppm; /* of a step, in millionths: beyond it the detail is reduced; 0: it stays as it is */
};

/* One at a time in a process: OPS_STATE. From the thread that is called the main one. */
enum ops_code ops_watch_start(const struct ops_watch_options *options, struct ops_error *error);
/* Ends it. The watch file is removed: the process ends well, or nobody watches any more. */
void ops_watch_stop(void);
/* Whether this process is watched. */
bool ops_watch_is_on(void);
/* The recording goes on in another file, NULL: in none. */
void ops_watch_set_recording(const char *path);

/* The calling thread has ended step `number`; the next one begins. `end_ns` is the moment of its end on CLOCK_MONOTONIC, if that was not now;
 * what the caller did since then counts as part of what recording costs. Returns whether it was a shadow step. */
bool ops_watch_step(int64_t number, int64_t end_ns);
/* The length beyond which a step is slow at present, in nanoseconds; infinite while that is unknown. */
double ops_watch_limit_ns(void);
/* What follows belongs to no step, as between two epochs. */
void ops_watch_step_break(void);
/* A garbage collection begins or ends. */
void ops_watch_collection(bool begins);
/* Makes an incident, on the calling thread, which may be about to end. `members` are members of the facts, JSON without the
 * braces, such as "\"exception\": {…}". `ret_directory`, of PATH_MAX bytes, may be NULL; it is empty if the trigger is off or there were
 * too many incidents. */
enum ops_code ops_watch_trigger(enum ops_trigger trigger, const char *members, size_t size, char *ret_directory,
                                struct ops_error *error);
/* The process is about to end by _exit. */
void ops_watch_exit(int status);

#ifdef __cplusplus
}
#endif
#endif
