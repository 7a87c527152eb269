/* SPDX-License-Identifier: Apache-2.0
 *
 * watch/left_behind, watch/watch_page: processes that end, each in its own way, leave a watch file that becomes an incident; their
 * own handlers of signals are called as before.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sanitizer.h"
#include "incidents.h"

static char box[80];

static int box_make(void **state)
{
	if (directory_make(state))
		return -1;
	snprintf(box, sizeof(box), "%s/box", directory);
	return mkdir(box, 0700);
}

static void read_own_stack(struct ops_stack *ret_stack)
{
	ret_stack->tid = getpid();
	ret_stack->count = 1;
	ret_stack->frames[0].line = 23;
	strcpy(ret_stack->frames[0].function, "train");
	strcpy(ret_stack->frames[0].file, "/home/train.py");
}

static void watch_begin(const char *recording)
{
	struct ops_watch_options options = {.incidents = directory, .recording = recording, .rank = -1, .read_own_stack = read_own_stack};
	struct ops_error error;
	char page[128];

	snprintf(page, sizeof(page), "%s/%d" OPS_WATCH_SUFFIX, box, (int)getpid());
	options.page = page;
	options.triggers = 1u << OPS_TRIGGER_SIGNAL;
	if (ops_watch_start(&options, &error))
		_exit(99);
	ops_watch_step(41, 0);
}

/* Runs the function in a watched process. Returns its status, as of waitpid(). */
static int run_child(void (*run)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct sigaction none = {.sa_handler = SIG_DFL};

		sigaction(SIGSEGV, &none, NULL); /* a sanitizer's */
		sigaction(SIGABRT, &none, NULL);
		run();
		_exit(98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static size_t files_in_box(void)
{
	char command[128];
	size_t count = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", box);
	pipe = popen(command, "r");
	assert_int_equal(fscanf(pipe, "%zu", &count), 1);
	pclose(pipe);
	return count;
}

static void expect_incident(const char *trigger)
{
	char text[64];

	assert_int_equal(ops_incidents_adopt(box, directory, 0), 1);
	assert_int_equal(incidents_count(), 1);
	assert_int_equal(files_in_box(), 0);
	snprintf(text, sizeof(text), "\"trigger\":\"%s\"", trigger);
	expect_report(text);
	expect_report("\"number\":42,");
	assert_int_equal(ops_incidents_adopt(box, directory, 0), 0);
}

/* --- ends -------------------------------------------------------------------------------------------------------------- */

static void fault(void)
{
	volatile int *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	watch_begin(NULL);
#if OPS_ADDRESS_SANITIZER
	(void)nowhere; /* it would be reported by the sanitizer */
	raise(SIGSEGV);
#else
	*nowhere = 1;
#endif
}

static void segmentation_fault(void **state)
{
	int status = run_child(fault);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	expect_incident("signal");
	expect_report("\"name\":\"SIGSEGV\"");
	expect_report("\"file\":\"/home/train.py\",\"line\":23");
}

static void call_abort(void)
{
	watch_begin(NULL);
	abort();
}

static void aborted(void **state)
{
	int status = run_child(call_abort);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	expect_incident("signal");
	expect_report("\"name\":\"SIGABRT\"");
}

static void kill_self(void)
{
	watch_begin(NULL);
	kill(getpid(), SIGKILL);
}

static void killed(void **state)
{
	int status = run_child(kill_self);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	expect_incident("killed");
}

static void exit_early(void)
{
	watch_begin(NULL);
	ops_watch_exit(3);
	_exit(3);
}

static void exited(void **state)
{
	int status = run_child(exit_early);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	expect_incident("exit");
	expect_report("\"exit\":{\"status\":3,");
}

static void stop_watch(void)
{
	watch_begin(NULL);
	ops_watch_stop();
	kill(getpid(), SIGKILL);
}

static void ended_after_the_watch(void **state)
{
	run_child(stop_watch);
	(void)state;
	assert_int_equal(files_in_box(), 0);
	assert_int_equal(ops_incidents_adopt(box, directory, 0), 0);
}

/* A child of the watched process is another process. */
static void fork_again(void)
{
	int status = 0;
	pid_t child;

	watch_begin(NULL);
	child = fork();
	if (!child)
		raise(SIGTERM);
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status) || ops_incidents_adopt(box, directory, 0))
		_exit(97);
	ops_watch_stop();
	_exit(0);
}

static void child_of_a_watched_process(void **state)
{
	int status = run_child(fork_again);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(incidents_count(), 0);
}

/* --- handlers of the program ------------------------------------------------------------------------------------------- */

static void handle_and_exit(int number)
{
	_exit(number == SIGSEGV ? 42 : 43);
}

static void fault_with_handler(void)
{
	signal(SIGSEGV, handle_and_exit);
	watch_begin(NULL);
	raise(SIGSEGV);
}

static void earlier_handler_is_called(void **state)
{
	int status = run_child(fault_with_handler);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	expect_incident("signal");
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
	(void)number;
	handled++;
}

static void handles_end_request(void)
{
	signal(SIGTERM, handle);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, handle);
	watch_begin(NULL);
	raise(SIGTERM);
	raise(SIGHUP);
	raise(SIGUSR2);
	ops_watch_stop();
	raise(SIGTERM);
	raise(SIGUSR2);
	_exit(handled == 4 ? 0 : 1);
}

static void handled_signals_are_not_ends(void **state)
{
	int status = run_child(handles_end_request);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(files_in_box(), 0);
}

static void unhandled_after_stop(void)
{
	watch_begin(NULL);
	ops_watch_stop();
	raise(SIGUSR2); /* its default ends the process */
}

static void handlers_are_restored(void **state)
{
	int status = run_child(unhandled_after_stop);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
	char path[192];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", box, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void other_files_are_left_alone(void **state)
{
	(void)state;
	write_file("short" OPS_WATCH_SUFFIX, "OWCH");
	write_file("other.txt", "x");
	assert_int_equal(ops_incidents_adopt(box, directory, 0), 0);
	assert_int_equal(ops_incidents_adopt("/nonexistent", directory, 0), 0);
	assert_int_equal(files_in_box(), 2);
}

static void kill_with_recordings(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/kept.oprec", directory); /* not in the box */
	watch_begin(path);
	kill(getpid(), SIGKILL);
}

/* The path in a watch file must not make it remove another file. */
static void recordings_elsewhere_are_kept(void **state)
{
	char path[160];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/kept.oprec", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	run_child(kill_with_recordings);
	assert_int_equal(ops_incidents_adopt(box, directory, 0), 1);
	assert_int_equal(access(path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_make, directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(segmentation_fault),
		TEST(aborted),
		TEST(killed),
		TEST(exited),
		TEST(ended_after_the_watch),
		TEST(child_of_a_watched_process),
		TEST(earlier_handler_is_called),
		TEST(handled_signals_are_not_ends),
		TEST(handlers_are_restored),
		TEST(other_files_are_left_alone),
		TEST(recordings_elsewhere_are_kept),
	};

	return cmocka_run_group_tests_name("watch/ended", tests, NULL, NULL);
}
