/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches a program for incidents; see opstrobe/internal/watch.h.
 *
 * The watching thread sleeps until the current step would be too long, at most a second:
 *
 *     step ends in time        ─▶ nothing; the next limit
 *     step is beyond its limit ─▶ samples of its thread's stack until it ends; then, if it was slow, an incident
 *     no progress for long     ─▶ an incident: hang
 *     each second              ─▶ writes all stacks and memory to the watch file, and the overhead to the recording file
 *
 * The lock is held for moments only, so that the program's threads, which hold the GIL, never wait for it.
 */
#include <opstrobe/internal/watch.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/incidents.h>
#include <opstrobe/internal/progress.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/internal/slow_steps.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/record.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/memory_group.h"
#include "base/thread.h"
#include "record/spill.h"
#include "watch/watch_facts.h"
#include "watch/watch_native.h"
#include "watch/watch_page.h"

#define SAMPLE_NS INT64_C(20000000) /* between two samples of a step that takes too long; increases later */
#define SAMPLES_DENSE 500u          /* number of samples after which the interval increases */
#define HANG_NS (120 * OPS_SECOND_NS)
#define PER_HOUR 3.0
#define FULL_SHARE 0.95 /* of the memory limit */
#define FREE_SHARE 0.85 /* below this share, the limit can be reached again */
#define STEP_NAME "ProfilerStep#"
#define STEP_NAME_ROOM (sizeof(STEP_NAME) + 20)
#define UNSEEN_NS_MIN (OPS_SECOND_NS / 2) /* the threads work now and then */
#define UNSEEN_KEPT 0.98 /* weight of earlier seconds in what shadow steps do not show */
#define CALL_NS_MAX (2 * OPS_SECOND_NS) /* after this time, calls of modules of another thread are compared */
#define MARK_NS 2500.0   /* that marking a step takes, between operators that evict it from the caches */
#define MARK_SHARE 10    /* marks take at most this fraction of the budget */
#define GROUP_NS_MAX 1e7 /* steps of this length are always marked one by one */
#define GROUP_MAX 1024u
#define THREADS_SHARE 0.002 /* what the recorder's threads take, until it is known */
#define PPM 1e6
#define WAITED_STEP_NS 20000000 /* in shorter steps, reading the waits of the thread would take too much of them */
#define STALLED_NS_MAX OPS_SECOND_NS /* longer steps are slow even if they only waited for a processor */
#define STALLED_SHARE 0.9            /* of what is beyond the limit, that these waits take */
#define LATE_PAUSE 50                /* operators of slow steps are recorded at most one in this many parts of the time */
#define SHADOW_NS_MAX (10 * OPS_SECOND_NS) /* after this time a shadow step is recorded */

/* How much of the time something takes. Earlier times count less. */
struct time_share {
	double spent_ns, time_ns;
	int64_t last_spent_ns, last_ns; /* at the last update; 0: none */
};

struct watcher {
	struct ops_watch_options options;
	char incidents[PATH_MAX], page_path[PATH_MAX], native[PATH_MAX];
	pid_t pid;
	pthread_t thread;
	struct ops_watch_page *page;

	sem_t changed; /* posted when something is to be done, perhaps in a signal handler */
	volatile sig_atomic_t requested;

	pthread_mutex_t lock; /* protects the following members */
	bool stop;
	char recording[sizeof(((struct ops_watch_page *)0)->recording)];
	struct ops_slow_steps steps;
	uint64_t step_count; /* relaxed, because ops_watch_wants_calls reads it without the lock */
	int64_t wall_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	int64_t step;      /* current step; -1: none */
	int64_t begin_ns;  /* begin of the current step; monotonic, 0: no step */
	int64_t step_tid;
	bool has_slow;     /* a step that has ended was slow and has not been reported: */
	struct watch_step slow;
	bool collecting;
	int64_t collect_begin_ns, collected_ns;
	double tokens;
	int64_t tokens_ns;
	uint64_t suppressed[OPS_TRIGGER_COUNT];
	struct ops_shadow_steps shadow;
	enum ops_detail detail; /* detail that is recorded now */
	bool frees;             /* those of known allocations are recorded now */
	bool operators;         /* operators are recorded in addition, because the step is beyond its limit */
	int64_t operators_ns;   /* start of that */
	int64_t no_operators_ns; /* not again until then */
	uint32_t group;         /* steps from one mark to the next; relaxed */
	bool is_due;            /* the detail is to be judged */
	int64_t detail_ns;      /* start of the comparable part of the current step; 0: it cannot be compared */
	int64_t waited_ns;      /* waits of the step's thread for a processor until that start */
	int64_t waited_tid;     /* that thread; 0: unknown */
	int64_t call_tid;       /* thread whose outermost calls of modules are compared; 0: none yet */
	int64_t call_ns;        /* end of its last one */

	/* Used only by the thread that marks steps. */
	int64_t next_step;
	int64_t chore_ns;

	pthread_mutex_t writing; /* one incident at a time */

	/* Used only by the watching thread. */
	struct watch_samples samples;
	uint64_t sampled_step; /* step_count of the step that is sampled; 0: none */
	struct watch_task over_start;
	int64_t woke_late_ns; /* how much later than planned the thread ran last */
	int64_t over_begin_ns, over_collected_ns, next_sample_ns;
	int64_t next_look_ns;
	uint64_t progress;
	int64_t progress_ns;
	bool hangs; /* reported already */
	bool full;  /* reported already */
	int64_t memory_failures;
	struct ops_stack stack; /* too large for a stack */
	struct ops_shadow_steps measured; /* likewise: a copy */
	uint64_t noted_pairs;          /* of this detail */
	enum ops_detail noted_detail;
	/* The count of events of a detail: */
	enum ops_detail counted_detail;
	uint64_t counted_recorded, counted_slots; /* where it began; 0 recorded: it has not begun */
	int64_t counted_ns;
	int64_t counted_tid, counted_waited_ns; /* the thread of the steps, and its waits for a processor before that */
	bool is_counted;                        /* it is over */
	struct time_share threads; /* the time that the threads of the recorder take */
};

