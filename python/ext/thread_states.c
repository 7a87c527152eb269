/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples what threads wait for: a separate thread reads the kernel's information about all threads of the process. It does not
 * take the GIL, and does not affect the threads.
 *
 *     /proc/self/task/TID/syscall     the system call in which a thread is blocked, and its arguments; else "running"
 *     /proc/self/task/TID/schedstat   its time on a processor, and its time ready to run
 *
 * Consecutive equal samples are one interval.
 */
#include "ext.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/thread_states.h>

#include "repeating_thread.h"
#include "thread_calls.h"

/* Minimum distance of samples, which take at most a hundredth of a processor. */
#define PERIOD_NS_MIN 2000000
#define COST_SHARE 100
#define THREADS_MAX 256
#define INTERVALS_MAX 65536 /* for all threads; then sampling ends */
#define TICK_NS 5000000
#define ACTIVE_NS_MAX 50000000 /* after this time a running thread gets an interval */
#define LOOK_EVERY 8        /* number of samples between searches for new threads */

static const char *const state_names[OPS_THREAD_STATES] = {OPS_THREAD_STATE_NAMES};

struct state_interval {
	int64_t start_ns, end_ns; /* since the start of the sampler */
	enum ops_thread_state state;
};

struct sampled_thread {
	int tid;
	int syscall_fd, schedule_fd; /* -1: the thread has ended */
	long long ran_ns, ready_ns;  /* at the last sample */
	long long first_ran_ns, first_ready_ns;
	int64_t sampled_ns;          /* time of the last sample */
	enum ops_thread_state state;            /* state in it if the thread was blocked; OPS_THREAD_STATES: it ran or was ready to */
	int64_t active_ns;           /* since when it has been running or ready, and the first sample that showed this */
	int64_t active_sample_ns;
	long long active_ran_ns, active_ready_ns; /* at that time */
	enum ops_thread_state before;           /* what it waited for before; OPS_THREAD_STATES: unknown */
	size_t count, capacity;
	struct state_interval *intervals;
};

struct sampler {
	struct repeating_thread thread;
	pid_t pid; /* process of the thread: a forked child has none */
	pid_t own_tid;
	int64_t wall_ns, start_ns; /* time of the start, on the wall and the monotonic clock */
	int64_t period_ns;
	size_t count, intervals;
	struct sampled_thread threads[THREADS_MAX];
};

static struct sampler *sampler; /* protected by the GIL; one per process */

/* --- one thread ------------------------------------------------------------------------------------------------------ */

