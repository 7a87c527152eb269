/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/watch.h: watches a program for incidents: slow steps, hangs, errors, lack of memory, and abnormal ends.
 *
 *     ops_watch_start(&options, &error);
 *     for (…) {
 *             …
 *             ops_watch_step(number, 0);
 *     }
 *     ops_watch_stop();
 *
 * A separate thread watches the program. It does not need the GIL: it reads the interpreter from outside (`read_stacks`). Each
 * incident becomes a directory (opstrobe/internal/incidents.h) with the last part of the recording and a report.
 *
 * The first part of this header is the layout of watch files (NAME.opwatch). A watch file is a shared mapping in which a watched
 * process keeps its identity, its current step, where its threads were last, and the signal that killed it, so that they are
 * known however the process ends. docs/reference/recording-format.md describes the format; a change of the layout must increase
 * OPS_WATCH_VERSION.
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
#define OPS_WATCH_VERSION 2u
#define OPS_WATCH_SUFFIX ".opwatch"

#define OPS_STACK_FRAMES 48u
#define OPS_WATCH_THREADS 16u

/* A Python frame. Texts end with a NUL and may be truncated; of a path, the end is kept. */
struct ops_stack_frame {
	uint32_t line; /* 0: unknown */
	char function[92];
	char file[224];
};

/* A thread: its state in the kernel, and its Python frames, innermost first. */
struct ops_stack {
	int64_t tid; /* 0: unknown */
	uint32_t count;
	uint32_t is_cut;   /* there are more frames */
	uint32_t has_gil;  /* the thread holds the GIL */
	int32_t system_call; /* number of the current system call; -1: none or unknown */
	char state;          /* state in /proc: R running, S sleeping, D waiting for a disk, …; 0: unknown */
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
	uint64_t start_time; /* of the process, as in /proc/PID/stat: identifies the process if its pid is reused */
	int64_t started_ns;  /* start of the watch, wall clock */
	char boot_id[40];
	char process_name[64];
	char host_name[256];
	char command[2048];
	char recording[1024]; /* path of the recording file; "": none */
	char control_group[1024]; /* folder of the control group that limits the memory; "": none */
	int32_t rank;         /* -1: none */
	int32_t world_size;
	int64_t main_tid;

	int64_t step;         /* current step; -1: unknown */
	int64_t step_tid;     /* thread that makes the steps; 0: unknown */
	int64_t step_begin_ns; /* wall clock */
	int64_t step_median_ns;
	int64_t rss_bytes;
	int64_t rss_peak_bytes;
	int64_t memory_limit_bytes; /* of the control group; 0: none */
	int64_t oom_kills;          /* of the control group, at the start */

	uint32_t exits;       /* 1: the process called os._exit */
	int32_t exit_status;
	int32_t signal;       /* signal that killed the process; 0: none */
	int32_t signal_code;
	uint64_t signal_address;
	int64_t signal_ns; /* wall clock */
	struct ops_stack end_stack; /* stack of the thread that the signal reached, or that ended the process */
	struct ops_watch_sample samples[2];
};

/* --- watching -------------------------------------------------------------------------------------------------------- */

/* The triggers of an incident; each has a bit of `triggers`. */
#define OPS_TRIGGERS(X)                                                                                                 \
	X(SLOW_STEP, "slow_step")                                                                                       \
	X(HANG, "hang")                                                                                                 \
	X(EXCEPTION, "exception")                                                                                       \
	X(OOM, "oom")                                                                                                   \
	X(SIGNAL, "signal")                                                                                             \
	X(MEMORY, "memory")                                                                                             \
	X(REQUEST, "request")                                                                                           \
	X(EXIT, "exit")     /* os._exit; detected afterwards */                                                            \
	X(KILLED, "killed") /* by SIGKILL or the like; detected afterwards */

enum ops_trigger {
#define OPS_TRIGGER_ENUM(name, text) OPS_TRIGGER_##name,
	OPS_TRIGGERS(OPS_TRIGGER_ENUM)
#undef OPS_TRIGGER_ENUM
	OPS_TRIGGER_COUNT
};
const char *ops_trigger_name(enum ops_trigger trigger);
/* Returns OPS_TRIGGER_COUNT if there is no trigger of that name. */
enum ops_trigger ops_trigger_find(const char *name, size_t size);

