/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading traces for a command: as many at once as there are processors, and how far that is, on a terminal.
 */
#include "traces.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/read.h>

#define READERS_MAX 16
#define SHOW_EVERY_NS 200000000 /* nothing is shown of what is read faster than this */

/* --- progress ------------------------------------------------------------------------------------------------------- */

struct reading {
	struct cli_traces *traces;
	atomic_size_t next;
	size_t end; /* of the files that are read now */
	atomic_bool failed;
	pthread_mutex_t lock; /* of all below */
	uint64_t *done;       /* bytes by file */
	uint64_t *total;
	int64_t shown_ns;
	bool show, shown;
	struct ops_error error; /* of the first that failed */
};

struct reader {
	struct reading *reading;
	size_t file;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void show(struct reading *reading)
{
	uint64_t done = 0, total = 0;

	for (size_t i = 0; i < reading->traces->files.list.count; i++) {
		done += reading->done[i];
		total += reading->total[i] > reading->done[i] ? reading->total[i] : reading->done[i];
	}
	fprintf(stderr, "\r\033[Kreading: %llu MB", (unsigned long long)(done / 1000000));
	if (total > done)
		fprintf(stderr, ", %llu %%", (unsigned long long)(100 * (double)done / (double)total));
	reading->shown = true;
}

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	struct reader *reader = context;
	struct reading *reading = reader->reading;
	int64_t now = now_ns();

	if (!reading->show)
		return 0;
	pthread_mutex_lock(&reading->lock);
	reading->done[reader->file] = done;
	reading->total[reader->file] = total;
	if (now - reading->shown_ns >= SHOW_EVERY_NS) {
		reading->shown_ns = now;
		show(reading);
	}
	pthread_mutex_unlock(&reading->lock);
	return 0;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

static void *read_files(void *context)
{
	struct reading *reading = context;
	size_t i;

	while (!atomic_load(&reading->failed) && (i = atomic_fetch_add(&reading->next, 1)) < reading->end) {
		const struct ops_trace_file *file = &reading->traces->files.list.items[i];
		struct reader reader = {reading, i};
		struct ops_read_options options = {on_progress, &reader};
		struct ops_trace *trace = NULL;
		struct ops_error error;

		if (ops_trace_read(file->path, &options, &trace, &error)) {
			pthread_mutex_lock(&reading->lock);
			if (!atomic_exchange(&reading->failed, true))
				reading->error = error;
			pthread_mutex_unlock(&reading->lock);
		}
		reading->traces->workers[i] = (struct ops_worker){trace, file->worker, file->span};
	}
	return NULL;
}

static size_t reader_count(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors < 1 ? 1 : processors > READERS_MAX ? READERS_MAX : (size_t)processors;
}

/* Reads what is left up to `end`. */
static void read_all(struct reading *reading)
{
	pthread_t readers[READERS_MAX];
	size_t files = reading->end - reading->next, started = 0;

	while (started + 1 < files && started + 1 < reader_count() &&
	       !pthread_create(&readers[started], NULL, read_files, reading))
		started++;
	read_files(reading);
	while (started)
		pthread_join(readers[--started], NULL);
	if (reading->shown)
		fputs("\r\033[K", stderr);
	if (atomic_load(&reading->failed))
		fprintf(stderr, "opstrobe: %s\n", reading->error.text);
}

static bool begin(struct reading *reading, char *const *paths, size_t count)
{
	struct cli_traces *traces = reading->traces;
	size_t files;

	*traces = (struct cli_traces){0};
	if (!cli_files_find_all(&traces->files, paths, count))
		return false;
	files = traces->files.list.count;
	traces->workers = calloc(files, sizeof(*traces->workers));
	reading->done = calloc(2 * files, sizeof(*reading->done));
	if (!traces->workers || !reading->done) {
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	traces->count = files;
	reading->total = reading->done + files;
	return true;
}

bool cli_traces_read(struct cli_traces *traces, char *const *paths, size_t count)
{
	struct reading reading = {.traces = traces, .lock = PTHREAD_MUTEX_INITIALIZER, .shown_ns = now_ns(),
	                          .show = isatty(STDERR_FILENO)};
	bool done = begin(&reading, paths, count);

	if (done) {
		reading.end = traces->count;
		read_all(&reading);
	}
	free(reading.done);
	return done && !atomic_load(&reading.failed);
}

bool cli_traces_each(char *const *paths, size_t count, bool (*take)(void *context, const struct ops_worker *worker),
                     void *context)
{
	struct cli_traces traces;
	struct reading reading = {.traces = &traces, .lock = PTHREAD_MUTEX_INITIALIZER, .shown_ns = now_ns(),
	                          .show = isatty(STDERR_FILENO)};
	bool done = begin(&reading, paths, count);

	for (size_t from = 0; done && from < traces.count; from = reading.end) {
		reading.next = from;
		reading.end = from + reader_count() < traces.count ? from + reader_count() : traces.count;
		read_all(&reading);
		done = !atomic_load(&reading.failed);
		for (size_t i = from; i < reading.end; i++) {
			done = done && take(context, &traces.workers[i]);
			ops_trace_unref((struct ops_trace *)traces.workers[i].trace);
			traces.workers[i].trace = NULL;
		}
	}
	free(reading.done);
	cli_traces_release(&traces);
	return done;
}

bool cli_one_trace_read(struct cli_traces *traces, const char *path)
{
	char *const paths[] = {(char *)path};

	if (!cli_traces_read(traces, paths, 1))
		return false;
	if (traces->count > 1)
		fprintf(stderr, "opstrobe: '%s' stands for %zu traces, and one is wanted\n", path, traces->count);
	return traces->count == 1;
}

void cli_traces_release(struct cli_traces *traces)
{
	for (size_t i = 0; i < traces->count; i++)
		ops_trace_unref((struct ops_trace *)traces->workers[i].trace);
	free(traces->workers);
	cli_files_release(&traces->files);
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

bool cli_colours(void)
{
	const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

bool cli_print(enum ops_code code, char *text, size_t size, void (*release)(char *text), const struct ops_error *error)
{
	if (code) {
		fprintf(stderr, "opstrobe: %s\n", error->text);
		return false;
	}
	fwrite(text, 1, size, stdout);
	release(text);
	return true;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = number;
}

void cli_interrupt_begin(void)
{
	/* The second Ctrl-C ends the process at once. Who is not to be interrupted stays so. */
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND}, old;

	if (!sigaction(SIGINT, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGINT, &action, NULL);
}

int cli_interrupted(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return interrupted != 0;
}

void cli_interrupt_end(void)
{
	if (!interrupted)
		return;
	signal(SIGINT, SIG_DFL);
	raise(SIGINT);
}