static struct watcher *watcher; /* one per process; set by ops_watch_start */

/* A forked child is not watched. */
static void watcher_forked(void)
{
	__atomic_store_n(&watcher, NULL, __ATOMIC_RELEASE);
}

static void watcher_at_fork(void)
{
	pthread_atfork(NULL, NULL, watcher_forked);
}

/* Returns NULL if the process is not watched. */
static struct watcher *current(void)
{
	return __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);
}

bool ops_watch_is_on(void)
{
	return current() != NULL;
}

/* --- incidents -------------------------------------------------------------------------------------------------------- */

/* Returns whether another incident may be reported now; if not, counts it. */
static bool watcher_may_report(struct watcher *of, enum ops_trigger trigger)
{
	double per_hour = of->options.per_hour > 0 ? of->options.per_hour : PER_HOUR;
	int64_t now_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	bool may;

	if (trigger != OPS_TRIGGER_REQUEST && !(of->options.triggers & 1u << trigger))
		return false;
	pthread_mutex_lock(&of->lock);
	of->tokens = fmin(fmax(per_hour, 1), of->tokens + per_hour * (double)(now_ns - of->tokens_ns) / 3600e9);
	of->tokens_ns = now_ns;
	may = of->tokens >= 1;
	if (may)
		of->tokens -= 1;
	else
		of->suppressed[trigger]++;
	pthread_mutex_unlock(&of->lock);
	return may;
}

/* A report on exhausted memory needs memory, so a limit of the address space is raised to its hard limit. */
static void lift_address_limit(struct rlimit *ret_before)
{
	struct rlimit most;

	getrlimit(RLIMIT_AS, ret_before);
	most = *ret_before;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_AS, &most);
}

/* Native stacks show where a thread that makes no progress is. Other incidents are over, or must be reported at once. */
static void watcher_read_native(const struct watcher *of, struct watch_facts *facts, struct ops_buffer *out)
{
	if (of->native[0] && (facts->trigger == OPS_TRIGGER_HANG || facts->trigger == OPS_TRIGGER_REQUEST))
		watch_native_read(of->native, out);
	facts->native = (struct ops_string){out->bytes, out->size};
}

/* Sets the common facts and the current threads, and writes the incident. */
static enum ops_code watcher_report(struct watcher *of, struct watch_facts *facts, char *ret_directory, struct ops_error *error)
{
	struct ops_watch_sample *threads = facts->threads ? NULL : ops_alloc_zeroed(1, sizeof(*threads));
	struct ops_trace *trace = NULL;
	struct watch_memory memory;
	struct ops_buffer text = {0}, native = {0};
	char recording[sizeof(of->recording)];
	uint64_t suppressed[OPS_TRIGGER_COUNT];
	struct rlimit limit;
	enum ops_code code;

	if (!threads && !facts->threads)
		return ops_fault_memory(error);
	facts->page = of->page;
	if (!facts->time_ns)
		facts->time_ns = ops_clock_read_ns(CLOCK_REALTIME);
	if (threads && of->options.read_stacks)
		threads->count = (uint32_t)of->options.read_stacks(threads->stacks, OPS_WATCH_THREADS);
	if (threads)
		facts->threads = threads;
	watch_memory_read(&memory);
	facts->memory = &memory;
	pthread_mutex_lock(&of->lock);
	memcpy(recording, of->recording, sizeof(recording));
	memcpy(suppressed, of->suppressed, sizeof(suppressed));
	pthread_mutex_unlock(&of->lock);
	facts->suppressed = suppressed;
	watcher_read_native(of, facts, &native);
	watch_facts_write(facts, &text);
	ops_buffer_release(&native);
	pthread_mutex_lock(&of->writing);
	if (facts->trigger == OPS_TRIGGER_OOM)
		lift_address_limit(&limit);
	if (recording[0])
		ops_trace_recover_last(recording, of->options.window_ns, &trace, NULL, error); /* if that fails, the report is
		                                                                                * still written */
	code = text.failed ? ops_fault_memory(error)
	                   : ops_incident_write(of->incidents, text.bytes, text.size, trace, facts->time_ns, of->pid,
	                                        of->options.max_bytes, ret_directory, error);
	if (code == OPS_NO_MEMORY && trace && !text.failed) { /* lack of memory may be the cause of the incident */
		ops_trace_unref(trace);
		trace = NULL;
		code = ops_incident_write(of->incidents, text.bytes, text.size, NULL, facts->time_ns, of->pid, of->options.max_bytes,
		                          ret_directory, error);
	}
	if (facts->trigger == OPS_TRIGGER_OOM)
		setrlimit(RLIMIT_AS, &limit);
	pthread_mutex_unlock(&of->writing);
	ops_trace_unref(trace);
	ops_buffer_release(&text);
	ops_free(threads);
	return code;
}

/* Returns the current step. */
static struct watch_step watcher_step_now(struct watcher *of, int64_t *ret_tid)
{
	struct watch_step step = {.number = -1, .goes_on = true};

