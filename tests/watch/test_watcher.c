/* SPDX-License-Identifier: Apache-2.0
 *
 * watch/watcher: each trigger makes its incident once, at the right time, and healthy programs have none.
 *
 * The test controls the clock and the watching thread: the thread waits in sem_timedwait() until the test lets it make one round.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <opstrobe/internal/clock.h>

#include "incidents.h"
#include "watch/watch_task.h"

#define MS INT64_C(1000000)
#define STEP_NS (100 * MS)
#define START_NS (1000 * OPS_SECOND_NS)
#define WALL_NS (INT64_C(1700000000) * OPS_SECOND_NS)
#define GIB (INT64_C(1) << 30)

/* --- clock and rounds -------------------------------------------------------------------------------------------------- */

static int64_t clock_ns; /* the monotonic clock */
static struct watch_memory memory;
static struct watch_task task;
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t allowed, made; /* rounds */
	bool free;              /* rounds need no permission */
	int64_t until_ns;       /* what the thread waits for */
} rounds = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_sem_timedwait(sem_t *semaphore, const struct timespec *until);
void __wrap_watch_memory_read(struct watch_memory *ret_memory);
void __wrap_watch_task_read(int64_t tid, struct watch_task *ret_task);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int64_t now_ns = __atomic_load_n(&clock_ns, __ATOMIC_RELAXED);

	if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = ops_clock_timespec(clock == CLOCK_REALTIME ? WALL_NS + now_ns : now_ns);
	return 0;
}

void __wrap_watch_memory_read(struct watch_memory *ret_memory)
{
	*ret_memory = memory;
}

void __wrap_watch_task_read(int64_t tid, struct watch_task *ret_task)
{
	assert_int_equal(tid, getpid());
	*ret_task = task;
}

int __wrap_sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	(void)semaphore;
	pthread_mutex_lock(&rounds.lock);
	rounds.until_ns = (int64_t)until->tv_sec * OPS_SECOND_NS + until->tv_nsec - WALL_NS;
	rounds.made++;
	pthread_cond_broadcast(&rounds.changed);
	while (!rounds.free && rounds.made > rounds.allowed)
		pthread_cond_wait(&rounds.changed, &rounds.lock);
	pthread_mutex_unlock(&rounds.lock);
	return 0;
}

/* Waits until the thread has made all permitted rounds and waits again. */
static void rounds_finish(void)
{
	pthread_mutex_lock(&rounds.lock);
	while (rounds.made <= rounds.allowed)
		pthread_cond_wait(&rounds.changed, &rounds.lock);
	pthread_mutex_unlock(&rounds.lock);
}

static void make_round(void)
{
	pthread_mutex_lock(&rounds.lock);
	rounds.allowed++;
	pthread_cond_broadcast(&rounds.changed);
	pthread_mutex_unlock(&rounds.lock);
	rounds_finish();
}

static void advance(int64_t ns)
{
	__atomic_fetch_add(&clock_ns, ns, __ATOMIC_RELAXED);
}

/* Advances the clock, with a round each second. */
static void pass(int64_t seconds)
{
	while (seconds-- > 0) {
		advance(OPS_SECOND_NS);
		make_round();
	}
}

/* --- the watched program ----------------------------------------------------------------------------------------------- */

static int64_t step_number;
static enum ops_detail detail;

static size_t read_stacks(struct ops_stack *ret_stacks, size_t capacity)
{
	assert_true(capacity > 0);
	memset(&ret_stacks[0], 0, sizeof(ret_stacks[0]));
	ret_stacks[0].tid = getpid(); /* the main thread */
	ret_stacks[0].count = 1;
	ret_stacks[0].state = 'R';
	ret_stacks[0].system_call = -1;
	ret_stacks[0].frames[0].line = 17;
	strcpy(ret_stacks[0].frames[0].function, "train");
	strcpy(ret_stacks[0].frames[0].file, "/home/train.py");
	return 1;
}

static bool with_frees, with_operators;

static void set_detail(enum ops_detail of, bool frees, bool operators)
{
	detail = of;
	with_frees = frees;
	with_operators = operators;
}

