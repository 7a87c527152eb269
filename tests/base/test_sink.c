/* SPDX-License-Identifier: Apache-2.0
 *
 * base/sink: complete new files or unchanged old ones, links, modes, gzip, full disks, failing allocations. Each test works in a
 * new folder and then checks its contents.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/sink.h"
#include "failing.h"

/* --- a folder of one's own ----------------------------------------------------------------------------------------- */

static int enter_folder(void **state)
{
	char *path = strdup("/tmp/opstrobe-sink-XXXXXX");

	*state = mkdtemp(path);
	umask(022);
	return *state && chdir(path) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	char command[256];
	int result;

	snprintf(command, sizeof(command), "chmod -R u+rwx '%s' && rm -rf '%s'", (char *)*state, (char *)*state);
	result = chdir("/") == 0 ? system(command) : -1;
	free(*state);
	return result;
}

static size_t count_files(const char *folder)
{
	DIR *entries = opendir(folder);
	size_t count = 0;

	while (readdir(entries))
		count++;
	closedir(entries);
	return count - 2;
}

/* Returns whether this file system has files without a name. */
static bool has_unnamed_files(void)
{
	int fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	return fd >= 0;
}

static void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "r");
	char *read_bytes = malloc(size + 2);

	assert_non_null(file);
	assert_int_equal(fread(read_bytes, 1, size + 2, file), size);
	assert_memory_equal(read_bytes, bytes, size);
	fclose(file);
	free(read_bytes);
}

static void expect_text(const char *path, const char *text)
{
	expect_file(path, text, strlen(text));
}

static unsigned mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}

static struct ops_sink *open_sink(const char *path, int level)
{
	struct ops_error error = {0};
	struct ops_sink *sink = NULL;

	if (ops_sink_open_file(path, level, &sink, &error) != OPS_OK)
		fail_msg("%s", error.text);
	return sink;
}

static void close_sink(struct ops_sink *sink)
{
	struct ops_error error = {0};

	if (ops_sink_close(sink, &error) != OPS_OK)
		fail_msg("%s", error.text);
}

static void write_text(const char *path, const char *text)
{
	struct ops_sink *sink = open_sink(path, 0);

	ops_sink_write(sink, text, strlen(text));
	close_sink(sink);
}

/* --- what is written ----------------------------------------------------------------------------------------------- */

#define BIG_BYTES 3000000u

/* In pieces of all sizes, by both ways of writing. */
static void write_big(struct ops_sink *sink, const char *bytes)
{
	size_t at = 0;

	for (size_t piece = 1; at < BIG_BYTES; piece = piece * 3 % 400009) {
		size_t part = piece < BIG_BYTES - at ? piece : BIG_BYTES - at;

		if (piece % 2 && part <= OPS_SINK_ROOM) {
			memcpy(ops_sink_room(sink), bytes + at, part);
			ops_sink_advance(sink, part);
		} else {
			ops_sink_write(sink, bytes + at, part);
		}
		at += part;
		assert_int_equal(ops_sink_total(sink), at);
	}
}

static char *make_big(void)
{
	char *bytes = malloc(BIG_BYTES);
	uint64_t seed = 88172645463325252u;

	for (size_t i = 0; i < BIG_BYTES; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		bytes[i] = (char)(i % 1000 < 500 ? 'a' + i % 26 : seed);
	}
	return bytes;
}

static void plain_bytes_arrive(void **state)
{
	char *bytes = make_big();
	struct ops_sink *sink = open_sink("out", 0);

	(void)state;
	write_big(sink, bytes);
	close_sink(sink);
	expect_file("out", bytes, BIG_BYTES);
	assert_int_equal(count_files("."), 1);
	assert_int_equal(mode_of("out"), 0644);
	free(bytes);
}