	pthread_mutex_lock(&of->lock);
	if (of->begin_ns) {
		step.number = of->step;
		step.duration_ns = ops_clock_read_ns(CLOCK_MONOTONIC) - of->begin_ns;
		step.median_ns = (int64_t)of->steps.median_ns;
	}
	*ret_tid = of->step_tid ? of->step_tid : of->page->main_tid;
	pthread_mutex_unlock(&of->lock);
	return step;
}

/* --- steps that take too long ------------------------------------------------------------------------------------------ */

static void sampling_start(struct watcher *of, uint64_t step, int64_t now_ns)
{
	watch_samples_clear(&of->samples);
	of->sampled_step = step;
	of->over_begin_ns = now_ns;
	of->next_sample_ns = now_ns;
	pthread_mutex_lock(&of->lock);
	of->over_collected_ns = of->collected_ns + (of->collecting ? now_ns - of->collect_begin_ns : 0);
	pthread_mutex_unlock(&of->lock);
	watch_task_read(of->page->step_tid, &of->over_start);
}

static bool watcher_read_stack(struct watcher *of, int64_t tid)
{
	struct ops_watch_sample *room = &of->page->samples[!of->page->latest];
	size_t count;

	if (!of->options.read_stacks)
		return false;
	room->time_ns = 0; /* not complete */
	count = of->options.read_stacks(room->stacks, OPS_WATCH_THREADS);
	room->count = (uint32_t)count;
	room->time_ns = ops_clock_read_ns(CLOCK_REALTIME);
	__atomic_store_n(&of->page->latest, !of->page->latest, __ATOMIC_RELEASE);
	for (size_t i = 0; i < count; i++)
		if (room->stacks[i].tid == tid) {
			of->stack = room->stacks[i];
			return true;
		}
	return false;
}

static void watcher_sample(struct watcher *of, int64_t now_ns)
{
	bool collecting = __atomic_load_n(&of->collecting, __ATOMIC_RELAXED);
	int64_t every_ns = SAMPLE_NS;

	if (now_ns < of->next_sample_ns)
		return;
	if (watcher_read_stack(of, of->page->step_tid))
		watch_samples_add(&of->samples, &of->stack, collecting);
	for (uint32_t taken = of->samples.total; taken >= SAMPLES_DENSE && every_ns < OPS_SECOND_NS; taken /= 2)
		every_ns *= 2;
	of->next_sample_ns = now_ns + every_ns;
}

/* Collects what the step's thread did after the limit. */
static void sampling_finish(struct watcher *of, struct watch_facts *facts, struct watch_task *over, int64_t now_ns)
{
	struct watch_task end;

	if (!of->sampled_step)
		return;
	watch_task_read(of->page->step_tid, &end);
	*over = (struct watch_task){end.ran_ns - of->over_start.ran_ns, end.waited_ns - of->over_start.waited_ns,
	                            end.minor_faults - of->over_start.minor_faults, end.major_faults - of->over_start.major_faults};
	facts->samples = &of->samples;
	facts->over = over;
	facts->over_ns = now_ns - of->over_begin_ns;
	pthread_mutex_lock(&of->lock);
	facts->collecting_ns = of->collected_ns - of->over_collected_ns;
	if (of->collecting)
		facts->collecting_ns += now_ns - of->collect_begin_ns;
	pthread_mutex_unlock(&of->lock);
}

/* Returns whether a step passed its limit only because others had the processors, for less than a second: the program cannot change
 * that. Without samples, this thread did not get one either. */
static bool is_stalled(const struct watcher *of, const struct watch_facts *facts)
{
	int64_t waited_ns = facts->over ? facts->over->waited_ns : of->woke_late_ns;

	return facts->step->duration_ns < STALLED_NS_MAX &&
	       (double)waited_ns >= STALLED_SHARE * (double)(facts->step->duration_ns - facts->step->limit_ns);
}

static void watcher_report_slow(struct watcher *of, const struct watch_step *step)
{
	struct watch_facts facts = {.trigger = OPS_TRIGGER_SLOW_STEP, .step = step, .tid = of->page->step_tid};
	struct watch_task over;
	struct ops_error error;

	sampling_finish(of, &facts, &over, ops_clock_read_ns(CLOCK_MONOTONIC));
	if (is_stalled(of, &facts))
		return;
	if (facts.samples && facts.samples->total)
		facts.threads = &of->page->samples[of->page->latest]; /* where the threads were, because the step has ended */
	if (watcher_may_report(of, OPS_TRIGGER_SLOW_STEP))
		watcher_report(of, &facts, NULL, &error);
}

/* --- overhead of recording ---------------------------------------------------------------------------------------------- */

/* The lock must be held. */
static void watcher_set_detail(struct watcher *of, enum ops_detail detail, bool operators)
{
	bool frees = of->shadow.detail >= OPS_DETAIL_ALLOCATIONS;

	if (detail == of->detail && frees == of->frees && operators == of->operators)
		return;
	of->detail = detail;
	of->frees = frees;
	of->operators = operators;
	of->options.set_detail(detail, frees, operators);
}

/* The lock must be held. From here on, the operators of a step that is beyond its limit are recorded, whatever the budget. Steps that
 * come back, such as evaluations, are not recorded so each time. */
static void watcher_record_late(struct watcher *of, int64_t now_ns)
{
	if (!of->options.set_detail || !of->shadow.budget_ppm || of->operators || of->detail == OPS_DETAIL_ALL || now_ns < of->no_operators_ns)
		return;
	of->operators_ns = now_ns;
	watcher_set_detail(of, of->detail, true);
}