static void begin_watch(struct ops_watch_options options)
{
	struct ops_error error;

	clock_ns = START_NS;
	memory = (struct watch_memory){.rss_bytes = GIB};
	rounds.allowed = rounds.made = 0;
	rounds.free = false;
	step_number = 0;
	options.incidents = directory;
	options.rank = -1;
	if (!options.triggers)
		options.triggers = (1u << OPS_TRIGGER_COUNT) - 1;
	if (!options.per_hour)
		options.per_hour = 1000;
	options.read_stacks = read_stacks;
	assert_int_equal(ops_watch_start(&options, &error), OPS_OK);
	rounds_finish();
}

static void end_watch(void)
{
	pthread_mutex_lock(&rounds.lock);
	rounds.free = true;
	pthread_cond_broadcast(&rounds.changed);
	pthread_mutex_unlock(&rounds.lock);
	ops_watch_stop();
}

static void make_step(int64_t duration_ns)
{
	advance(duration_ns);
	ops_watch_step(step_number++, 0);
}

static void make_steps(int count, int64_t duration_ns)
{
	while (count-- > 0) {
		make_step(duration_ns);
		make_round();
	}
}

/* --- slow steps -------------------------------------------------------------------------------------------------------- */

static void slow_step(void **state)
{
	double limit_ns;
	int64_t begin_ns;

	(void)state;
	begin_watch((struct ops_watch_options){0});
	assert_true(isinf(ops_watch_limit_ns()));
	make_steps(70, STEP_NS);
	assert_int_equal(incidents_count(), 0);
	limit_ns = ops_watch_limit_ns();
	assert_true(limit_ns > 1.4 * (double)STEP_NS && limit_ns < 6 * (double)STEP_NS);
	begin_ns = clock_ns;
	assert_true(rounds.until_ns <= begin_ns + (int64_t)limit_ns); /* it wakes when the step is too long, or before that */

	advance((int64_t)limit_ns + MS);
	make_round();
	for (int64_t last_ns = clock_ns + 50 * 20 * MS; clock_ns < last_ns;) { /* samples, 20 ms apart, and a look each second */
		assert_in_range(rounds.until_ns - clock_ns, 1, 20 * MS);
		advance(rounds.until_ns - clock_ns);
		make_round();
	}
	assert_int_equal(incidents_count(), 0); /* only when it has ended is its length known */
	make_step(0);
	make_round();
	assert_int_equal(incidents_count(), 1);
	expect_report("\"trigger\":\"slow_step\"");
	expect_report("\"number\":70,\"duration_ns\":1");
	expect_report("\"usual_ns\":100000000,\"goes_on\":false");
	expect_report("\"sample_count\":51");
	expect_report("/home/train.py:17 in train");
	make_steps(100, STEP_NS);
	end_watch();
	assert_int_equal(incidents_count(), 1);
}

static void slow_step_without_sample(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	make_steps(70, STEP_NS);
	make_step(20 * STEP_NS); /* the thread did not get a turn before it ended */
	make_round();
	assert_int_equal(incidents_count(), 1);
	expect_report("\"duration_ns\":2000000000");
	make_steps(20, STEP_NS);
	make_step(20 * STEP_NS);
	end_watch(); /* reports what is pending */
	assert_int_equal(incidents_count(), 2);
}

/* A step of less than a second that is beyond its limit only because others had the processors is not slow. */
static void stalled_steps(void **state)
{
	int64_t limit_ns;

	(void)state;
	begin_watch((struct ops_watch_options){0});
	make_steps(300, STEP_NS);
	limit_ns = (int64_t)ops_watch_limit_ns();
	assert_true(limit_ns < 200 * MS);
	advance(limit_ns + 5 * MS);
	make_round(); /* the first sample, late */
	task.waited_ns += 100 * MS;
	advance(100 * MS);
	make_step(0);
	make_round();
	assert_int_equal(incidents_count(), 0);
	make_steps(100, STEP_NS);
	make_step((int64_t)ops_watch_limit_ns() + 100 * MS); /* the thread of the watch did not get a processor either */
	make_round();
	assert_int_equal(incidents_count(), 0);
	make_steps(130, STEP_NS);
	advance((int64_t)ops_watch_limit_ns() + 5 * MS);
	make_round();
	task.waited_ns += 80 * MS;
	advance(100 * MS);
	make_step(0);
	make_round();
	assert_int_equal(incidents_count(), 1);
	make_steps(170, STEP_NS);
	make_step(1100 * MS); /* a second is too long */
	make_round();
	assert_int_equal(incidents_count(), 2);
	task = (struct watch_task){0};
	end_watch();
}