static ssize_t sampler_read(int fd, char *text, size_t size)
{
	ssize_t got = pread(fd, text, size - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return got;
}

static void end_thread(struct sampled_thread *thread)
{
	close(thread->syscall_fd);
	close(thread->schedule_fd);
	thread->syscall_fd = thread->schedule_fd = -1;
}

static void add_interval(struct sampler *of, struct sampled_thread *thread, int64_t *at_ns, int64_t ns, enum ops_thread_state state)
{
	struct state_interval *last = thread->count ? &thread->intervals[thread->count - 1] : NULL;
	int64_t start_ns = *at_ns;

	*at_ns += ns;
	if (ns <= 0 || of->intervals == INTERVALS_MAX)
		return;
	if (last && last->state == state && last->end_ns == start_ns) {
		last->end_ns = *at_ns;
		return;
	}
	if (thread->count == thread->capacity) {
		size_t capacity = thread->capacity ? 2 * thread->capacity : 64;
		struct state_interval *grown = realloc(thread->intervals, capacity * sizeof(*grown));

		if (!grown)
			return;
		thread->intervals = grown;
		thread->capacity = capacity;
	}
	thread->intervals[thread->count++] = (struct state_interval){start_ns, *at_ns, state};
	of->intervals++;
}

static int64_t at_most(int64_t ns, int64_t most_ns)
{
	return ns < 0 ? 0 : ns < most_ns ? ns : most_ns;
}

/* Ends a time in which every sample found the thread active. The kernel reports how much of it the thread ran or was ready to;
 * for the rest it was blocked: at the begin until the first sample, at the end since the last, and undetected in between.
 *
 *     samples    lock    active    active    active    gil
 *                  [ lock | ready | running | waiting | gil ]
 */
static void end_active(struct sampler *of, struct sampled_thread *thread, int64_t now_ns, enum ops_thread_state after)
{
	int64_t at_ns = thread->active_ns, left_ns = now_ns - at_ns;
	int64_t ran_ns = at_most(thread->ran_ns - thread->active_ran_ns, left_ns);
	int64_t ready_ns = at_most(thread->ready_ns - thread->active_ready_ns, left_ns - ran_ns), before_ns = 0, after_ns = 0;

	left_ns -= ran_ns + ready_ns;
	if (thread->before != OPS_THREAD_STATES)
		before_ns = at_most(left_ns, thread->active_sample_ns - thread->active_ns);
	if (after != OPS_THREAD_STATES)
		after_ns = at_most(left_ns - before_ns, now_ns - thread->sampled_ns);
	left_ns -= before_ns + after_ns;
	if (left_ns < TICK_NS) { /* the kernel counts time on a processor in ticks */
		ran_ns += left_ns;
		left_ns = 0;
	}
	add_interval(of, thread, &at_ns, before_ns, thread->before);
	add_interval(of, thread, &at_ns, ready_ns, OPS_THREAD_READY);
	add_interval(of, thread, &at_ns, ran_ns, OPS_THREAD_RUNNING);
	add_interval(of, thread, &at_ns, left_ns, OPS_THREAD_WAITING);
	add_interval(of, thread, &at_ns, after_ns, after);
}

static void begin_active(struct sampled_thread *thread, int64_t start_ns, int64_t sample_ns, enum ops_thread_state before)
{
	thread->active_ns = start_ns;
	thread->active_sample_ns = sample_ns;
	thread->active_ran_ns = thread->ran_ns;
	thread->active_ready_ns = thread->ready_ns;
	thread->before = before;
}

static void process_sample(struct sampler *of, struct sampled_thread *thread, int64_t now_ns, enum ops_thread_state state,
                        long long ran_ns, long long ready_ns)
{
	/* A thread that was blocked at both samples may have run in between. */
	bool was_active = thread->state == OPS_THREAD_STATES, ran = ran_ns > thread->ran_ns;
	int64_t at_ns = thread->sampled_ns;

	if (!was_active && (state == OPS_THREAD_STATES || ran))
		begin_active(thread, thread->sampled_ns, state == OPS_THREAD_STATES ? now_ns : (thread->sampled_ns + now_ns) / 2, thread->state);
	thread->ran_ns = ran_ns;
	thread->ready_ns = ready_ns;
	if (state != OPS_THREAD_STATES && !was_active && !ran)
		add_interval(of, thread, &at_ns, now_ns - at_ns, state);
	else if (state != OPS_THREAD_STATES || now_ns - thread->active_ns > ACTIVE_NS_MAX) {
		end_active(of, thread, now_ns, state);
		begin_active(thread, now_ns, now_ns, OPS_THREAD_STATES);
	}
	thread->state = state;
	thread->sampled_ns = now_ns;
}

static void sample_thread(struct sampler *of, struct sampled_thread *thread, int64_t now_ns)
{
	char call[256], schedule[96];
	long long ran_ns = 0, ready_ns = 0;
	enum ops_thread_state state;

	if (sampler_read(thread->syscall_fd, call, sizeof(call)) <= 0 ||
	    sampler_read(thread->schedule_fd, schedule, sizeof(schedule)) <= 0 ||
	    sscanf(schedule, "%lld %lld", &ran_ns, &ready_ns) != 2) {
		end_thread(thread);
		return;
	}
	state = ops_thread_call_state(call);
	if (state == OPS_THREAD_RUNNING)
		state = OPS_THREAD_STATES;
	if (thread->first_ran_ns >= 0) {
		process_sample(of, thread, now_ns, state, ran_ns, ready_ns);
		return;
	}
	thread->first_ran_ns = thread->ran_ns = ran_ns;
	thread->first_ready_ns = thread->ready_ns = ready_ns;
	thread->sampled_ns = now_ns;
	thread->state = state;
	begin_active(thread, now_ns, now_ns, OPS_THREAD_STATES);
}

/* Ends the intervals that are open at the end. */
static void finish_samples(struct sampler *of)
{
	for (size_t i = 0; i < of->count; i++)
		if (of->threads[i].state == OPS_THREAD_STATES && of->threads[i].first_ran_ns >= 0)
			end_active(of, &of->threads[i], of->threads[i].sampled_ns, OPS_THREAD_STATES);
}

/* --- all threads ----------------------------------------------------------------------------------------------------- */

static int open_of_thread(int tid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void add_thread(struct sampler *of, int tid)
{
	struct sampled_thread *thread;

	if (tid == of->own_tid || of->count == THREADS_MAX)
		return;
	for (size_t i = 0; i < of->count; i++)
		if (of->threads[i].tid == tid && of->threads[i].syscall_fd >= 0)
			return;
	thread = &of->threads[of->count];
	*thread = (struct sampled_thread){.tid = tid, .first_ran_ns = -1};
	thread->syscall_fd = open_of_thread(tid, "syscall");
	thread->schedule_fd = open_of_thread(tid, "schedstat");
	if (thread->syscall_fd >= 0 && thread->schedule_fd >= 0) {
		of->count++;
		return;
	}
	if (thread->syscall_fd >= 0)
		close(thread->syscall_fd);
	if (thread->schedule_fd >= 0)
		close(thread->schedule_fd);
}

static void find_threads(struct sampler *of)
{
	DIR *tasks = opendir("/proc/self/task");

	for (struct dirent *task = tasks ? readdir(tasks) : NULL; task; task = readdir(tasks))
		if (atoi(task->d_name) > 0)
			add_thread(of, atoi(task->d_name));
	if (tasks)
		closedir(tasks);
}

static void *sample(void *context)
{
	struct sampler *of = context;
	int64_t begin_ns, cost_ns;

	of->own_tid = (pid_t)syscall(SYS_gettid);
	for (size_t round = 0;; round++) {
		begin_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
		cost_ns = ops_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		if (round % LOOK_EVERY == 0)
			find_threads(of);
		for (size_t i = 0; i < of->count; i++)
			if (of->threads[i].syscall_fd >= 0)
				sample_thread(of, &of->threads[i], ops_clock_read_ns(CLOCK_MONOTONIC) - of->start_ns);
		cost_ns = ops_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cost_ns;
		of->period_ns = cost_ns * COST_SHARE > PERIOD_NS_MIN ? cost_ns * COST_SHARE : PERIOD_NS_MIN;
		if (!repeating_thread_wait(&of->thread, begin_ns + of->period_ns))
			return NULL;
	}
}

/* --- lifetime -------------------------------------------------------------------------------------------------------- */

static void sampler_free(struct sampler *of)
{
	for (size_t i = 0; i < of->count; i++) {
		if (of->threads[i].syscall_fd >= 0)
			end_thread(&of->threads[i]);
		free(of->threads[i].intervals);
	}
	free(of);
}

static PyObject *thread_states_start(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	if ((sampler && sampler->pid == getpid()) || access("/proc/thread-self/syscall", R_OK) != 0)
		Py_RETURN_FALSE;
	sampler = calloc(1, sizeof(*sampler)); /* a forked child does not touch that of its parent */
	if (!sampler)
		return PyErr_NoMemory();
	sampler->pid = getpid();
	sampler->wall_ns = ops_clock_read_ns(CLOCK_REALTIME);
	sampler->start_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	ops_thread_calls_init();
	if (repeating_thread_start(&sampler->thread, sample, sampler)) {
		sampler_free(sampler);
		sampler = NULL;
		Py_RETURN_FALSE;
	}
	Py_RETURN_TRUE;
}

static void write_threads(const struct sampler *of, FILE *out)
{
	fprintf(out, "{\"start_ns\":%lld,\"states\":[", (long long)of->wall_ns);
	for (size_t i = 0; i < OPS_THREAD_STATES; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", state_names[i]);
	fputs("],\"threads\":[", out);
	for (size_t i = 0; i < of->count; i++) {
		const struct sampled_thread *thread = &of->threads[i];

		fprintf(out, "%s{\"tid\":%d,\"ran_ns\":%lld,\"ready_ns\":%lld,\"intervals\":[", i ? "," : "", thread->tid,
		        thread->ran_ns - thread->first_ran_ns, thread->ready_ns - thread->first_ready_ns);
		for (size_t n = 0; n < thread->count; n++) /* in microseconds */
			fprintf(out, "%s%lld,%lld,%d", n ? "," : "", (long long)thread->intervals[n].start_ns / 1000,
			        (long long)thread->intervals[n].end_ns / 1000, (int)thread->intervals[n].state);
		fputs("]}", out);
	}
	fprintf(out, "],\"complete\":%s}", of->intervals < INTERVALS_MAX ? "true" : "false");
}

static PyObject *thread_states_stop(PyObject *module, PyObject *unused)
{
	struct sampler *of = sampler;
	PyObject *result = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *out;

	(void)module;
	(void)unused;
	if (!of || of->pid != getpid())
		Py_RETURN_NONE;
	sampler = NULL;
	Py_BEGIN_ALLOW_THREADS
	repeating_thread_stop(&of->thread);
	finish_samples(of);
	out = open_memstream(&text, &size);
	if (out) {
		write_threads(of, out);
		fclose(out);
	}
	sampler_free(of);
	Py_END_ALLOW_THREADS
	result = text ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)size) : PyErr_NoMemory();
	free(text);
	return result;
}

static PyMethodDef thread_states_methods[] = {
	{"thread_states_start", thread_states_start, METH_NOARGS,
	 "thread_states_start() -> bool\n\nSamples what the threads of the process do, from a separate thread. False where the "
	 "kernel does not say, or one samples already."},
	{"thread_states_stop", thread_states_stop, METH_NOARGS,
	 "thread_states_stop() -> str | None\n\nEnds that, and returns the samples as JSON; None where none were taken."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_thread_states(PyObject *module)
{
	return PyModule_AddFunctions(module, thread_states_methods);
}
