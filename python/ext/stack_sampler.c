/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples Python stacks: a separate thread repeatedly reads the stacks of all threads of the interpreter from outside
 * (stack_reader.h), and records them as its own slots (OPS_SLOT_SAMPLE). The program's threads take no part in it.
 *
 *     frame ─▶ position (code object, instruction) ─▶ cache ─▶ function and line, as ids
 *
 * In a round, a stack of known positions takes a few system calls, whatever its depth. A stack that is equal to the thread's last
 * one shares its payload.
 */
#include "ext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/program.h>
#include <opstrobe/internal/progress.h>

#include "path_prefixes.h"
#include "repeating_thread.h"
#include "stack_reader.h"
#include "thread_calls.h"

#define FOLLOWED_MAX 64  /* threads with known state; samples of other threads have no state */
#define POSITIONS 4096   /* a power of two */
#define CUT_NAME "[truncated]" /* outermost frame of a truncated stack */

struct known_position {
	struct ops_stack_position position;
	struct ops_sample_frame frame; /* name 0: the entry is free */
};

struct followed_thread {
	int64_t tid; /* 0: the entry is free */
	int fd;      /* of the kernel's information about it; -1: none */
	uint64_t round; /* the last round in which it was seen */
	/* Its last payload. */
	const struct ops_block *block;
	uint32_t sequence;
	uint16_t payload, payload_bytes;
};

struct stack_sampler {
	struct repeating_thread thread;
	pid_t pid; /* process of the thread: a forked child has none */
	int64_t period_ns;
	double share_max; /* of a processor; rounds that would take more are less frequent */
	int64_t before_ns; /* time of the previous round */
	uint64_t round;
	uint64_t epoch; /* session of the ids */
	uint32_t cut;   /* id of CUT_NAME; 0: unknown */
	struct followed_thread followed[FOLLOWED_MAX];
	struct known_position known[POSITIONS];
	struct ops_stack_positions stack;
	struct ops_sample_frame frames[OPS_SAMPLE_FRAMES_MAX];
	struct ops_stack_frame text;
};

static struct stack_sampler *stack_sampler; /* protected by the GIL; one per process */
static int64_t spent_ns; /* CPU time of all rounds; relaxed */

/* --- frames ---------------------------------------------------------------------------------------------------------- */

static size_t position_slot(const struct ops_stack_position *position)
{
	uint64_t hash = (position->code ^ (uint64_t)(unsigned)position->offset << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 32) % POSITIONS;
}

static bool is_same_position(const struct ops_stack_position *a, const struct ops_stack_position *b)
{
	return a->code == b->code && a->offset == b->offset && a->first_line == b->first_line &&
	       memcmp(a->identity, b->identity, sizeof(a->identity)) == 0;
}

/* Returns false if the code object no longer exists or its name cannot be stored. */
static bool sampler_find_frame(struct stack_sampler *of, struct ops_thread *thread, const struct ops_stack_position *position,
                               struct ops_sample_frame *ret_frame)
{
	struct known_position *known = &of->known[position_slot(position)];

	if (!known->frame.name || !is_same_position(&known->position, position)) {
		struct ops_string file;

		known->frame.name = 0;
		if (!ops_stack_position_resolve(position, &of->text))
			return false;
		file = (struct ops_string){of->text.file, strlen(of->text.file)};
		if (!ops_file_is_library(file)) /* complete paths show that a file is one */
			file = ops_path_without_prefix(file);
		known->frame.name = ops_collector_get()->intern(thread, of->text.function, strlen(of->text.function), file.bytes, file.size);
		known->frame.line = of->text.line;
		known->position = *position;
	}
	*ret_frame = known->frame;
	return known->frame.name != 0;
}