static void new_normal(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	make_steps(70, STEP_NS);
	make_steps(200, 20 * STEP_NS);
	assert_int_equal(incidents_count(), 1);
	assert_true(ops_watch_limit_ns() > 20 * (double)STEP_NS);
	end_watch();
	assert_int_equal(incidents_count(), 1);
}

static void time_between_steps(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	make_steps(70, STEP_NS);
	ops_watch_step_break(); /* an evaluation */
	pass(60);
	make_step(0);
	make_steps(20, STEP_NS);
	end_watch();
	assert_int_equal(incidents_count(), 0);
}

static void collections(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	make_steps(70, STEP_NS);
	advance(OPS_SECOND_NS);
	make_round();
	ops_watch_collection(true);
	advance(700 * MS);
	make_round();
	ops_watch_collection(false);
	advance(200 * MS);
	ops_watch_collection(true); /* goes on when the step's end is reported */
	advance(100 * MS);
	make_step(0);
	make_round();
	end_watch();
	expect_report("\"collecting_ns\":800000000");
}

/* --- limit of incidents ------------------------------------------------------------------------------------------------ */

static size_t trigger(enum ops_trigger which)
{
	char path[4096];
	struct ops_error error;

	assert_int_equal(ops_watch_trigger(which, NULL, 0, path, &error), OPS_OK);
	return path[0] ? 1 : 0;
}

static void token_bucket(void **state)
{
	size_t made = 0;

	(void)state;
	begin_watch((struct ops_watch_options){.per_hour = 3});
	for (int i = 0; i < 5; i++)
		made += trigger(OPS_TRIGGER_EXCEPTION);
	assert_int_equal(made, 3);
	assert_int_equal(incidents_count(), 3);
	advance(19 * 60 * OPS_SECOND_NS);
	assert_int_equal(trigger(OPS_TRIGGER_OOM), 0);
	advance(61 * OPS_SECOND_NS);
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 1);
	expect_report("\"suppressed\":{\"exception\":2,\"oom\":1}");
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 0);
	advance(100 * 3600 * OPS_SECOND_NS); /* a pause does not save up more than the burst */
	made = 0;
	for (int i = 0; i < 5; i++)
		made += trigger(OPS_TRIGGER_EXCEPTION);
	assert_int_equal(made, 3);
	end_watch();
}

static void less_than_one_an_hour(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){.per_hour = 0.5});
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 1);
	advance(119 * 60 * OPS_SECOND_NS);
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 0);
	advance(2 * 60 * OPS_SECOND_NS);
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 1);
	end_watch();
}

static void unselected_triggers(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){.triggers = 1u << OPS_TRIGGER_OOM, .per_hour = 1});
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 0);
	make_steps(70, STEP_NS);
	make_steps(1, 20 * STEP_NS);
	pass(300);
	assert_int_equal(incidents_count(), 0);
	assert_int_equal(trigger(OPS_TRIGGER_OOM), 1); /* they did not use up the limit */
	expect_report("\"suppressed\":{}");
	end_watch();
}

/* --- no progress ------------------------------------------------------------------------------------------------------- */

static void hang(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){.hang_ns = 30 * (uint64_t)OPS_SECOND_NS});
	pass(100);
	assert_int_equal(incidents_count(), 0); /* the program starts */
	make_steps(3, STEP_NS);
	pass(1); /* sees the progress */
	pass(29);
	assert_int_equal(incidents_count(), 0);
	pass(1);
	assert_int_equal(incidents_count(), 1);
	expect_report("\"trigger\":\"hang\"");
	expect_report("\"quiet_ns\":30000000000");
	expect_report("\"goes_on\":true");
	pass(300);
	assert_int_equal(incidents_count(), 1); /* the same hang */
	make_step(0);
	pass(40);
	assert_int_equal(incidents_count(), 2); /* another one */
	end_watch();
}

/* --- memory ------------------------------------------------------------------------------------------------------------ */

