/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces that are served: files and directories are listed at once and again when they change, and read on first
 * request. A trace is kept while it is used, and as long as there is memory.
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

/* A trace file. What has no comment does not change. */
struct served {
	struct catalog *catalog;
	char id[TRACE_ID_SIZE + 1];
	char *path;
	char *run;    /* its directory, as people know it */
	char *worker;
	int64_t span;
	uint64_t bytes;
	int64_t changed_ns;
	pthread_mutex_t memory_lock;
	/* Changed under the catalogue's lock. Trace and timeline may be read without it by who holds the trace ready. */
	enum served_state state;
	struct ops_read_progress progress; /* while it is read */
	struct ops_trace *trace;
	struct ops_timeline *timeline;
	struct ops_memory_timeline *memory; /* made when somebody asks, under its own lock */
	uint64_t memory_bytes;
	uint64_t derived_bytes; /* those of the trace that memory_bytes counts */
	uint64_t last_use;
	int64_t events; /* -1: was not read */
	struct trace_job job_facts;   /* once it was read */
	const struct served *job_key; /* the first trace of its job, itself of a trace that is alone; NULL: was not read */
	char *summary;                /* ops_trace_summary(); NULL: not made yet */
	size_t summary_size;
	bool wants_summary;
	struct ops_diagnostic diagnostics[OPS_DIAGNOSTICS_MAX]; /* once it was read; they do not change */
	size_t diagnostic_count;
	struct ops_error error;
	unsigned users;
	bool is_listed; /* still there */
	struct job *waiters;
	struct job reading; /* the job that reads it */
};

typedef OPS_ARRAY(struct served *) served_list;
typedef OPS_ARRAY(char *) path_list;

struct catalog {
	pthread_mutex_t lock; /* of all below, but for what does not change */
	served_list traces;   /* in the order of the list; behind it those that are gone and still used */
	path_list paths;      /* does not change */
	struct workers *workers;
	struct watch *watch; /* does not change; NULL: the list stays as it is */
	uint64_t memory_limit;
	void (*on_diagnostic)(const struct ops_diagnostic *diagnostic); /* does not change; NULL: none */
	uint64_t memory_used;
	uint64_t uses;
	int64_t generation;
	bool jobs_changed; /* the traces that are listed and read are others than those that job_key is of */
	struct summarizer *summarizer; /* NULL: no summary was requested yet */
	pthread_cond_t summaries;      /* one is wanted, or a trace was read */
	struct ops_limit summary_limit; /* of making one; does not change */
	atomic_bool stopping;
};

/* Lists what there is: OPS_IO when a path is not there. */
enum ops_code catalog_new(const struct ops_api_options *options, struct workers *workers, struct catalog **ret_catalog,
                          struct ops_error *error);
/* From here on what is being read fails soon, and no more begins to be read. */
void catalog_stop(struct catalog *catalog);
/* When all workers are gone. NULL is allowed. */
void catalog_free(struct catalog *catalog);

/* Looks again. False when memory is out: then all is as it was. */
bool catalog_rescan(struct catalog *catalog);

/* The trace of that id, to be used until catalog_release; NULL when there is none. */
struct served *catalog_acquire(struct catalog *catalog, const char *id);
void catalog_release(struct served *served);
/* SERVED_READY and SERVED_FAILED are final for who uses the trace. Otherwise it is being read now, and `waiter` is run when
 * it is one of them. */
enum served_state catalog_await(struct served *served, struct job *waiter);
/* The memory of a trace that is ready, kept with it. */
enum ops_code catalog_memory(struct served *served, const struct ops_memory_timeline **ret_memory, struct ops_error *error);
/* Begins to read the trace if it is the only one, for it will be requested next. */
void catalog_read_only(struct catalog *catalog);

/* What is known of a trace from now on; the lock is held. */
void served_set_facts(struct served *served, const struct ops_trace *trace, const struct trace_job *facts);
/* The trace cannot be read; the lock is held. */
void served_fail(struct served *served, const struct ops_error *error);

/* The members of the list of traces. */
void catalog_write(struct catalog *catalog, bool with_summaries, struct ops_json_writer *json);

/* Files that are gone leave the list when nobody uses them. The lock is held. */
void catalog_drop_unused(struct catalog *catalog);

/* --- catalog_scan.c ------------------------------------------------------------------------------------------------ */

/* Finds the files of all paths, and the directories they are in. The lists are released by the caller in any case. */
enum ops_code catalog_scan(const char *const *paths, size_t count, served_list *found, path_list *folders,
                           struct ops_error *error);
void served_free(struct served *served);

/* --- catalog_jobs.c ------------------------------------------------------------------------------------------------- */

bool served_in_one_folder(const struct served *a, const struct served *b);
/* Finds which traces are of one job, if that may have changed. The lock is held. */
void catalog_find_jobs(struct catalog *catalog);

/* --- catalog_summaries.c -------------------------------------------------------------------------------------------- */

/* Has the missing summaries made, one after the other, on a separate thread: those of all traces, or of the traces in the
 * directory of `id`. False when memory is out. */
bool catalog_summarize(struct catalog *catalog, const char *id);
/* The summary of a trace that is ready, made now unless it is there. */
enum ops_code catalog_summary(struct served *served, char **ret_text, size_t *ret_size, struct ops_error *error);
void summarizer_free(struct summarizer *summarizer); /* NULL is allowed */

/* --- catalog_watch.c ----------------------------------------------------------------------------------------------- */

/* A thread that looks again when a directory changes. */
struct watch;
struct watch *watch_new(struct catalog *catalog); /* NULL when memory is out */
/* Has it look at these directories, too. */
void watch_add(struct watch *watch, const path_list *folders);
bool watch_start(struct watch *watch);
void watch_free(struct watch *watch); /* NULL is allowed */

#endif
