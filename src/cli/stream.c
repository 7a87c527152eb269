/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces one after another; see stream.h.
 *
 *     place    0     1     2     3     4     5
 *            taken taken  │in use│ready│read │ …        readers stay within `ahead` places after the wanted one
 */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/read.h>

#include "diagnose.h"

#define SHOW_EVERY_NS 200000000 /* no progress is shown for files that are read faster than this */
#define KEPT_EVENTS_MAX 4000000 /* about half a gigabyte of traces that need not be read twice */

enum slot_state { SLOT_EMPTY, SLOT_BUSY, SLOT_READY };

struct cli_slot {
	enum slot_state state;
	bool keep, diagnosed;
	struct ops_trace *trace;
	uint64_t done, total; /* bytes */
	enum ops_code code;
	struct ops_error error;
};

/* --- progress ------------------------------------------------------------------------------------------------------- */

struct reader {
	struct cli_stream *stream;
	size_t file;
};

static void stream_show(struct cli_stream *stream)
{
	uint64_t done = 0, total = 0;
	size_t begun = 0;

	for (size_t i = 0; i < stream->count; i++) {
		const struct cli_slot *slot = &stream->slots[i];

		begun += slot->total > 0 || slot->done > 0;
		done += slot->done;
		total += slot->total > slot->done ? slot->total : slot->done;
	}
	fprintf(stderr, "\r\033[Kreading: %llu MiB", (unsigned long long)(done >> 20));
	if (stream->count > 1)
		fprintf(stderr, ", trace %zu of %zu", begun, stream->count);
	else if (total > done)
		fprintf(stderr, ", %llu %%", (unsigned long long)(100 * (double)done / (double)total));
	stream->shown = true;
}