static void memory_limit(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	memory = (struct watch_memory){.rss_bytes = 90 * GIB, .limit_bytes = 100 * GIB};
	pass(2);
	assert_int_equal(incidents_count(), 0);
	memory.rss_bytes = 96 * GIB;
	pass(5);
	assert_int_equal(incidents_count(), 1);
	expect_report("\"trigger\":\"memory\"");
	memory.rss_bytes = 90 * GIB; /* not far below it */
	pass(2);
	memory.rss_bytes = 96 * GIB;
	pass(2);
	assert_int_equal(incidents_count(), 1);
	memory.rss_bytes = 80 * GIB;
	pass(2);
	memory.rss_bytes = 96 * GIB;
	pass(2);
	assert_int_equal(incidents_count(), 2);
	end_watch();
}

static void given_memory_limit(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){.rss_limit_bytes = (uint64_t)(10 * GIB)});
	memory.rss_bytes = 10 * GIB;
	pass(2);
	assert_int_equal(incidents_count(), 0);
	memory.rss_bytes = 10 * GIB + 1;
	pass(2);
	assert_int_equal(incidents_count(), 1);
	end_watch();
}

/* Allocations of the control group fail: memory of other processes counts as well, so this one need not hold much. */
static void failed_allocations_of_the_group(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){0});
	memory.limit_bytes = 100 * GIB;
	pass(1);
	for (int i = 0; i < 20; i++) {
		memory.failures++;
		pass(1);
	}
	assert_int_equal(incidents_count(), 1); /* it goes on */
	pass(10);
	memory.failures++;
	pass(1);
	assert_int_equal(incidents_count(), 2);
	end_watch();
}

/* --- requests and detail ----------------------------------------------------------------------------------------------- */

static void request_by_signal(void **state)
{
	(void)state;
	begin_watch((struct ops_watch_options){.triggers = 1u << OPS_TRIGGER_SIGNAL});
	make_steps(3, STEP_NS);
	assert_int_equal(raise(SIGUSR2), 0);
	make_round();
	assert_int_equal(incidents_count(), 1);
	expect_report("\"trigger\":\"request\"");
	expect_report("\"step\":{\"number\":3,");
	make_round();
	assert_int_equal(incidents_count(), 1);
	end_watch();
}

static void shadow_steps(void **state)
{
	uint32_t none = 0;

	(void)state;
	detail = OPS_DETAIL_ALL;
	begin_watch((struct ops_watch_options){.set_detail = set_detail});
	for (int i = 0; i < 2000 && detail != OPS_DETAIL_STEPS; i++)
		make_steps(1, STEP_NS);
	assert_int_equal(detail, OPS_DETAIL_STEPS);
	assert_true(with_frees);
	advance((int64_t)ops_watch_limit_ns() + MS);
	make_round();
	assert_int_equal(detail, OPS_DETAIL_ALL); /* a slow step is recorded */
	make_step(0);
	make_steps(20, STEP_NS);
	for (int i = 0; i < 2000 && detail != OPS_DETAIL_STEPS; i++, none++)
		make_steps(1, STEP_NS);
	assert_true(none < 2000);
	end_watch();
	assert_int_equal(detail, OPS_DETAIL_ALL);
}

/* A detail that takes much is switched off as soon as a few shadow steps show it. */
static void detail_is_judged_early(void **state)
{
	(void)state;
	detail = OPS_DETAIL_ALL;
	begin_watch((struct ops_watch_options){.set_detail = set_detail, .budget_ppm = 20000});
	for (int i = 0; i < 1000 && with_frees; i++) {
		make_step(detail >= OPS_DETAIL_ALLOCATIONS ? 2 * MS : MS);
		make_round();
	}
	assert_false(with_frees);
	assert_true(clock_ns - START_NS < OPS_SECOND_NS);
	end_watch();
}

/* The rest of a step that takes too long has operators, although the budget excludes them; not of each such step. */
static void slow_steps_have_operators(void **state)
{
	enum ops_detail before;

	(void)state;
	detail = OPS_DETAIL_ALL;
	begin_watch((struct ops_watch_options){.set_detail = set_detail, .budget_ppm = 20000});
	for (int i = 0; i < 1000 && with_frees; i++) {
		make_step(detail >= OPS_DETAIL_ALLOCATIONS ? 2 * MS : MS);
		make_round();
	}
	make_steps(200, MS);
	for (int i = 0; i < 2; i++) {
		assert_false(with_operators);
		before = ops_watch_usual_detail();
		assert_true(before < OPS_DETAIL_ALL);
		advance((int64_t)ops_watch_limit_ns() + MS);
		make_round();
		assert_true(with_operators);
		assert_int_equal(detail, before);
		advance(2 * OPS_SECOND_NS);
		if (i)
			ops_watch_step_break();
		else
			make_step(0);
		assert_false(with_operators);
		make_steps(600, MS);
		advance((int64_t)ops_watch_limit_ns() + MS);
		make_round();
		assert_false(with_operators); /* so soon after it */
		make_step(0);
		ops_watch_step_break();
		pass(200);
		make_steps(200, MS);
	}
	end_watch();
}