static void gzip_bytes_arrive(void **state)
{
	char *bytes = make_big();
	char *back = malloc(BIG_BYTES + 1);

	(void)state;
	for (int level = 1; level <= 9; level += 4) {
		struct ops_sink *sink = open_sink("out.gz", level);
		gzFile file;

		write_big(sink, bytes);
		close_sink(sink);
		file = gzopen("out.gz", "rb");
		assert_int_equal(gzread(file, back, BIG_BYTES + 1), BIG_BYTES);
		assert_false(gzdirect(file));
		assert_int_equal(gzclose(file), Z_OK);
		assert_memory_equal(back, bytes, BIG_BYTES);
	}
	free(back);
	free(bytes);
}

/* The result is one member of gzip, whatever the number of threads. */
static void threads_write_one_member(void **state)
{
	static const unsigned threads[] = {1, 2, 3, 100};
	static const size_t sizes[] = {0, 1, 256u << 10, (256u << 10) + 1, 600000, BIG_BYTES};
	char *bytes = make_big(), *back = malloc(BIG_BYTES + 1);

	(void)state;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]) * (sizeof(sizes) / sizeof(sizes[0])); i++) {
		size_t size = sizes[i / 4], packed_size;
		z_stream stream = {0};
		struct ops_sink *sink;
		char *packed;
		FILE *file;

		assert_int_equal(ops_sink_open_gzip("out.gz", i % 2 ? 9 : 1, threads[i % 4], &sink, NULL), OPS_OK);
		if (size == BIG_BYTES)
			write_big(sink, bytes);
		else
			ops_sink_write(sink, bytes, size);
		close_sink(sink);
		packed = malloc(BIG_BYTES);
		file = fopen("out.gz", "rb");
		packed_size = fread(packed, 1, BIG_BYTES, file);
		fclose(file);
		assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
		stream.next_in = (Bytef *)packed;
		stream.avail_in = (uInt)packed_size;
		stream.next_out = (Bytef *)back;
		stream.avail_out = BIG_BYTES + 1;
		assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END); /* the checksum and the length are right */
		assert_int_equal(stream.avail_in, 0);
		assert_int_equal(stream.total_out, size);
		assert_memory_equal(back, bytes, size);
		inflateEnd(&stream);
		free(packed);
	}
	assert_int_equal(count_files("."), 1);
	free(back);
	free(bytes);
}

static void abandoned_threads_end(void **state)
{
	char *bytes = make_big();
	struct ops_sink *sink;

	(void)state;
	assert_int_equal(ops_sink_open_gzip("out.gz", 1, 2, &sink, NULL), OPS_OK);
	write_big(sink, bytes);
	ops_sink_abandon(sink);
	assert_int_equal(count_files("."), 0);
	free(bytes);
}

static void bytes_are_rewritten(void **state)
{
	struct ops_sink *sink = open_sink("text", 0);

	(void)state;
	ops_sink_write(sink, "......, world", 13);
	ops_sink_rewrite(sink, 0, "Hello", 5);
	ops_sink_rewrite(sink, 5, "", 0);
	ops_sink_rewrite(sink, 5, ",", 1);
	ops_sink_write(sink, "!", 1);
	close_sink(sink);
	expect_text("text", "Hello,, world!");
	sink = open_sink("/dev/full", 0);
	ops_sink_write(sink, "text", 4);
	ops_sink_rewrite(sink, 0, "T", 1);
	assert_true(ops_sink_failed(sink));
	ops_sink_abandon(sink);
}

static void empty_files(void **state)
{
	gzFile file;
	char byte;

	(void)state;
	close_sink(open_sink("plain", 0));
	expect_text("plain", "");
	close_sink(open_sink("packed", 6));
	file = gzopen("packed", "rb");
	assert_int_equal(gzread(file, &byte, 1), 0);
	assert_int_equal(gzclose(file), Z_OK);
}