/* The lock must be held. */
static void watcher_end_late(struct watcher *of, int64_t now_ns)
{
	if (!of->operators)
		return;
	of->no_operators_ns = now_ns + LATE_PAUSE * (now_ns - of->operators_ns);
	watcher_set_detail(of, of->detail, false);
}

/* The lock must be held. Ends a shadow step that takes so long that it is recorded from here on. */
static void watcher_end_shadow(struct watcher *of)
{
	if (of->options.set_detail)
		watcher_set_detail(of, ops_shadow_steps_spoil(&of->shadow), of->operators);
}

/* The lock must be held. Adds a step, and wakes the watching thread if the detail can be judged. */
static enum ops_detail watcher_compare(struct watcher *of, uint64_t duration_ns, uint64_t between_ns)
{
	uint64_t pairs = of->shadow.pairs_since, recorded = of->shadow.recorded;
	enum ops_detail next = ops_shadow_steps_end(&of->shadow, duration_ns, between_ns);

	if ((of->shadow.pairs_since != pairs && ops_shadow_steps_is_due(&of->shadow)) ||
	    (of->shadow.recorded != recorded && ops_shadow_steps_is_counted(&of->shadow))) {
		of->is_due = true;
		sem_post(&of->changed);
	}
	return next;
}

/* The lock must be held. Once only steps are recorded, tiny ones are marked in groups, so that marks do not exceed the budget. */
static void watcher_choose_group(struct watcher *of)
{
	double budget_ppm = of->shadow.budget_ppm, wanted_ns = 0, now_ns = of->steps.median_ns;
	uint32_t group = 1;

	if (now_ns <= 0)
		return;
	if (budget_ppm > 0 && of->shadow.detail == OPS_DETAIL_STEPS)
		wanted_ns = fmin(GROUP_NS_MAX, MARK_NS * MARK_SHARE * PPM / budget_ppm);
	if (of->group > 1 && now_ns >= wanted_ns / 2 && now_ns <= 4 * wanted_ns)
		return; /* a change makes the lengths of earlier groups useless */
	while (group < GROUP_MAX && group * now_ns / of->group < wanted_ns)
		group *= 2;
	if (group == of->group)
		return;
	__atomic_store_n(&of->group, group, __ATOMIC_RELAXED);
	ops_slow_steps_restart(&of->steps);
}

/* The lock must be held. Returns the time of the step that ended in which its thread was ready to run and others had the processors:
 * on a busy machine, steps differ by more than what recording adds. */
static int64_t watcher_waited(struct watcher *of, int64_t duration_ns)
{
	int64_t before_ns = of->waited_ns;
	bool is_known = of->waited_tid == of->step_tid;
	struct watch_task task;

	of->waited_tid = 0;
	if (duration_ns < WAITED_STEP_NS)
		return 0;
	watch_task_read(of->step_tid, &task);
	of->waited_ns = task.waited_ns;
	of->waited_tid = of->step_tid;
	return is_known && task.waited_ns > before_ns && task.waited_ns - before_ns < duration_ns ? task.waited_ns - before_ns : 0;
}

/* Called with the lock held, between two steps or groups of `count` steps. */
static void watcher_shadow_step(struct watcher *of, int64_t end_ns, uint32_t count)
{
	int64_t duration_ns = of->detail_ns ? end_ns - of->detail_ns : 0, now_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	enum ops_detail next, before = of->detail;

	duration_ns = (duration_ns - watcher_waited(of, duration_ns)) / count;
	next = watcher_compare(of, duration_ns > 0 ? (uint64_t)duration_ns : 0, (uint64_t)(now_ns - end_ns) / count);
	watcher_end_late(of, now_ns);
	watcher_set_detail(of, next, false);
	watcher_choose_group(of);
	of->detail_ns = of->detail == before ? now_ns : ops_clock_read_ns(CLOCK_MONOTONIC);
}

/* Continues a share with the time taken so far, unless little time has passed. Returns it; 0 at the first call. */
static double time_share_update(struct time_share *share, int64_t spent_ns)
{
	int64_t passed_ns = share->last_ns ? ops_clock_read_ns(CLOCK_MONOTONIC) - share->last_ns : 0;

	if (passed_ns >= UNSEEN_NS_MIN) {
		share->spent_ns = share->spent_ns * UNSEEN_KEPT + (double)(spent_ns - share->last_spent_ns);
		share->time_ns = share->time_ns * UNSEEN_KEPT + (double)passed_ns;
	}
	if (passed_ns >= UNSEEN_NS_MIN || !share->last_ns) {
		share->last_spent_ns = spent_ns;
		share->last_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	}
	return share->time_ns > 0 ? share->spent_ns / share->time_ns : 0;
}

/* Returns the share of the time that the recorder takes in shadow steps as well. */
static double watcher_unseen_share(struct watcher *of)
{
	int64_t threads_ns = ops_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + (of->options.read_threads_ns ? of->options.read_threads_ns() : 0);

	double marks = of->shadow.unit == OPS_OVERHEAD_STEP && of->steps.median_ns > 0 ? MARK_NS / of->steps.median_ns : 0;

	return time_share_update(&of->threads, threads_ns) + marks;
}

/* The lock must be held. Begins to count the events of a detail. */
static void watcher_begin_count(struct watcher *of, uint64_t slots)
{
	struct watch_task task;

	of->counted_recorded = of->shadow.recorded;
	of->counted_slots = slots;
	of->counted_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	of->counted_tid = of->step_count ? of->step_tid : of->call_tid;
	watch_task_read(of->counted_tid, &task);
	of->counted_waited_ns = task.waited_ns;
	of->is_counted = false;
}

