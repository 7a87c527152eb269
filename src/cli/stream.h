/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of the paths on the command line, one after another. Other threads read some ahead. A trace that is requested again
 * is read again, unless it is small enough to be kept. On a terminal, long reads show their progress.
 */
#ifndef OPS_CLI_STREAM_H
#define OPS_CLI_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/error.h>
#include <opstrobe/trace.h>
#include <opstrobe/internal/views.h>

#include "files.h"

#define CLI_AHEAD 2 /* number of traces that are being read or are ready, in addition to the one in use */
#define CLI_READERS_MAX 16

struct cli_slot;

struct cli_stream {
	struct cli_files files;
	size_t *order; /* by place: index of the file; may be changed between passes */
	struct cli_slot *slots; /* by file */
	size_t count;
	size_t ahead; /* number of places after `wanted` that may be read; it and the following are protected by `lock` */
	size_t wanted;
	size_t next; /* next place to read */
	size_t kept_events;
	bool stop;
	unsigned flags; /* enum cli_stream_flag */
	bool show, shown; /* progress */
	int64_t shown_ns;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t readers[CLI_READERS_MAX];
	size_t reader_count;
};

enum cli_stream_flag {
	CLI_ANY_FILE = 1, /* a file that is not a trace results in NULL instead of an error */
	CLI_AGAIN = 2,    /* traces are used more than once, so small ones are kept */
};

/* From now on, traces without times (OPS_NOTE_NO_TIMES) are errors: for commands whose results are times. */
void cli_need_times(void);
/* Returns false, after printing an error, if there is nothing to read. The caller must close the stream even then. */
bool cli_stream_open(struct cli_stream *stream, char *const *paths, size_t count, size_t ahead, unsigned flags);
void cli_stream_close(struct cli_stream *stream);

/* Returns the workers of the files, without traces: freed by the caller, NULL if out of memory. */
struct ops_rank *cli_stream_ranks(const struct cli_stream *stream);

/* Returns the trace at an index, as a new reference: the `take` of an ops_trace_source. With CLI_ANY_FILE, a file that is not a
 * trace results in NULL, with the reason in `error`, and is not a failure. Called on one thread; fastest in order. */
enum ops_code cli_stream_get(void *stream, size_t place, struct ops_trace **ret_trace, struct ops_error *error);

#endif
