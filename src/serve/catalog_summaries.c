/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the summaries in the list of traces, on one thread of low priority, one trace after another. A trace that nobody has
 * opened is read for it and released, because the catalog's memory is for traces that are viewed.
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opstrobe/internal/advice.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/thread.h"
#include "serve/catalog.h"

#define NICENESS 10

struct summarizer {
	struct catalog *catalog;
	pthread_t thread;
	bool ending; /* protected by the lock of the catalog */
};

/* --- one trace ------------------------------------------------------------------------------------------------------ */

/* Keeps the summary if there is none yet. */
static void keep(struct served *served, const struct ops_trace *trace, const struct ops_trace_job *facts, char *owned_text, size_t size)
{
	struct catalog *catalog = served->catalog;

	pthread_mutex_lock(&catalog->lock);
	if (served->events < 0)
		served_set_facts(served, trace, facts);
	if (!served->summary) {
		served->summary = owned_text;
		served->summary_size = size;
		owned_text = NULL;
		catalog->generation++;
	}
	pthread_mutex_unlock(&catalog->lock);
	ops_free(owned_text);
}

/* A failure is kept as a summary with the error; otherwise the page would wait for it. */
static void keep_failure(struct served *served, const struct ops_trace *trace, const struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	struct ops_trace_job facts;
	struct ops_error ignored;
	char *text;
	size_t size;

	ops_json_open(&json, '{');
	ops_json_member_text(&json, "error", error->text);
	ops_json_close(&json, '}');
	trace_job_read(trace, served->path, &facts);
	if (!ops_buffer_detach(&out, OPS_OK, &text, &size, &ignored))
		keep(served, trace, &facts, text, size);
}

static enum ops_code summarize(struct served *served, const struct ops_trace *trace, struct ops_error *error)
{
	const struct ops_rank rank = {.trace = (struct ops_trace *)trace, .rank = -1, .path = served->path, .name = served->worker,
	                              .span = served->span};
	struct ops_trace_job facts;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = ops_trace_summary(&rank, &text, &size, error);

	trace_job_read(trace, served->path, &facts);
	if (!code)
		keep(served, trace, &facts, text, size);
	return code;
}

enum ops_code catalog_summary(struct served *served, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct catalog *catalog = served->catalog;
	struct ops_buffer out = {0};
	enum ops_code code = OPS_OK;
	bool there;

	pthread_mutex_lock(&catalog->lock);
	there = served->summary != NULL;
	pthread_mutex_unlock(&catalog->lock);
	if (!there)
		code = summarize(served, served->trace, error);
	pthread_mutex_lock(&catalog->lock);
	if (!code)
		ops_buffer_append(&out, served->summary, served->summary_size);
	pthread_mutex_unlock(&catalog->lock);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

/* Applies the limits of a reply. */
static void summarize_limited(struct served *served, const struct ops_trace *trace)
{
	struct ops_limit limit = served->catalog->summary_limit;
	struct ops_error error;
	enum ops_code code;

	ops_limit_begin(&limit);
	code = summarize(served, trace, &error);
	ops_limit_end();
	if (code)
		keep_failure(served, trace, &error);
}

/* --- thread --------------------------------------------------------------------------------------------------------- */

static int on_progress(void *context, const struct ops_read_progress *progress)
{
	const struct catalog *catalog = context;

	(void)progress;
	return atomic_load(&catalog->stopping);
}

/* Reads the trace only for the summary. */
static void read_and_summarize(struct served *served)
{
	struct catalog *catalog = served->catalog;
	struct ops_read_options options = {sizeof(options), on_progress, catalog};
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read(served->path, &options, &trace, &error)) {
		pthread_mutex_lock(&catalog->lock);
		if (served->state == SERVED_LISTED && !atomic_load(&catalog->stopping))
			served_fail(served, &error);
		pthread_mutex_unlock(&catalog->lock);
		return;
	}
	summarize_limited(served, trace);
	ops_trace_unref(trace);
}

/* Finds a trace that needs a summary and is not being read. The lock must be held. */
static struct served *next_wanted(struct catalog *catalog)
{
	for (size_t i = 0; i < catalog->traces.count; i++) {
		struct served *served = catalog->traces.items[i];

		if (served->wants_summary && served->is_listed && served->state != SERVED_READING)
			return served;
	}
	return NULL;
}

static void *make_summaries(void *context)
{
	struct summarizer *summarizer = context;
	struct catalog *catalog = summarizer->catalog;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
	pthread_mutex_lock(&catalog->lock);
	while (!summarizer->ending && !atomic_load(&catalog->stopping)) {
		struct served *served = next_wanted(catalog);
		bool ready;

		if (!served) {
			pthread_cond_wait(&catalog->summaries, &catalog->lock);
			continue;
		}
		served->wants_summary = false;
		if (served->summary || served->state == SERVED_FAILED)
			continue;
		served->users++;
		ready = served->state == SERVED_READY;
		pthread_mutex_unlock(&catalog->lock);
		if (ready)
			summarize_limited(served, served->trace);
		else
			read_and_summarize(served);
		catalog_release(served);
		pthread_mutex_lock(&catalog->lock);
	}
	pthread_mutex_unlock(&catalog->lock);
	return NULL;
}

/* The lock must be held. */
static bool start_summaries(struct catalog *catalog)
{
	struct summarizer *summarizer;

	if (catalog->summarizer)
		return true;
	summarizer = ops_alloc_zeroed(1, sizeof(*summarizer));
	if (!summarizer)
		return false;
	summarizer->catalog = catalog;
	if (!ops_thread_start(&summarizer->thread, make_summaries, summarizer)) {
		ops_free(summarizer);
		return false;
	}
	catalog->summarizer = summarizer;
	return true;
}

bool catalog_summarize(struct catalog *catalog, const char *id)
{
	const struct served *one = NULL;
	bool done, any = false;

	pthread_mutex_lock(&catalog->lock);
	for (size_t i = 0; id && i < catalog->traces.count; i++)
		if (!strcmp(catalog->traces.items[i]->id, id))
			one = catalog->traces.items[i];
	for (size_t i = 0; (!id || one) && i < catalog->traces.count; i++) {
		struct served *served = catalog->traces.items[i];

		served->wants_summary = !served->summary && served->changed_ns && (!one || served_in_one_folder(served, one));
		any |= served->wants_summary;
	}
	done = !any || start_summaries(catalog);
	pthread_cond_signal(&catalog->summaries);
	pthread_mutex_unlock(&catalog->lock);
	return done;
}

void summarizer_free(struct summarizer *summarizer)
{
	if (!summarizer)
		return;
	pthread_mutex_lock(&summarizer->catalog->lock);
	summarizer->ending = true;
	pthread_cond_signal(&summarizer->catalog->summaries);
	pthread_mutex_unlock(&summarizer->catalog->lock);
	pthread_join(summarizer->thread, NULL);
	ops_free(summarizer);
}
