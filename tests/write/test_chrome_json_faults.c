/* SPDX-License-Identifier: Apache-2.0
 *
 * write/chrome_json with errors: the old file is unchanged, no other file remains, and the error states the reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <opstrobe/write.h>

#include "../base/failing.h"
#include "../trace/rich.h"
#include "folder.h"

static struct ops_trace *rich_trace(void)
{
	struct ops_trace *trace = NULL;

	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	return trace;
}

/* About 10 MB of JSON, enough to need many writes. */
static struct ops_trace *long_trace(void)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace = NULL;

	ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 2});
	for (int64_t i = 0; i < 50000; i++) {
		struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = i * 10, .end_ns = i * 10 + 5};

		event.inputs = rich_inputs(builder, i % 100);
		ops_builder_event(builder, &event);
	}
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	return trace;
}

static void expect_old(const char *path)
{
	struct ops_buffer whole = read_whole(path);

	assert_string_equal(whole.bytes, "old");
	ops_buffer_release(&whole);
	assert_int_equal(count_files(), 1);
}

static void expect_error(const struct ops_trace *trace, const char *path, int os_errno, const char *text)
{
	struct ops_error error = {0};

	assert_int_equal(ops_write_chrome_json(trace, path, NULL, &error), OPS_IO);
	assert_string_equal(error.text, text);
	assert_int_equal(error.os_errno, os_errno);
}

static void places_that_cannot_be(void **state)
{
	struct ops_trace *trace = rich_trace();

	(void)state;
	assert_int_equal(mkdir("folder.gz", 0777), 0);
	expect_error(trace, "none/out.json", ENOENT, "cannot create 'none/out.json': no such file or directory");
	expect_error(trace, "folder.gz", EISDIR, "cannot create 'folder.gz': is a directory");
	expect_error(trace, "", ENOENT, "cannot create '': no such file or directory");
	expect_error(trace, "/dev/full", ENOSPC, "cannot write '/dev/full': no space left on device");
	assert_int_equal(count_files(), 1);
	ops_trace_unref(trace);
}

static void levels_that_cannot_be(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_error error = {0};

	(void)state;
	for (int level = -1; level <= 10; level += 11) {
		struct ops_chrome_json_options options = {.size = sizeof(options), .compression_level = level};

		assert_int_equal(ops_write_chrome_json(trace, "out.gz", &options, &error), OPS_INVALID);
	}
	assert_string_equal(error.text, "compression level 10 is not between 1 and 9");
	assert_int_equal(count_files(), 0);
	ops_trace_unref(trace);
}

static void a_folder_that_is_locked(void **state)
{
	struct ops_trace *trace = rich_trace();
	int status;
	pid_t child;

	put_file("out.json", "old");
	chmod("out.json", 0666);
	chmod(*state, 0555);
	child = fork();
	if (child == 0) {
		struct ops_error error = {0};

		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(2);
		ops_write_chrome_json(trace, "out.json", NULL, &error);
		_exit(error.code == OPS_IO && error.os_errno == EACCES ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	chmod(*state, 0700);
	expect_old("out.json");
	ops_trace_unref(trace);
}

/* A limit on the size of files strikes early, in the middle, and in what close still writes. */
static void no_more_space(void **state)
{
	static const char *const paths[] = {"out.json", "out.json.gz"};
	struct ops_trace *trace = long_trace();
	struct rlimit old;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (int i = 0; i < 2; i++) {
		struct stat status;
		rlim_t whole;

		assert_int_equal(ops_write_chrome_json(trace, paths[i], NULL, NULL), OPS_OK);
		assert_int_equal(stat(paths[i], &status), 0);
		whole = (rlim_t)status.st_size;
		put_file(paths[i], "old");
		for (rlim_t limit = 100; limit; limit = limit < whole / 7 ? limit * 7 : limit < whole - 1 ? whole - 1 : 0) {
			struct ops_error error = {0};

			assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, old.rlim_max}), 0);
			assert_int_equal(ops_write_chrome_json(trace, paths[i], NULL, &error), OPS_IO);
			assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
			assert_int_equal(error.os_errno, EFBIG);
			expect_old(paths[i]);
		}
		unlink(paths[i]);
	}
	ops_trace_unref(trace);
}

/* A disk of 1 MB, where the process may mount one; /dev/full and the limit above are the same for those who may not. */
static void a_full_disk(void **state)
{
	struct ops_trace *trace = long_trace();
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(mkdir("disk", 0777), 0);
	if (mount("none", "disk", "tmpfs", 0, "size=1m") != 0) {
		ops_trace_unref(trace);
		print_message("no right to mount a disk: only /dev/full and RLIMIT_FSIZE are tested\n");
		return;
	}
	assert_int_equal(chdir("disk"), 0);
	put_file("out.json", "old");
	assert_int_equal(ops_write_chrome_json(trace, "out.json", NULL, &error), OPS_IO);
	assert_int_equal(error.os_errno, ENOSPC);
	assert_string_equal(error.text, "cannot write 'out.json': no space left on device");
	expect_old("out.json");
	assert_int_equal(chdir(".."), 0);
	assert_int_equal(umount("disk"), 0);
	ops_trace_unref(trace);
}

static void write_failing(void *context)
{
	struct ops_error error = {0};
	enum ops_code code = ops_write_chrome_json(context, "out.json.gz", NULL, &error);

	if (code == OPS_OK) {
		put_file("out.json.gz", "old");
	} else {
		assert_int_equal(code, OPS_NO_MEMORY);
		assert_int_equal(error.code, OPS_NO_MEMORY);
	}
	expect_old("out.json.gz");
}

static void survives_every_failure(void **state)
{
	struct ops_trace *trace = rich_trace();

	(void)state;
	put_file("out.json.gz", "old");
	assert_true(fail_each(write_failing, trace) >= 15);
	ops_trace_unref(trace);
}

static int cancel_after(void *context, uint64_t bytes)
{
	uint64_t *calls_left = context;

	assert_true(bytes > 0);
	return (*calls_left)-- == 0;
}

static void cancelling(void **state)
{
	struct ops_trace *trace = long_trace();

	(void)state;
	put_file("out.json", "old");
	for (uint64_t calls = 0; calls < 8; calls++) {
		uint64_t calls_left = calls;
		struct ops_chrome_json_options options = {.size = sizeof(options), .progress = cancel_after, .progress_context = &calls_left};
		struct ops_error error = {0};

		assert_int_equal(ops_write_chrome_json(trace, "out.json", &options, &error), OPS_STATE);
		assert_string_equal(error.text, "writing 'out.json' was cancelled");
		assert_int_equal(calls_left, UINT64_MAX);
		expect_old("out.json");
	}
	ops_trace_unref(trace);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(places_that_cannot_be),
		IN_FOLDER(levels_that_cannot_be),
		IN_FOLDER(a_folder_that_is_locked),
		IN_FOLDER(no_more_space),
		IN_FOLDER(a_full_disk),
		IN_FOLDER(survives_every_failure),
		IN_FOLDER(cancelling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