/* Zero values select the defaults. Texts are copied. */
struct ops_watch_options {
	const char *page;      /* path of the watch file; NULL: none */
	const char *incidents; /* an existing directory for incidents */
	const char *recording; /* path of the recording file; NULL: incidents have no trace */
	const char *process_name;
	const char *command;
	int32_t rank, world_size; /* rank -1: none */
	uint32_t triggers; /* a set of enum ops_trigger */
	double per_hour;   /* limit of incidents per hour on average, which is also the largest burst; default 3 */
	uint64_t window_ns;   /* length of the recording that each incident keeps; 0: everything available */
	uint64_t min_excess_ns; /* for slow steps, see slow_steps.h */
	uint64_t hang_ns;       /* time without a step or operator; default 120 s */
	uint64_t rss_limit_bytes; /* 0: 95 % of the limit of the control group */
	uint64_t max_bytes;     /* limit of all incidents in the directory; default 2 GiB */
	size_t (*read_stacks)(struct ops_stack *ret_stacks, size_t capacity); /* reads those of all threads; NULL: no stacks */
	const char *read_native; /* path of the program that reads native stacks of processes that hang (python/ext/native_stacks.c); NULL: none */
	void (*read_own_stack)(struct ops_stack *ret_stack); /* also called in signal handlers */
	/* Sets how much is recorded; whether frees of known allocations are even if allocations are not, in shadow steps; and whether
	 * operators are even if the detail has none, in a step that takes too long. NULL: no shadow steps. Must not call functions of this
	 * file. */
	void (*set_detail)(enum ops_detail detail, bool frees, bool operators);
	int64_t (*read_threads_ns)(void); /* returns the CPU time of the recorder's threads, except for that of the watch; NULL: none */
	uint32_t budget_ppm; /* overhead in millionths of a step beyond which the detail is reduced; 0: it does not change */
};

/* A process can be watched once at a time: OPS_STATE. The calling thread is named the main thread. */
enum ops_code ops_watch_start(const struct ops_watch_options *options, struct ops_error *error);
/* Stops watching and removes the watch file. */
void ops_watch_stop(void);
/* Returns whether this process is watched. */
bool ops_watch_is_on(void);
/* Recording continues in another file; NULL: in none. */
void ops_watch_set_recording(const char *path);

/* Marks the end of step `number` on the calling thread and the begin of the next one. `end_ns` is the end on CLOCK_MONOTONIC, if
 * it was not now; the time since then counts as overhead of recording. Returns whether it was a shadow step. */
bool ops_watch_step(int64_t number, int64_t end_ns);
/* Returns the detail of steps that are not shadow steps. Takes no lock. */
enum ops_detail ops_watch_usual_detail(void);
/* Returns the number of steps, 1 or more, to which a mark applies: where marks of tiny steps would exceed the budget, several steps
 * are recorded as one. Takes no lock. */
uint32_t ops_watch_group(void);
/* Sets that number, for tests and benchmarks. */
void ops_watch_set_group(uint32_t group);
/* Records a range for the `count` steps that ended now on the calling thread, and marks their end; steps are numbered from 0, and the
 * range is named after the first one. A shadow step also gets a range, so that it is not mistaken for a gap. Returns true about once
 * a second. */
bool ops_watch_mark_step(uint64_t begin_ticks, uint64_t end_ticks, uint32_t count);
/* Returns whether outermost calls of modules are compared, so that their ends are to be marked. Takes no lock. */
bool ops_watch_wants_calls(void);
/* Marks that an outermost call of a module ends now on the calling thread. While the program marks no steps, the overhead is measured by
 * the calls of the thread that made the first one; that of another thread counts once this one has made none for two seconds. A shadow
 * call gets a range like a shadow step. */
void ops_watch_call(uint64_t begin_ticks, int64_t begin_ns);
/* Returns the length beyond which a step is slow now, in nanoseconds; infinite while unknown. */
double ops_watch_limit_ns(void);
/* Marks that the following time belongs to no step, as between two epochs. */
void ops_watch_step_break(void);
/* Marks the begin or end of a garbage collection. */
void ops_watch_collection(bool begins);
/* Makes an incident on the calling thread, which may be about to end. `members` are further members of the facts, JSON without
 * the braces, such as "\"exception\": {…}". `ret_directory`, of PATH_MAX bytes, may be NULL; it is empty if the trigger is off or
 * there were too many incidents. */
enum ops_code ops_watch_trigger(enum ops_trigger trigger, const char *members, size_t size, char *ret_directory,
                                struct ops_error *error);
/* Marks that the process is about to end by _exit. */
void ops_watch_exit(int status);

#ifdef __cplusplus
}
#endif
#endif