/* The lock must be held. Judges the detail by the events that were counted. The length of a step is without waits for a processor. */
static void watcher_end_count(struct watcher *of, uint64_t slots)
{
	double passed_ns = (double)(ops_clock_read_ns(CLOCK_MONOTONIC) - of->counted_ns), length_ns = of->shadow.length_ns, waited_ns;
	uint64_t steps = of->shadow.recorded - of->counted_recorded;
	struct watch_task task;

	watch_task_read(of->counted_tid, &task);
	waited_ns = (double)(task.waited_ns - of->counted_waited_ns);
	if (length_ns < WAITED_STEP_NS && waited_ns > 0 && waited_ns < passed_ns)
		length_ns *= 1 - waited_ns / passed_ns;
	of->is_counted = true;
	ops_shadow_steps_expect(&of->shadow, (double)(slots - of->counted_slots) / (double)steps, length_ns,
	                        fmax(THREADS_SHARE, watcher_unseen_share(of)));
}

/* Counts the events in some steps of each detail, and reduces the detail if they take too much. */
static void watcher_count_events(struct watcher *of)
{
	uint64_t slots = ops_recording_slots(), recorded;
	enum ops_detail detail;

	pthread_mutex_lock(&of->lock);
	recorded = of->shadow.recorded;
	detail = of->shadow.detail;
	if (detail != of->counted_detail || recorded < of->counted_recorded) {
		of->counted_detail = detail;
		of->counted_recorded = 0;
	}
	if (!of->counted_recorded && recorded >= OPS_SHADOW_COUNTED_FIRST)
		watcher_begin_count(of, slots);
	else if (of->counted_recorded && !of->is_counted && recorded >= of->counted_recorded + OPS_SHADOW_COUNTED)
		watcher_end_count(of, slots);
	pthread_mutex_unlock(&of->lock);
}

static void watcher_measure(struct watcher *of)
{
	struct ops_overhead overhead;
	double unseen;
	int64_t begin_ns;

	if (!of->options.set_detail)
		return;
	watcher_count_events(of);
	pthread_mutex_lock(&of->lock);
	begin_ns = of->shadow.unit == OPS_OVERHEAD_CALL ? of->call_ns : of->begin_ns;
	if (begin_ns && ops_clock_read_ns(CLOCK_MONOTONIC) - begin_ns > SHADOW_NS_MAX)
		watcher_end_shadow(of);
	of->is_due = false;
	of->measured = of->shadow;
	unseen = watcher_unseen_share(of);
	pthread_mutex_unlock(&of->lock);
	if (of->measured.pairs_since == of->noted_pairs && of->measured.detail == of->noted_detail)
		return;
	of->noted_pairs = of->measured.pairs_since;
	of->noted_detail = of->measured.detail;
	ops_shadow_steps_measure(&of->measured, unseen, &overhead);
	pthread_mutex_lock(&of->lock);
	ops_shadow_steps_decide(&of->shadow, &of->measured, &overhead);
	pthread_mutex_unlock(&of->lock);
	ops_session_note_overhead(&overhead);
}

/* --- checks ------------------------------------------------------------------------------------------------------------- */

static void watcher_check_hang(struct watcher *of, uint64_t step_count, int64_t now_ns)
{
	uint64_t progress = ops_recording_progress() + step_count;
	int64_t limit_ns = of->options.hang_ns ? (int64_t)of->options.hang_ns : HANG_NS;
	struct watch_task over;
	struct watch_facts facts = {.trigger = OPS_TRIGGER_HANG};
	struct watch_step step;
	struct ops_error error;

	if (progress != of->progress || !progress) { /* before the first operator, the program is starting */
		of->progress = progress;
		of->progress_ns = now_ns;
		of->hangs = false;
	}
	if (of->hangs || now_ns - of->progress_ns < limit_ns)
		return;
	of->hangs = true;
	step = watcher_step_now(of, &facts.tid);
	facts.step = &step;
	facts.quiet_ns = now_ns - of->progress_ns;
	sampling_finish(of, &facts, &over, now_ns);
	if (watcher_may_report(of, OPS_TRIGGER_HANG))
		watcher_report(of, &facts, NULL, &error);
}

static void watcher_check_memory(struct watcher *of)
{
	struct ops_watch_page *page = of->page;
	struct watch_facts facts = {.trigger = OPS_TRIGGER_MEMORY};
	struct watch_memory memory;
	struct watch_step step;
	struct ops_error error;
	double limit;
	bool hit;

	watch_memory_read(&memory);
	page->rss_bytes = memory.rss_bytes;
	if (memory.rss_bytes > page->rss_peak_bytes)
		page->rss_peak_bytes = memory.rss_bytes;
	page->memory_limit_bytes = memory.limit_bytes;
	limit = of->options.rss_limit_bytes ? (double)of->options.rss_limit_bytes : FULL_SHARE * (double)memory.limit_bytes;
	hit = (limit > 0 && (double)memory.rss_bytes > limit) || memory.failures > of->memory_failures;
	of->memory_failures = memory.failures;
	if (!hit && (limit <= 0 || (double)memory.rss_bytes < limit * FREE_SHARE / FULL_SHARE))
		of->full = false;
	if (!hit || of->full)
		return;
	of->full = true;
	step = watcher_step_now(of, &facts.tid);
	facts.step = &step;
	if (watcher_may_report(of, OPS_TRIGGER_MEMORY))
		watcher_report(of, &facts, NULL, &error);
}