/* On a busy machine, steps differ because their thread waits for a processor. What recording takes is found although these waits are
 * many times as long. */
static void waits_for_a_processor_do_not_count(void **state)
{
	uint64_t random = 88172645463325252u;

	(void)state;
	detail = OPS_DETAIL_ALL;
	task = (struct watch_task){0};
	begin_watch((struct ops_watch_options){.set_detail = set_detail, .budget_ppm = 20000});
	for (int i = 0; i < 200 && with_frees; i++) {
		int64_t wait_ns;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		wait_ns = (int64_t)(random % (uint64_t)STEP_NS);
		task.waited_ns += wait_ns;
		make_step(STEP_NS + wait_ns + (detail >= OPS_DETAIL_ALLOCATIONS ? STEP_NS / 20 : 0));
		make_round();
	}
	assert_false(with_frees);
	task = (struct watch_task){0};
	end_watch();
}

static int64_t make_marks(int count, int64_t step_ns)
{
	int64_t steps = 0;

	for (int i = 0; i < count; i++) {
		uint32_t group = ops_watch_group();

		advance(group * (step_ns + (detail > OPS_DETAIL_STEPS ? step_ns / 2 : 0)));
		ops_watch_mark_step(0, 0, group);
		make_round();
		steps += group;
	}
	return steps;
}

/* Only if nothing else is recorded any more. */
static void tiny_steps_are_marked_in_groups(void **state)
{
	int64_t tiny_ns = MS / 10, group_ns;

	(void)state;
	detail = OPS_DETAIL_ALL;
	assert_int_equal(ops_watch_group(), 1);
	begin_watch((struct ops_watch_options){.set_detail = set_detail, .budget_ppm = 10000});
	for (int i = 0; i < 100 && ops_watch_group() == 1; i++)
		make_marks(20, tiny_ns);
	assert_int_equal(detail, OPS_DETAIL_STEPS);
	make_marks(200, tiny_ns);
	group_ns = ops_watch_group() * tiny_ns;
	assert_in_range(group_ns, MS, 4 * MS);
	assert_true(ops_watch_limit_ns() > (double)group_ns && ops_watch_limit_ns() < 200 * (double)MS); /* of a group */
	make_marks(1, 100 * MS);
	make_round();
	assert_int_equal(incidents_count(), 1);
	make_marks(40, 50 * MS); /* the program has become slower */
	assert_int_equal(ops_watch_group(), 1);
	end_watch();
	assert_int_equal(ops_watch_group(), 1);
}

/* Without a budget, and if steps are not tiny. */
static void other_steps_are_marked_one_by_one(void **state)
{
	static const struct ops_watch_options options[] = {
		{.set_detail = set_detail}, {.set_detail = set_detail, .budget_ppm = 10000}, {.budget_ppm = 10000}};
	static const int64_t lengths_ns[] = {MS / 10, 3 * MS, MS / 10};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		detail = OPS_DETAIL_ALL;
		begin_watch(options[i]);
		assert_int_equal(make_marks(600, lengths_ns[i]), 600);
		end_watch();
	}
}

/* A twentieth of the time. */
static int64_t read_threads_ns(void)
{
	return clock_ns / 20;
}

/* The threads of the recorder run in shadow steps, too. */
static void threads_of_the_recorder_count(void **state)
{
	(void)state;
	detail = OPS_DETAIL_ALL;
	begin_watch((struct ops_watch_options){.set_detail = set_detail, .read_threads_ns = read_threads_ns, .budget_ppm = 20000});
	for (int i = 0; i < 1000 && with_frees; i++) {
		make_steps(20, STEP_NS);
		make_round();
	}
	assert_false(with_frees);
	end_watch();
}