static void into_a_buffer(void **state)
{
	char *bytes = make_big();
	struct ops_buffer buffer = {0};
	struct ops_sink *sink;

	(void)state;
	ops_buffer_append_text(&buffer, "head");
	assert_int_equal(ops_sink_open_buffer(&buffer, &sink, NULL), OPS_OK);
	write_big(sink, bytes);
	close_sink(sink);
	assert_int_equal(buffer.size, 4 + BIG_BYTES);
	assert_memory_equal(buffer.bytes + 4, bytes, BIG_BYTES);
	ops_buffer_release(&buffer);
	free(bytes);
}

/* --- where it goes ------------------------------------------------------------------------------------------------- */

static void the_old_file_stays_until_close(void **state)
{
	char *bytes = make_big();
	struct ops_sink *sink;

	(void)state;
	put_file("out", "old");
	chmod("out", 0640);
	sink = open_sink("out", 0);
	write_big(sink, bytes);
	expect_text("out", "old");
	assert_int_equal(count_files("."), has_unnamed_files() ? 1 : 2);
	close_sink(sink);
	expect_file("out", bytes, BIG_BYTES);
	assert_int_equal(mode_of("out"), 0640);
	assert_int_equal(count_files("."), 1);
	free(bytes);
}

static void abandoning_leaves_nothing(void **state)
{
	struct ops_sink *sink;

	(void)state;
	put_file("out", "old");
	sink = open_sink("out", 0);
	ops_sink_write(sink, "new", 3);
	ops_sink_abandon(sink);
	expect_text("out", "old");
	sink = open_sink("other", 6);
	ops_sink_abandon(sink);
	assert_int_equal(count_files("."), 1);
	ops_sink_abandon(NULL);
}

