/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of the paths on the command line, one after the other: other threads read some ahead. A trace that is requested
 * again is read again, unless it is small enough to be kept. On a terminal, long
 * reads show their progress.
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

#define CLI_AHEAD 2 /* traces that are being read or wait for their use, in addition to that in use */
#define CLI_READERS_MAX 16

struct cli_slot;

struct cli_stream {
	struct cli_files files;
	size_t *order; /* the file at each place, to be changed between passes */
	struct cli_slot *slots; /* by file */
	size_t count;
	size_t ahead; /* how many places behind `wanted` may be read; all below is behind `lock` */
	size_t wanted;
	size_t next; /* place that is read next */
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
	CLI_ANY_FILE = 1, /* a file that is not a trace is NULL, not an error */
	CLI_AGAIN = 2,    /* traces are wanted more than once, so those that are small enough are kept */
};

/* False, after saying why, when there is nothing to read. Closed in any case. */
bool cli_stream_open(struct cli_stream *stream, char *const *paths, size_t count, size_t ahead, unsigned flags);
void cli_stream_close(struct cli_stream *stream);

/* The workers of the files, without traces: freed by the caller, NULL when memory is out. */
struct ops_rank *cli_stream_ranks(const struct cli_stream *stream);

/* The trace at an index, as a new reference: the `take` of an ops_trace_source. With CLI_ANY_FILE a file that is not a trace
 * is NULL with the reason in `error`, which is not a failure. For one thread; fastest in order. */
enum ops_code cli_stream_get(void *stream, size_t place, struct ops_trace **ret_trace, struct ops_error *error);

#endif