static int stream_on_progress(void *context, const struct ops_read_progress *progress)
{
	struct reader *reader = context;
	struct cli_stream *stream = reader->stream;
	int64_t now = ops_clock_read_ns(CLOCK_MONOTONIC);

	if (!stream->show)
		return 0;
	pthread_mutex_lock(&stream->lock);
	stream->slots[reader->file].done = progress->bytes;
	stream->slots[reader->file].total = progress->bytes_total;
	if (now - stream->shown_ns >= SHOW_EVERY_NS) {
		stream->shown_ns = now;
		stream_show(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* Reads the file of a slot that is busy. */
static bool times_needed;

void cli_need_times(void)
{
	times_needed = true;
}

static void refuse_without_times(struct cli_slot *slot, const char *path)
{
	if (slot->code || !times_needed || !ops_trace_has_note(slot->trace, OPS_NOTE_NO_TIMES))
		return;
	ops_trace_unref(slot->trace);
	slot->trace = NULL;
	slot->code = OPS_UNSUPPORTED;
	snprintf(slot->error.text, sizeof(slot->error.text),
	         "'%s' is an execution trace, which has no times; 'table', 'info', 'sql' and 'convert' show its operators", path);
}

static void read_slot(struct cli_stream *stream, size_t index)
{
	const struct ops_trace_file *file = &stream->files.list.items[index];
	struct cli_slot *slot = &stream->slots[index];
	struct reader reader = {stream, index};
	struct ops_read_options options = {sizeof(options), stream_on_progress, &reader};

	slot->trace = NULL;
	slot->code = ops_trace_read(file->path, &options, &slot->trace, &slot->error);
	refuse_without_times(slot, file->path);
	if (slot->code == OPS_CORRUPT && (stream->flags & CLI_ANY_FILE))
		slot->code = OPS_OK;
}

static void *read_ahead(void *context)
{
	struct cli_stream *stream = context;

	pthread_mutex_lock(&stream->lock);
	while (!stream->stop) {
		struct cli_slot *slot;

		if (stream->next >= stream->count || stream->next > stream->wanted + stream->ahead) {
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		slot = &stream->slots[stream->order[stream->next++]];
		if (slot->state != SLOT_EMPTY)
			continue;
		slot->state = SLOT_BUSY;
		pthread_mutex_unlock(&stream->lock);
		read_slot(stream, (size_t)(slot - stream->slots));
		pthread_mutex_lock(&stream->lock);
		slot->state = SLOT_READY;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

static void empty(struct cli_slot *slot)
{
	ops_trace_unref(slot->trace);
	slot->trace = NULL;
	slot->state = SLOT_EMPTY;
}

/* Makes a place the wanted one, and releases what was read for another pass. */
static void move_to(struct cli_stream *stream, size_t place)
{
	bool back = place < stream->wanted;

	for (size_t i = 0; back && i < stream->count; i++)
		if (stream->slots[i].state == SLOT_READY && !stream->slots[i].keep && i != stream->order[place])
			empty(&stream->slots[i]);
	stream->wanted = place;
	if (back || stream->next < place)
		stream->next = place;
	pthread_cond_broadcast(&stream->changed);
}

/* Returns whether a trace is kept for the next pass: standard input must be, and others are while they are small. */
static bool stays(struct cli_stream *stream, size_t index)
{
	size_t events = ops_trace_events(stream->slots[index].trace)->count;

	if (!(stream->flags & CLI_AGAIN))
		return false;
	if (index && strcmp(stream->files.list.items[index].path, "/dev/stdin") != 0 &&
	    stream->kept_events + events > KEPT_EVENTS_MAX)
		return false;
	stream->kept_events += events;
	return true;
}

enum ops_code cli_stream_get(void *context, size_t place, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct cli_stream *stream = context;
	size_t index = stream->order[place];
	struct cli_slot *slot = &stream->slots[index];
	enum ops_code code;
	bool diagnose;

	pthread_mutex_lock(&stream->lock);
	move_to(stream, place);
	if (!stream->reader_count && slot->state == SLOT_EMPTY) {
		slot->state = SLOT_BUSY;
		pthread_mutex_unlock(&stream->lock);
		read_slot(stream, index);
		pthread_mutex_lock(&stream->lock);
		slot->state = SLOT_READY;
	}
	while (slot->state != SLOT_READY)
		pthread_cond_wait(&stream->changed, &stream->lock);
	code = slot->code;
	*ret_trace = slot->trace;
	diagnose = slot->trace && !slot->diagnosed;
	slot->diagnosed |= diagnose;
	if (!slot->trace)
		*error = slot->error;
	else if (!slot->keep)
		slot->keep = stays(stream, index);
	if (slot->keep)
		ops_trace_ref(slot->trace);
	else if (slot->trace) {
		slot->trace = NULL;
		slot->state = SLOT_EMPTY;
	}
	if (stream->shown && (place + 1 == stream->count || diagnose))
		fputs("\r\033[K", stderr);
	if (diagnose)
		cli_diagnose(*ret_trace, stream->files.list.items[index].path);
	pthread_mutex_unlock(&stream->lock);
	return code;
}

struct ops_rank *cli_stream_ranks(const struct cli_stream *stream)
{
	struct ops_rank *workers = calloc(stream->count, sizeof(*workers));

	for (size_t i = 0; workers && i < stream->count; i++)
		workers[i] = (struct ops_rank){.path = stream->files.list.items[i].path, .name = stream->files.list.items[i].worker, .span = stream->files.list.items[i].span};
	return workers;
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

bool cli_stream_open(struct cli_stream *stream, char *const *paths, size_t count, size_t ahead, unsigned flags)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t readers;

	*stream = (struct cli_stream){.ahead = ahead,
	                              .flags = flags,
	                              .lock = PTHREAD_MUTEX_INITIALIZER,
	                              .shown_ns = ops_clock_read_ns(CLOCK_MONOTONIC),
	                              .changed = PTHREAD_COND_INITIALIZER,
	                              .show = isatty(STDERR_FILENO)};
	if (!cli_files_find_all(&stream->files, paths, count, flags & CLI_ANY_FILE))
		return false;
	stream->slots = calloc(stream->files.list.count, sizeof(*stream->slots));
	stream->order = calloc(stream->files.list.count, sizeof(*stream->order));
	if (!stream->slots || !stream->order) {
		fputs("opstrobe: out of memory\n", stderr);
		return false;
	}
	stream->count = stream->files.list.count;
	for (size_t i = 0; i < stream->count; i++)
		stream->order[i] = i;
	readers = stream->count < 2 ? 0 : stream->count < stream->ahead ? stream->count : stream->ahead;
	while (stream->reader_count < readers && stream->reader_count < CLI_READERS_MAX &&
	       (long)stream->reader_count < processors &&
	       !pthread_create(&stream->readers[stream->reader_count], NULL, read_ahead, stream))
		stream->reader_count++;
	return true;
}

void cli_stream_close(struct cli_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->stop = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	while (stream->reader_count)
		pthread_join(stream->readers[--stream->reader_count], NULL);
	for (size_t i = 0; i < stream->count; i++)
		empty(&stream->slots[i]);
	free(stream->slots);
	free(stream->order);
	cli_files_release(&stream->files);
	*stream = (struct cli_stream){0};
}