/* No signal that ends the process leaves a file behind, not even one that cannot be handled. */
static void signals_leave_nothing(void **state)
{
	static const int signals[] = {SIGKILL, SIGHUP, SIGPIPE, SIGXFSZ};

	(void)state;
	if (!has_unnamed_files())
		skip();
	put_file("out", "old");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int status;
		pid_t child = fork();

		if (!child) {
			struct ops_sink *sink = open_sink(i % 2 ? "out" : "other", 0);

			for (size_t piece = 0; piece < 100000; piece++)
				ops_sink_write(sink, "new bytes\n", 10);
			signal(signals[i], SIG_DFL);
			raise(signals[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		assert_int_equal(count_files("."), 1);
		expect_text("out", "old");
	}
}

static void two_at_once(void **state)
{
	struct ops_sink *first = open_sink("out", 0);
	struct ops_sink *second = open_sink("out", 0);

	(void)state;
	ops_sink_write(first, "first", 5);
	ops_sink_write(second, "second", 6);
	close_sink(second);
	expect_text("out", "second");
	close_sink(first);
	expect_text("out", "first");
	assert_int_equal(count_files("."), 1);
}

static bool is_link(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static void links_stay_links(void **state)
{
	char absolute[256];

	(void)state;
	assert_int_equal(mkdir("folder", 0777), 0);
	put_file("folder/target", "old");
	assert_int_equal(symlink("folder/middle", "link"), 0);
	assert_int_equal(symlink("target", "folder/middle"), 0);
	write_text("link", "new");
	expect_text("folder/target", "new");
	assert_true(is_link("link") && is_link("folder/middle") && !is_link("folder/target"));

	/* A link to where nothing stands yet, and an absolute one. */
	assert_int_equal(symlink("folder/fresh", "dangling"), 0);
	write_text("dangling", "made");
	expect_text("folder/fresh", "made");
	assert_true(is_link("dangling"));
	snprintf(absolute, sizeof(absolute), "%s/folder/target", (char *)*state);
	assert_int_equal(symlink(absolute, "folder/far"), 0);
	write_text("folder/far", "again");
	expect_text("folder/target", "again");
	assert_true(is_link("folder/far"));
	assert_int_equal(count_files("folder"), 4);
}

static void a_pipe_is_written_in_place(void **state)
{
	char text[8] = {0};
	int reader;

	(void)state;
	assert_int_equal(mkfifo("pipe", 0666), 0);
	reader = open("pipe", O_RDONLY | O_NONBLOCK);
	write_text("pipe", "through");
	assert_int_equal(read(reader, text, sizeof(text)), 7);
	assert_string_equal(text, "through");
	close(reader);
	assert_int_equal(count_files("."), 1);
}

static void a_path_in_a_folder(void **state)
{
	(void)state;
	assert_int_equal(mkdir("folder", 0777), 0);
	write_text("folder/out", "x");
	write_text("folder/out", "y");
	expect_text("folder/out", "y");
	assert_int_equal(count_files("folder"), 1);
	assert_int_equal(count_files("."), 1);
}

/* --- what goes wrong ----------------------------------------------------------------------------------------------- */

static void expect_refused(const char *path, int os_errno, const char *text)
{
	struct ops_error error = {0};
	struct ops_sink *sink = NULL;

	assert_int_equal(ops_sink_open_file(path, 6, &sink, &error), OPS_IO);
	assert_int_equal(error.os_errno, os_errno);
	assert_string_equal(error.text, text);
	assert_null(sink);
}

static void places_that_cannot_be(void **state)
{
	char path[5000];

	(void)state;
	assert_int_equal(mkdir("folder", 0777), 0);
	put_file("file", "x");
	assert_int_equal(symlink("round", "round"), 0);
	expect_refused("", ENOENT, "cannot create '': no such file or directory");
	expect_refused("none/out", ENOENT, "cannot create 'none/out': no such file or directory");
	expect_refused("folder", EISDIR, "cannot create 'folder': is a directory");
	expect_refused("folder/", EISDIR, "cannot create 'folder/': is a directory");
	expect_refused("file/out", ENOTDIR, "cannot create 'file/out': not a directory");
	expect_refused("round", ELOOP, "cannot create 'round': too many levels of symbolic links");
	memset(path, 'p', sizeof(path));
	path[300] = '\0';
	assert_int_equal(ops_sink_open_file(path, 0, NULL, NULL), OPS_IO);
	path[300] = 'p';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(ops_sink_open_file(path, 0, NULL, NULL), OPS_IO);
	assert_int_equal(count_files("."), 3);
}

/* Runs a check as a user who is not above permissions; its failure is the child's exit status. */
static void as_nobody(void (*check)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(2);
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void try_without_permission(void)
{
	struct ops_error error = {0};
	struct ops_sink *sink;

	if (ops_sink_open_file("locked/out", 0, &sink, &error) != OPS_IO || error.os_errno != EACCES ||
	    strcmp(error.text, "cannot create 'locked/out': permission denied") != 0)
		_exit(3);
	if (ops_sink_open_file("open/read-only", 0, &sink, &error) != OPS_IO || error.os_errno != EACCES)
		_exit(4);
}

static void without_permission(void **state)
{
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(mkdir("locked", 0777), 0);
	put_file("locked/out", "old");
	chmod("locked/out", 0666);
	chmod("locked", 0555);
	assert_int_equal(mkdir("open", 0777), 0);
	chmod("open", 0777);
	put_file("open/read-only", "old");
	chmod("open/read-only", 0444);
	as_nobody(try_without_permission);
	expect_text("locked/out", "old");
	expect_text("open/read-only", "old");
	assert_int_equal(count_files("locked"), 1);
	assert_int_equal(count_files("open"), 1);
}

static void a_full_device(void **state)
{
	(void)state;
	for (int level = 0; level <= 6; level += 6) {
		struct ops_error error = {0};
		struct ops_sink *sink = open_sink("/dev/full", level);
		char *bytes = make_big();

		write_big(sink, bytes);
		assert_int_equal(ops_sink_close(sink, &error), OPS_IO);
		assert_int_equal(error.os_errno, ENOSPC);
		assert_string_equal(error.text, "cannot write '/dev/full': no space left on device");
		free(bytes);
	}
}

/* The limit strikes at different places, also in the last bytes that close writes. */
static void no_more_space(void **state)
{
	char *bytes = make_big();

	(void)state;
	put_file("out", "old");
	signal(SIGXFSZ, SIG_IGN);
	for (int level = 0; level <= 1; level++) {
		for (rlim_t limit = 10; limit < BIG_BYTES / 3; limit = limit * 10 + 7) {
			struct rlimit old;
			struct ops_error error = {0};
			struct ops_sink *sink;

			assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
			assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, old.rlim_max}), 0);
			sink = open_sink("out", level);
			write_big(sink, bytes);
			assert_int_equal(ops_sink_close(sink, &error), OPS_IO);
			assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
			assert_int_equal(error.os_errno, EFBIG);
			expect_text("out", "old");
			assert_int_equal(count_files("."), 1);
		}
	}
	free(bytes);
}

/* The target became a folder while it was written: the rename fails. */
static void a_rename_that_fails(void **state)
{
	struct ops_error error = {0};
	struct ops_sink *sink = open_sink("out", 0);

	(void)state;
	ops_sink_write(sink, "x", 1);
	assert_int_equal(mkdir("out", 0777), 0);
	assert_int_equal(ops_sink_close(sink, &error), OPS_IO);
	assert_string_equal(error.text, "cannot write 'out': is a directory");
	assert_int_equal(count_files("."), 1);
	assert_int_equal(count_files("out"), 0);
}

static void write_failing(void *context)
{
	const unsigned *threads = context;
	const char *text = "text";
	struct ops_error error = {0};
	struct ops_sink *sink;
	enum ops_code code;

	code = ops_sink_open_gzip("out", 6, *threads, &sink, &error);
	if (code == OPS_OK) {
		ops_sink_write(sink, text, strlen(text));
		code = ops_sink_close(sink, &error);
	}
	if (code == OPS_OK) {
		assert_int_equal(unlink("out"), 0);
		put_file("out", "old");
	} else {
		assert_int_equal(code, OPS_NO_MEMORY);
		assert_int_equal(error.code, OPS_NO_MEMORY);
	}
	expect_text("out", "old");
	assert_int_equal(count_files("."), 1);
}

static void survives_every_failure(void **state)
{
	struct ops_buffer buffer = {0};
	struct ops_sink *sink;

	(void)state;
	put_file("out", "old");
	for (unsigned threads = 1; threads <= 2; threads++)
		assert_true(fail_each(write_failing, &threads) >= 6);
	assert_int_equal(ops_sink_open_buffer(&buffer, &sink, NULL), OPS_OK);
	ops_sink_write(sink, "text", 4);
	ops_alloc_fail_at(1, false);
	assert_int_equal(ops_sink_close(sink, NULL), OPS_NO_MEMORY);
	ops_alloc_fail_at(1, false);
	assert_int_equal(ops_sink_open_buffer(&buffer, &sink, NULL), OPS_NO_MEMORY);
	ops_alloc_fail_at(0, false);
	ops_buffer_release(&buffer);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(plain_bytes_arrive),
		IN_FOLDER(gzip_bytes_arrive),
		IN_FOLDER(threads_write_one_member),
		IN_FOLDER(abandoned_threads_end),
		IN_FOLDER(bytes_are_rewritten),
		IN_FOLDER(empty_files),
		IN_FOLDER(into_a_buffer),
		IN_FOLDER(the_old_file_stays_until_close),
		IN_FOLDER(abandoning_leaves_nothing),
		IN_FOLDER(signals_leave_nothing),
		IN_FOLDER(two_at_once),
		IN_FOLDER(links_stay_links),
		IN_FOLDER(a_pipe_is_written_in_place),
		IN_FOLDER(a_path_in_a_folder),
		IN_FOLDER(places_that_cannot_be),
		IN_FOLDER(without_permission),
		IN_FOLDER(a_full_device),
		IN_FOLDER(no_more_space),
		IN_FOLDER(a_rename_that_fails),
		IN_FOLDER(survives_every_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