/* Returns the number of calls until one is a shadow call. */
static uint32_t make_calls(int64_t call_ns)
{
	uint32_t count = 0;

	for (; count < 2000 && detail != OPS_DETAIL_STEPS; count++) {
		int64_t begin_ns = clock_ns;

		advance(call_ns);
		ops_watch_call(0, begin_ns);
	}
	return count;
}

static void *call_once(void *unused)
{
	(void)unused;
	ops_watch_call(0, clock_ns - STEP_NS);
	return NULL;
}

static void shadow_calls(void **state)
{
	pthread_t other;

	(void)state;
	detail = OPS_DETAIL_ALL;
	assert_false(ops_watch_wants_calls());
	begin_watch((struct ops_watch_options){.set_detail = set_detail});
	assert_true(ops_watch_wants_calls());
	assert_true(make_calls(STEP_NS) < 2000);
	assert_true(with_frees);
	assert_int_equal(pthread_create(&other, NULL, call_once, NULL), 0);
	pthread_join(other, NULL);
	assert_int_equal(detail, OPS_DETAIL_STEPS); /* calls of another thread do not end it */
	advance(11 * OPS_SECOND_NS);
	make_round();
	assert_int_equal(detail, OPS_DETAIL_ALL); /* nor is a long time without calls left unrecorded */
	assert_int_equal(pthread_create(&other, NULL, call_once, NULL), 0);
	pthread_join(other, NULL);
	assert_int_equal(make_calls(STEP_NS / 200), 2000); /* the other thread makes the calls now */
	advance(3 * OPS_SECOND_NS);
	assert_true(make_calls(STEP_NS) < 2000);
	make_step(0);
	assert_false(ops_watch_wants_calls());
	assert_int_equal(detail, OPS_DETAIL_ALL); /* steps are better */
	assert_int_equal(make_calls(STEP_NS), 2000);
	make_steps(20, STEP_NS);
	for (int i = 0; i < 2000 && detail != OPS_DETAIL_STEPS; i++)
		make_steps(1, STEP_NS);
	assert_int_equal(detail, OPS_DETAIL_STEPS);
	end_watch();
}

static void one_watch_at_a_time(void **state)
{
	struct ops_watch_options options = {.incidents = directory};
	struct ops_error error;

	(void)state;
	assert_false(ops_watch_is_on());
	assert_int_equal(trigger(OPS_TRIGGER_EXCEPTION), 0);
	assert_false(ops_watch_step(1, 0));
	begin_watch((struct ops_watch_options){0});
	assert_true(ops_watch_is_on());
	assert_int_equal(ops_watch_start(&options, &error), OPS_STATE);
	end_watch();
	ops_watch_stop(); /* has no effect */
	assert_false(ops_watch_is_on());
}

static void healthy_program(void **state)
{
	uint64_t random = 88172645463325252u;

	(void)state;
	begin_watch((struct ops_watch_options){.hang_ns = 30 * (uint64_t)OPS_SECOND_NS});
	for (int i = 0; i < 20000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		make_step(STEP_NS / 2 + (int64_t)(random % (uint64_t)STEP_NS));
		if (i % 8 == 0)
			make_round();
	}
	end_watch();
	assert_int_equal(incidents_count(), 0);
}

/* A failed test leaves the watch running. */
static int stop_and_remove(void **state)
{
	if (ops_watch_is_on())
		end_watch();
	return directory_remove(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, directory_make, stop_and_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slow_step),
		TEST(slow_step_without_sample),
		TEST(stalled_steps),
		TEST(new_normal),
		TEST(time_between_steps),
		TEST(collections),
		TEST(token_bucket),
		TEST(less_than_one_an_hour),
		TEST(unselected_triggers),
		TEST(hang),
		TEST(memory_limit),
		TEST(given_memory_limit),
		TEST(failed_allocations_of_the_group),
		TEST(request_by_signal),
		TEST(shadow_steps),
		TEST(detail_is_judged_early),
		TEST(slow_steps_have_operators),
		TEST(tiny_steps_are_marked_in_groups),
		TEST(other_steps_are_marked_one_by_one),
		TEST(waits_for_a_processor_do_not_count),
		TEST(threads_of_the_recorder_count),
		TEST(shadow_calls),
		TEST(one_watch_at_a_time),
		TEST(healthy_program),
	};

	return cmocka_run_group_tests_name("watch/watcher", tests, NULL, NULL);
}