static void watcher_report_request(struct watcher *of)
{
	struct watch_facts facts = {.trigger = OPS_TRIGGER_REQUEST};
	struct watch_step step = watcher_step_now(of, &facts.tid);
	struct ops_error error;

	facts.step = &step;
	if (watcher_may_report(of, OPS_TRIGGER_REQUEST))
		watcher_report(of, &facts, NULL, &error);
}

/* --- the thread --------------------------------------------------------------------------------------------------------- */

static void watcher_wait(struct watcher *of, int64_t wait_ns)
{
	int64_t until_ns = ops_clock_read_ns(CLOCK_REALTIME) + (wait_ns > 0 ? wait_ns : 0);
	struct timespec until = ops_clock_timespec(until_ns);

	sem_timedwait(&of->changed, &until); /* returning early is harmless */
}

/* Returns the time until which nothing happens if no step ends. */
static int64_t watcher_next(const struct watcher *of, int64_t now_ns)
{
	int64_t next_ns = of->next_look_ns;
	double limit_ns = of->steps.limit_ns;

	if (of->begin_ns && isfinite(limit_ns)) {
		int64_t late_ns = of->begin_ns + (int64_t)limit_ns;

		if (late_ns <= now_ns)
			late_ns = of->sampled_step == of->step_count + 1 ? of->next_sample_ns : now_ns;
		next_ns = late_ns < next_ns ? late_ns : next_ns;
	}
	return next_ns;
}

/* The wall clock may be set at any time. */
static void watcher_read_offset(struct watcher *of)
{
	int64_t offset_ns = ops_clock_read_ns(CLOCK_REALTIME) - ops_clock_read_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&of->lock);
	of->wall_offset_ns = offset_ns;
	pthread_mutex_unlock(&of->lock);
}

static void watcher_check(struct watcher *of, uint64_t step_count, int64_t now_ns)
{
	if (now_ns < of->next_look_ns)
		return;
	of->next_look_ns = now_ns + OPS_SECOND_NS;
	watcher_read_stack(of, 0);
	watcher_check_memory(of);
	watcher_read_offset(of);
	watcher_measure(of);
	watcher_check_hang(of, step_count, now_ns);
}

static void *watcher_run(void *context)
{
	struct watcher *of = context;
	bool slow;

	pthread_mutex_lock(&of->lock);
	while (!of->stop) {
		int64_t now_ns = ops_clock_read_ns(CLOCK_MONOTONIC), next_ns;
		uint64_t step_count = of->step_count;
		bool late = of->begin_ns && isfinite(of->steps.limit_ns) && now_ns - of->begin_ns > (int64_t)of->steps.limit_ns;
		bool requested = of->requested, is_due = of->is_due;
		struct watch_step step = of->slow;

		if (late) {
			watcher_end_shadow(of);
			watcher_record_late(of, now_ns);
		}
		slow = of->has_slow;
		of->has_slow = false;
		of->requested = false;
		pthread_mutex_unlock(&of->lock);
		if (slow)
			watcher_report_slow(of, &step);
		if (requested)
			watcher_report_request(of);
		if (late && of->sampled_step != step_count + 1)
			sampling_start(of, step_count + 1, now_ns);
		if (late)
			watcher_sample(of, now_ns);
		else
			of->sampled_step = 0;
		watcher_check(of, step_count, now_ns);
		if (is_due)
			watcher_measure(of);
		now_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
		pthread_mutex_lock(&of->lock);
		next_ns = watcher_next(of, now_ns);
		pthread_mutex_unlock(&of->lock);
		watcher_wait(of, next_ns - now_ns);
		of->woke_late_ns = ops_clock_read_ns(CLOCK_MONOTONIC) - next_ns;
		pthread_mutex_lock(&of->lock);
	}
	slow = of->has_slow;
	pthread_mutex_unlock(&of->lock);
	if (slow)
		watcher_report_slow(of, &of->slow);
	return NULL;
}

/* --- calls of the program ----------------------------------------------------------------------------------------------- */

/* A system call takes longer than everything else in a step. */
static int64_t watcher_tid(const struct watcher *of)
{
	static __thread int64_t tid;
	static __thread pid_t pid; /* a forked child has another thread id */

	if (pid != of->pid) {
		tid = syscall(SYS_gettid);
		pid = of->pid;
	}
	return tid;
}

/* Ends `count` steps, of which `number` is the first. Returns whether they were a shadow step. */
static bool watcher_end_steps(struct watcher *of, int64_t number, uint32_t count, int64_t now_ns)
{
	bool was_shadow;

	pthread_mutex_lock(&of->lock);
	if (of->shadow.unit == OPS_OVERHEAD_CALL)
		ops_shadow_steps_init(&of->shadow, of->options.budget_ppm, of->shadow.random);
	was_shadow = of->shadow.is_shadow;
	if (of->begin_ns && ops_slow_steps_add(&of->steps, (uint64_t)(now_ns - of->begin_ns))) {
		of->slow = (struct watch_step){.number = number,
		                               .duration_ns = now_ns - of->begin_ns,
		                               .median_ns = (int64_t)of->steps.median_ns,
		                               .limit_ns = (int64_t)of->steps.limit_ns};
		of->has_slow = true;
		sem_post(&of->changed);
	}
	__atomic_store_n(&of->step_count, of->step_count + count, __ATOMIC_RELAXED);
	of->step = number + count;
	of->begin_ns = now_ns;
	of->step_tid = watcher_tid(of);
	of->page->step = of->step;
	of->page->step_tid = of->step_tid;
	of->page->step_begin_ns = now_ns + of->wall_offset_ns;
	of->page->step_median_ns = (int64_t)of->steps.median_ns;
	if (of->options.set_detail)
		watcher_shadow_step(of, now_ns, count);
	pthread_mutex_unlock(&of->lock);
	return was_shadow;
}

