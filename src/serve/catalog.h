/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces that are served: files and directories are listed at start and again when they change, and traces are read on first
 * request. A trace is kept while it is in use, and as long as there is memory.
 *
 *     listed ──request──▶ reading ──▶ ready ──memory needed──▶ listed
 *                            └──▶ failed
 */
#ifndef OPS_SERVE_CATALOG_H
#define OPS_SERVE_CATALOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/timeline.h>
#include <opstrobe/read.h>
#include <opstrobe/serve.h>
#include <opstrobe/trace.h>

#include "analyze/ranks/trace_job.h"
#include "base/array.h"
#include "base/json_writer.h"
#include "base/limit.h"
#include "serve/workers.h"

#define TRACE_ID_SIZE 12

enum served_state { SERVED_LISTED, SERVED_READING, SERVED_READY, SERVED_FAILED };

/* A trace file. Members before `state` do not change. */
struct served {
	struct catalog *catalog;
	char id[TRACE_ID_SIZE + 1];
	char *path;
	char *run;    /* name of its directory for people */
	char *worker;
	int64_t span;
	uint64_t bytes;
	int64_t changed_ns;
	pthread_mutex_t memory_lock;
	/* Protected by the catalogue's lock. Users of the trace in state ready may read trace and timeline without it. */
	enum served_state state;
	struct ops_read_progress progress; /* while the trace is read */
	struct ops_trace *trace;
	struct ops_timeline *timeline;
	struct ops_memory_timeline *memory; /* computed on first request, under its own lock */
	uint64_t memory_bytes;
	uint64_t derived_bytes; /* bytes of objects derived from the trace, included in memory_bytes */
	uint64_t last_use;
	int64_t events; /* -1: not read yet */
	struct ops_trace_job job_facts;   /* valid after the first reading */
	const struct served *job_key; /* the first trace of its job, or itself if the trace is alone; NULL: not read yet */
	char *summary;                /* ops_trace_summary(); NULL: not computed yet */
	size_t summary_size;
	bool wants_summary;
	struct ops_diagnostic diagnostics[OPS_DIAGNOSTICS_MAX]; /* valid after the first reading; they do not change */
	size_t diagnostic_count;
	struct ops_error error;
	unsigned users;
	bool is_listed; /* the file still exists */
	struct job *waiters;
	struct job reading; /* job that reads the trace */
};

typedef OPS_ARRAY(struct served *) served_list;
typedef OPS_ARRAY(char *) path_list;

struct catalog {
	pthread_mutex_t lock; /* protects the following members, except for constant ones */
	served_list traces;   /* in order of the list, followed by removed ones that are still in use */
	path_list paths;      /* constant */
	struct workers *workers;
	struct watch *watch; /* constant; NULL: the list is not updated */
	uint64_t memory_limit;
	void (*on_diagnostic)(const struct ops_diagnostic *diagnostic); /* constant; NULL: none */
	uint64_t memory_used;
	uint64_t uses;
	int64_t generation;
	bool jobs_changed; /* the listed and read traces have changed since the job_keys were computed */
	struct summarizer *summarizer; /* NULL: no summary has been requested yet */
	pthread_cond_t summaries;      /* signalled when a summary is requested or a trace was read */
	struct ops_limit summary_limit; /* limit for computing one; constant */
	atomic_bool stopping;
};

/* Lists the traces. OPS_IO if a path does not exist. */
enum ops_code catalog_new(const struct ops_api_options *options, struct workers *workers, struct catalog **ret_catalog,
                          struct ops_error *error);
/* Makes readings in progress fail soon, and starts no more. */
void catalog_stop(struct catalog *catalog);
/* All workers must have ended. NULL is allowed. */
void catalog_free(struct catalog *catalog);

/* Lists the traces again. Returns false if out of memory; then nothing has changed. */
bool catalog_rescan(struct catalog *catalog);

/* Returns the trace with that id, which the caller releases with catalog_release; NULL if there is none. */
struct served *catalog_acquire(struct catalog *catalog, const char *id);
void catalog_release(struct served *served);
/* Finds the id of the trace with that path, as listed. Returns false if there is none. */
bool catalog_find_id(struct catalog *catalog, const char *path, char ret_id[TRACE_ID_SIZE + 1]);
/* SERVED_READY and SERVED_FAILED are final for users of the trace. Otherwise it is being read, and `waiter` runs when the state
 * is one of them. */
enum served_state catalog_await(struct served *served, struct job *waiter);
/* Returns the memory timeline of a trace that is ready; it is kept with the trace. */
enum ops_code catalog_memory(struct served *served, const struct ops_memory_timeline **ret_memory, struct ops_error *error);
/* Starts to read the trace if it is the only one, because it will be requested next. */
void catalog_read_only(struct catalog *catalog);

/* Sets the facts about a trace that was read; the lock must be held. */
void served_set_facts(struct served *served, const struct ops_trace *trace, const struct ops_trace_job *facts);
/* Marks a trace as failed; the lock must be held. */
void served_fail(struct served *served, const struct ops_error *error);

/* Writes the members of the list of traces. */
void catalog_write(struct catalog *catalog, bool with_summaries, struct ops_json_writer *json);

/* Drops entries whose files are gone and that are not in use. The lock must be held. */
void catalog_drop_unused(struct catalog *catalog);

/* --- catalog_scan.c ------------------------------------------------------------------------------------------------ */

/* Finds the files of all paths, and the directories that contain them. The caller must release the lists even on failure. */
enum ops_code catalog_scan(const char *const *paths, size_t count, served_list *found, path_list *folders,
                           struct ops_error *error);
void served_free(struct served *served);

/* --- catalog_jobs.c ------------------------------------------------------------------------------------------------- */

bool served_in_one_folder(const struct served *a, const struct served *b);
/* Groups the traces by job, if that may have changed. The lock must be held. */
void catalog_find_jobs(struct catalog *catalog);

/* --- catalog_summaries.c -------------------------------------------------------------------------------------------- */

/* Starts computing missing summaries, one after another, on a separate thread: those of all traces, or of the traces in the
 * directory of `id`. Returns false if out of memory. */
bool catalog_summarize(struct catalog *catalog, const char *id);
/* Returns the summary of a trace that is ready; computes it if necessary. */
enum ops_code catalog_summary(struct served *served, char **ret_text, size_t *ret_size, struct ops_error *error);
void summarizer_free(struct summarizer *summarizer); /* NULL is allowed */

/* --- catalog_watch.c ----------------------------------------------------------------------------------------------- */

/* A thread that lists the traces again when a directory changes. */
struct watch;
struct watch *watch_new(struct catalog *catalog); /* NULL if out of memory */
/* Adds directories to watch. */
void watch_add(struct watch *watch, const path_list *folders);
bool watch_start(struct watch *watch);
void watch_free(struct watch *watch); /* NULL is allowed */

#endif