/* Finds the frames of the stack that was read; returns their number. */
static size_t sampler_find_frames(struct stack_sampler *of, struct ops_thread *thread)
{
	size_t count = 0;

	for (uint32_t i = 0; i < of->stack.count; i++)
		count += sampler_find_frame(of, thread, &of->stack.items[i], &of->frames[count]);
	if (of->stack.is_cut && !of->cut)
		of->cut = ops_collector_get()->intern(thread, CUT_NAME, strlen(CUT_NAME), "", 0);
	if (count && of->stack.is_cut && of->cut)
		of->frames[count++] = (struct ops_sample_frame){of->cut, 0};
	return count;
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

static void unfollow(struct followed_thread *followed)
{
	if (followed->fd >= 0)
		close(followed->fd);
	*followed = (struct followed_thread){.fd = -1};
}

/* Returns NULL for a thread without a known number, and beyond the limit. */
static struct followed_thread *sampler_follow(struct stack_sampler *of, int64_t tid)
{
	struct followed_thread *unused = NULL;
	char path[64];

	for (size_t i = 0; tid && i < FOLLOWED_MAX; i++) {
		if (of->followed[i].tid == tid)
			return &of->followed[i];
		if (!of->followed[i].tid && !unused)
			unused = &of->followed[i];
	}
	if (!unused)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/task/%lld/syscall", (long long)tid);
	*unused = (struct followed_thread){.tid = tid, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	return unused;
}

static enum ops_thread_state followed_state(const struct followed_thread *followed)
{
	char text[256];
	ssize_t size = followed && followed->fd >= 0 ? pread(followed->fd, text, sizeof(text) - 1, 0) : -1;

	if (size <= 0)
		return OPS_THREAD_STATES;
	text[size] = '\0';
	return ops_thread_call_state(text);
}

static bool has_same_payload(const struct followed_thread *followed, const struct ops_thread *thread, uint64_t epoch,
                             const struct ops_sample_frame *frames, size_t bytes)
{
	return followed && thread->epoch == epoch && thread->block && followed->block == thread->block &&
	       followed->sequence == thread->block->sequence && followed->payload_bytes == bytes &&
	       ops_next_slot_end(thread) <= thread->payload_start &&
	       memcmp((const char *)thread->block + followed->payload, frames, bytes) == 0;
}

static void sampler_record(struct stack_sampler *of, struct ops_thread *thread, uint64_t epoch, uint64_t ticks, int64_t weight_ns)
{
	const struct ops_collector *collector = ops_collector_get();
	struct followed_thread *followed = sampler_follow(of, of->stack.tid);
	enum ops_thread_state state = followed_state(followed);
	size_t count = sampler_find_frames(of, thread), bytes = count * sizeof(*of->frames);
	bool is_same = has_same_payload(followed, thread, epoch, of->frames, bytes);
	struct ops_slot *slot;

	if (followed)
		followed->round = of->round;
	slot = count ? ops_reserve(collector, thread, epoch, is_same ? 0 : bytes) : NULL;
	if (!slot)
		return;
	if (is_same) {
		slot->payload = followed->payload;
		slot->payload_bytes = followed->payload_bytes;
	} else {
		memcpy(ops_slot_payload(thread, slot), of->frames, bytes);
	}
	if (followed) {
		followed->block = thread->block;
		followed->sequence = thread->block->sequence;
		followed->payload = slot->payload;
		followed->payload_bytes = slot->payload_bytes;
	}
	slot->owner = NULL;
	slot->start_ticks = slot->end_ticks = ticks;
	slot->sequence_nr = of->stack.tid;
	slot->name = 0;
	slot->call_line = weight_ns / 1000 < UINT32_MAX ? (uint32_t)(weight_ns / 1000) : UINT32_MAX;
	slot->forward_thread = 0;
	slot->end_thread = thread->number;
	slot->kind = OPS_SLOT_SAMPLE;
	slot->scope = (uint8_t)state;
	slot->flags = 0;
	ops_publish(thread);
}

/* --- rounds ---------------------------------------------------------------------------------------------------------- */

static void sampler_forget(struct stack_sampler *of, uint64_t epoch)
{
	of->epoch = epoch;
	of->cut = 0;
	for (size_t i = 0; i < POSITIONS; i++)
		of->known[i].frame.name = 0;
	for (size_t i = 0; i < FOLLOWED_MAX; i++)
		of->followed[i].block = NULL;
}

static void sampler_round(struct stack_sampler *of, int64_t now_ns)
{
	const struct ops_collector *collector = ops_collector_get();
	uint64_t epoch = ops_collector_epoch(collector);
	int64_t weight_ns = of->before_ns ? now_ns - of->before_ns : of->period_ns;
	struct ops_thread *thread = epoch ? collector->thread() : NULL;
	struct ops_stack_threads threads;

	of->before_ns = thread ? now_ns : 0;
	if (!thread)
		return;
	if (epoch != of->epoch)
		sampler_forget(of, epoch);
	of->round++;
	ops_stack_threads_start(&threads);
	for (;;) {
		uint64_t ticks = ops_ticks(collector->tsc);

		if (!ops_stack_threads_next(&threads, &of->stack))
			break;
		if (of->stack.count)
			sampler_record(of, thread, epoch, ticks, weight_ns);
	}
	for (size_t i = 0; i < FOLLOWED_MAX; i++)
		if (of->followed[i].tid && of->followed[i].round != of->round)
			unfollow(&of->followed[i]);
}

static void *sampler_run(void *context)
{
	struct stack_sampler *of = context;
	int64_t begin_ns, before_ns, cost_ns, wait_ns, cpu_ns = ops_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	ops_recording_observe();
	do {
		before_ns = cpu_ns;
		begin_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
		sampler_round(of, begin_ns);
		cpu_ns = ops_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		cost_ns = cpu_ns - before_ns; /* with the wait before the round, which takes almost as much */
		__atomic_add_fetch(&spent_ns, cost_ns, __ATOMIC_RELAXED);
		wait_ns = (int64_t)((double)cost_ns / of->share_max);
		wait_ns = wait_ns > of->period_ns ? wait_ns : of->period_ns;
	} while (repeating_thread_wait(&of->thread, begin_ns + wait_ns));
	return NULL;
}

int64_t ops_ext_stack_sampler_spent_ns(void)
{
	return __atomic_load_n(&spent_ns, __ATOMIC_RELAXED);
}

/* --- lifetime -------------------------------------------------------------------------------------------------------- */

/* Checks that the frame of the calling function is found where it is expected. Returns NULL, or the reason of a failure: frames
 * have the layout of the interpreter for which this was compiled, and the kernel may forbid reading them. */
static const char *find_obstacle(struct stack_sampler *of)
{
#if PY_VERSION_HEX >= 0x030f0000 || defined(Py_GIL_DISABLED)
	(void)of;
	return "the layout of frames of this Python is not known";
#else
	PyFrameObject *frame = PyEval_GetFrame();
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	struct ops_stack_threads threads;
	bool found = false, any = false;

	Py_XDECREF(code); /* held by its frame */
	ops_stack_threads_start(&threads);
	errno = 0;
	while (!found && ops_stack_threads_next(&threads, &of->stack)) {
		any = true;
		found = code && of->stack.count && of->stack.items[0].code == (uintptr_t)code;
	}
	return found ? NULL : any ? "frames of this Python are not where they are expected" : strerror(errno);
#endif
}

static PyObject *stack_sampler_start(PyObject *module, PyObject *args)
{
	struct stack_sampler *of;
	PyObject *prefixes = NULL;
	const char *obstacle;
	double period_s, share_max;
	int failure;

	(void)module;
	if (!PyArg_ParseTuple(args, "ddO!:stack_sampler_start", &period_s, &share_max, &PyTuple_Type, &prefixes))
		return NULL;
	if (!(period_s >= 0.001 && period_s <= 3600))
		return PyErr_Format(PyExc_ValueError, "the period must be between 0.001 and 3600 seconds");
	if (!(share_max > 0 && share_max <= 1))
		return PyErr_Format(PyExc_ValueError, "the share of a processor must be more than 0 and at most 1");
	if (stack_sampler && stack_sampler->pid == getpid())
		return PyUnicode_FromString("stacks are being sampled already");
	if (ops_path_prefixes_set(prefixes) < 0)
		return NULL;
	of = calloc(1, sizeof(*of)); /* a forked child does not touch that of its parent */
	if (!of)
		return PyErr_NoMemory();
	of->pid = getpid();
	of->period_ns = (int64_t)(period_s * 1e9);
	of->share_max = share_max;
	for (size_t i = 0; i < FOLLOWED_MAX; i++)
		of->followed[i].fd = -1;
	ops_stacks_init();
	ops_thread_calls_init();
	obstacle = find_obstacle(of);
	failure = obstacle ? 0 : repeating_thread_start(&of->thread, sampler_run, of);
	if (obstacle || failure) {
		free(of);
		return PyUnicode_FromString(obstacle ? obstacle : strerror(failure));
	}
	stack_sampler = of;
	Py_RETURN_NONE;
}

static PyObject *stack_sampler_stop(PyObject *module, PyObject *unused)
{
	struct stack_sampler *of = stack_sampler;

	(void)module;
	(void)unused;
	stack_sampler = NULL;
	if (!of || of->pid != getpid())
		Py_RETURN_NONE;
	Py_BEGIN_ALLOW_THREADS
	repeating_thread_stop(&of->thread);
	for (size_t i = 0; i < FOLLOWED_MAX; i++)
		unfollow(&of->followed[i]);
	free(of);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyMethodDef stack_sampler_methods[] = {
	{"stack_sampler_start", stack_sampler_start, METH_VARARGS,
	 "stack_sampler_start(period_s, share_max, path_prefixes, /) -> str | None\n--\n\nSamples the Python stacks of all threads into what is "
	 "being recorded, from a separate thread that takes at most this share of a processor. Paths are recorded without the prefixes. None, "
	 "or why that is not possible."},
	{"stack_sampler_stop", stack_sampler_stop, METH_NOARGS, "stack_sampler_stop()\n--\n\nEnds that."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_stack_sampler(PyObject *module)
{
	return PyModule_AddFunctions(module, stack_sampler_methods);
}