bool ops_watch_step(int64_t number, int64_t end_ns)
{
	struct watcher *of = current();

	return of && watcher_end_steps(of, number, 1, end_ns ? end_ns : ops_clock_read_ns(CLOCK_MONOTONIC));
}

enum ops_detail ops_watch_usual_detail(void)
{
	const struct watcher *of = current();

	return of && of->options.set_detail ? __atomic_load_n(&of->shadow.detail, __ATOMIC_RELAXED) : OPS_DETAIL_ALL;
}

uint32_t ops_watch_group(void)
{
	const struct watcher *of = current();

	return of ? __atomic_load_n(&of->group, __ATOMIC_RELAXED) : 1;
}

void ops_watch_set_group(uint32_t group)
{
	struct watcher *of = current();

	if (of)
		__atomic_store_n(&of->group, group, __ATOMIC_RELAXED);
}

bool ops_watch_wants_calls(void)
{
	const struct watcher *of = current();

	return of && of->options.set_detail && !__atomic_load_n(&of->step_count, __ATOMIC_RELAXED);
}

/* Returns whether the call is one of those that are compared. The lock must be held. */
static bool watcher_compares_call(struct watcher *of, int64_t end_ns)
{
	int64_t tid = watcher_tid(of);

	if (!of->options.set_detail || of->step_count || (of->call_tid && of->call_tid != tid && end_ns - of->call_ns < CALL_NS_MAX))
		return false;
	of->call_tid = tid;
	of->call_ns = end_ns;
	of->shadow.unit = OPS_OVERHEAD_CALL;
	return true;
}

void ops_watch_call(uint64_t begin_ticks, int64_t begin_ns)
{
	struct watcher *of = current();
	int64_t end_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	bool was_shadow = false;

	if (!of)
		return;
	pthread_mutex_lock(&of->lock);
	if (watcher_compares_call(of, end_ns)) {
		was_shadow = of->shadow.is_shadow && !of->shadow.is_spoiled;
		watcher_set_detail(of, watcher_compare(of, (uint64_t)(end_ns - begin_ns), 0), false);
	}
	pthread_mutex_unlock(&of->lock);
	if (was_shadow)
		ops_range_add(OPS_SHADOW_STEP_NAME, sizeof(OPS_SHADOW_STEP_NAME) - 1, begin_ticks, ops_ticks(ops_collector_get()->tsc));
}

/* Writes "ProfilerStep#12" without the time that printf takes. Returns its size. */
static size_t watcher_name_step(int64_t number, char ret_name[STEP_NAME_ROOM])
{
	char digits[20];
	size_t count = 0, size = sizeof(STEP_NAME) - 1;

	memcpy(ret_name, STEP_NAME, size);
	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (count)
		ret_name[size++] = digits[--count];
	return size;
}

bool ops_watch_mark_step(uint64_t begin_ticks, uint64_t end_ticks, uint32_t count)
{
	struct watcher *of = current();
	int64_t now_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	char name[STEP_NAME_ROOM];
	bool is_due;

	if (!of)
		return false;
	ops_range_add(name, watcher_name_step(of->next_step, name), begin_ticks, end_ticks);
	if (watcher_end_steps(of, of->next_step, count, now_ns) && begin_ticks < end_ticks)
		ops_range_add(OPS_SHADOW_STEP_NAME, sizeof(OPS_SHADOW_STEP_NAME) - 1, begin_ticks, end_ticks);
	of->next_step += count;
	is_due = now_ns - of->chore_ns > OPS_SECOND_NS;
	if (is_due)
		of->chore_ns = now_ns;
	return is_due;
}

double ops_watch_limit_ns(void)
{
	struct watcher *of = current();
	double limit_ns = (double)INFINITY;

	if (!of)
		return limit_ns;
	pthread_mutex_lock(&of->lock);
	if (of->steps.limit_ns > 0)
		limit_ns = of->steps.limit_ns;
	pthread_mutex_unlock(&of->lock);
	return limit_ns;
}

void ops_watch_step_break(void)
{
	struct watcher *of = current();

	if (!of)
		return;
	pthread_mutex_lock(&of->lock);
	watcher_end_late(of, ops_clock_read_ns(CLOCK_MONOTONIC));
	of->begin_ns = of->detail_ns = 0;
	pthread_mutex_unlock(&of->lock);
}

void ops_watch_collection(bool begins)
{
	struct watcher *of = current();
	int64_t now_ns;

	if (!of)
		return;
	now_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&of->lock);
	if (begins)
		of->collect_begin_ns = now_ns;
	else if (of->collecting)
		of->collected_ns += now_ns - of->collect_begin_ns;
	__atomic_store_n(&of->collecting, begins, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&of->lock);
}

void ops_watch_set_recording(const char *path)
{
	struct watcher *of = current();

	if (!of)
		return;
	pthread_mutex_lock(&of->lock);
	snprintf(of->recording, sizeof(of->recording), "%s", path ? path : "");
	memcpy(of->page->recording, of->recording, sizeof(of->recording));
	pthread_mutex_unlock(&of->lock);
}

enum ops_code ops_watch_trigger(enum ops_trigger trigger, const char *members, size_t size, char *ret_directory,
                                struct ops_error *error)
{
	struct watch_facts facts = {.trigger = trigger, .members = {members, size}};
	struct watcher *of = current();
	struct watch_step step;

	if (ret_directory)
		ret_directory[0] = '\0';
	if (!of || !watcher_may_report(of, trigger))
		return OPS_OK;
	step = watcher_step_now(of, &facts.tid);
	facts.step = &step;
	facts.tid = syscall(SYS_gettid);
	return watcher_report(of, &facts, ret_directory, error);
}

void ops_watch_exit(int status)
{
	struct watcher *of = current();

	if (!of)
		return;
	of->page->exit_status = status;
	if (of->options.read_own_stack)
		of->options.read_own_stack(&of->page->end_stack);
	__atomic_store_n(&of->page->exits, 1, __ATOMIC_RELEASE);
}

/* Called in a signal handler. */
static void watcher_request(void)
{
	struct watcher *of = current();

	if (!of)
		return;
	of->requested = true;
	sem_post(&of->changed);
}

/* --- lifetime ------------------------------------------------------------------------------------------------------------ */

static void watcher_fill_page(struct watcher *of)
{
	const struct ops_watch_options *options = &of->options;
	struct ops_watch_page *page = of->page;
	struct watch_memory memory;

	page->version = OPS_WATCH_VERSION;
	page->bytes = sizeof(*page);
	page->pid = of->pid;
	page->start_time = watch_process_start(of->pid);
	page->started_ns = ops_clock_read_ns(CLOCK_REALTIME);
	ops_spill_boot_id(page->boot_id);
	snprintf(page->process_name, sizeof(page->process_name), "%s", options->process_name ? options->process_name : "");
	snprintf(page->command, sizeof(page->command), "%s", options->command ? options->command : "");
	snprintf(page->recording, sizeof(page->recording), "%s", options->recording ? options->recording : "");
	gethostname(page->host_name, sizeof(page->host_name) - 1);
	page->rank = options->rank;
	page->world_size = options->world_size;
	page->main_tid = syscall(SYS_gettid);
	page->step = -1;
	watch_memory_read(&memory);
	of->memory_failures = memory.failures;
	page->oom_kills = memory.oom_kills;
	ops_memory_group_find(page->control_group, sizeof(page->control_group));
	__atomic_store_n(&page->magic, OPS_WATCH_MAGIC, __ATOMIC_RELEASE);
}

static void watcher_free(struct watcher *of)
{
	watch_page_free(of->page);
	if (of->page_path[0])
		unlink(of->page_path);
	ops_free(of);
}

static bool watcher_start_thread(struct watcher *of)
{
	pthread_mutex_init(&of->lock, NULL);
	pthread_mutex_init(&of->writing, NULL);
	sem_init(&of->changed, 0, 0);
	return ops_thread_start(&of->thread, watcher_run, of);
}

enum ops_code ops_watch_start(const struct ops_watch_options *options, struct ops_error *error)
{
	static pthread_once_t at_fork = PTHREAD_ONCE_INIT;
	struct watcher *of;
	int failure;

	pthread_once(&at_fork, watcher_at_fork);
	if (current())
		return ops_fault(error, OPS_STATE, "this process is already being watched");
	of = ops_alloc_zeroed(1, sizeof(*of));
	if (!of)
		return ops_fault_memory(error);
	of->options = *options;
	of->pid = getpid();
	of->step = -1;
	of->tokens = options->per_hour > 0 ? fmax(options->per_hour, 1) : PER_HOUR;
	of->tokens_ns = of->progress_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	snprintf(of->native, sizeof(of->native), "%s", options->read_native ? options->read_native : "");
	snprintf(of->incidents, sizeof(of->incidents), "%s", options->incidents);
	snprintf(of->recording, sizeof(of->recording), "%s", options->recording ? options->recording : "");
	of->page = watch_page_new(options->page);
	if (!of->page) {
		failure = errno;
		ops_free(of);
		return ops_fault_errno(error, failure, "cannot make the watch file '%s'", options->page ? options->page : "");
	}
	snprintf(of->page_path, sizeof(of->page_path), "%s", options->page ? options->page : "");
	watcher_fill_page(of);
	of->group = 1;
	of->detail = OPS_DETAIL_ALL;
	of->frees = true;
	ops_shadow_steps_init(&of->shadow, options->budget_ppm, (uint64_t)ops_clock_read_ns(CLOCK_REALTIME) ^ (uint64_t)of->pid << 32);
	of->wall_offset_ns = ops_clock_read_ns(CLOCK_REALTIME) - ops_clock_read_ns(CLOCK_MONOTONIC);
	if (!watcher_start_thread(of)) {
		watcher_free(of);
		return ops_fault(error, OPS_NO_MEMORY, "cannot start the watching thread");
	}
	__atomic_store_n(&watcher, of, __ATOMIC_RELEASE);
	if (options->triggers & 1u << OPS_TRIGGER_SIGNAL)
		watch_signals_start(of->page, options->read_own_stack, watcher_request);
	return OPS_OK;
}

void ops_watch_stop(void)
{
	struct watcher *of = current();

	if (!of)
		return;
	watch_signals_stop();
	__atomic_store_n(&watcher, NULL, __ATOMIC_RELEASE);
	pthread_mutex_lock(&of->lock);
	of->stop = true;
	sem_post(&of->changed);
	pthread_mutex_unlock(&of->lock);
	pthread_join(of->thread, NULL);
	if (of->options.set_detail && of->detail != OPS_DETAIL_ALL)
		of->options.set_detail(OPS_DETAIL_ALL, true, true);
	sem_destroy(&of->changed);
	pthread_mutex_destroy(&of->lock);
	pthread_mutex_destroy(&of->writing);
	watcher_free(of);
}
