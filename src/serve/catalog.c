/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces that are served; see catalog.h.
 */
#include "serve/catalog.h"

#include <pthread.h>
#include <string.h>

#include <opstrobe/query.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "trace/derived.h"

/* Approximate memory of a trace for each event: columns and strings. */
#define EVENT_BYTES 110

/* --- making room ---------------------------------------------------------------------------------------------------- */

static void catalog_drop_trace(struct catalog *catalog, struct served *served)
{
	ops_memory_timeline_free(served->memory);
	ops_timeline_free(served->timeline);
	ops_trace_unref(served->trace);
	served->memory = NULL;
	served->timeline = NULL;
	served->trace = NULL;
	catalog->memory_used -= served->memory_bytes;
	served->memory_bytes = served->derived_bytes = 0;
	served->state = SERVED_LISTED;
}

/* Drops the least recently used traces first, except those in use. */
static void catalog_make_room(struct catalog *catalog)
{
	while (catalog->memory_used > catalog->memory_limit) {
		struct served *oldest = NULL;

		for (size_t i = 0; i < catalog->traces.count; i++) {
			struct served *served = catalog->traces.items[i];

			if (served->state == SERVED_READY && !served->users && (!oldest || served->last_use < oldest->last_use))
				oldest = served;
		}
		if (!oldest)
			return;
		catalog_drop_trace(catalog, oldest);
	}
}

/* Drops entries whose files are gone and that are not in use. */
void catalog_drop_unused(struct catalog *catalog)
{
	size_t kept = 0;

	for (size_t i = 0; i < catalog->traces.count; i++) {
		struct served *served = catalog->traces.items[i];

		if (served->is_listed || served->users || served->state == SERVED_READING) {
			catalog->traces.items[kept++] = served;
			continue;
		}
		catalog->memory_used -= served->memory_bytes;
		catalog->jobs_changed = true; /* it may be the first trace of a job */
		served_free(served);
	}
	catalog->traces.count = kept;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

static int catalog_on_progress(void *context, const struct ops_read_progress *progress)
{
	struct served *served = context;
	struct catalog *catalog = served->catalog;

	pthread_mutex_lock(&catalog->lock);
	served->progress = *progress;
	pthread_mutex_unlock(&catalog->lock);
	return atomic_load(&catalog->stopping);
}

static void run_waiters(struct served *served)
{
	while (served->waiters) {
		struct job *waiter = served->waiters;

		served->waiters = waiter->next;
		workers_submit(served->catalog->workers, waiter, true);
	}
}

/* Finds the diagnostics of a trace when it is read for the first time. The lock must be held. */
static void diagnose(struct served *served, const struct ops_trace *trace)
{
	void (*report)(const struct ops_diagnostic *diagnostic) = served->catalog->on_diagnostic;

	if (served->diagnostic_count)
		return;
	served->diagnostic_count = ops_trace_diagnostics(trace, served->path, served->diagnostics);
	for (size_t i = 0; report && i < served->diagnostic_count; i++)
		report(&served->diagnostics[i]);
}

void served_set_facts(struct served *served, const struct ops_trace *trace, const struct ops_trace_job *facts)
{
	if (served->events < 0)
		served->catalog->jobs_changed = true;
	served->events = (int64_t)ops_trace_events(trace)->count;
	served->job_facts = *facts;
	diagnose(served, trace);
	served->catalog->generation++;
}

void served_fail(struct served *served, const struct ops_error *error)
{
	served->state = SERVED_FAILED;
	served->error = *error;
	served->catalog->generation++;
}

static void read_trace(struct job *job)
{
	struct served *served = (struct served *)((char *)job - offsetof(struct served, reading));
	struct ops_read_options options = {sizeof(options), catalog_on_progress, served};
	struct catalog *catalog = served->catalog;
	struct ops_timeline *timeline = NULL;
	struct ops_trace *trace = NULL;
	struct ops_trace_job facts;
	struct ops_error error;
	enum ops_code code = ops_trace_read(served->path, &options, &trace, &error);

	if (!code)
		code = ops_timeline_new(trace, &timeline, &error);
	if (!code)
		trace_job_read(trace, served->path, &facts);
	pthread_mutex_lock(&catalog->lock);
	if (code) {
		ops_trace_unref(trace);
		served_fail(served, &error);
	} else {
		served->state = SERVED_READY;
		served->trace = trace;
		served->timeline = timeline;
		served_set_facts(served, trace, &facts);
		served->memory_bytes = (uint64_t)served->events * EVENT_BYTES + ops_timeline_bytes(timeline);
		catalog->memory_used += served->memory_bytes;
	}
	served->last_use = ++catalog->uses;
	run_waiters(served);
	pthread_cond_signal(&catalog->summaries);
	catalog_drop_unused(catalog);
	catalog_make_room(catalog);
	pthread_mutex_unlock(&catalog->lock);
}

static void begin_reading(struct served *served)
{
	served->state = SERVED_READING;
	served->reading.run = read_trace;
	served->progress = (struct ops_read_progress){.bytes_total = served->bytes};
	served->catalog->generation++;
	workers_submit(served->catalog->workers, &served->reading, false);
}

enum served_state catalog_await(struct served *served, struct job *waiter)
{
	struct catalog *catalog = served->catalog;
	enum served_state state;

	pthread_mutex_lock(&catalog->lock);
	if (served->state == SERVED_LISTED && atomic_load(&catalog->stopping)) {
		served->state = SERVED_FAILED;
		ops_fault(&served->error, OPS_STATE, "the server is stopping");
	}
	if (served->state == SERVED_LISTED)
		begin_reading(served);
	state = served->state;
	if (state == SERVED_READING && waiter) {
		waiter->next = served->waiters;
		served->waiters = waiter;
	}
	pthread_mutex_unlock(&catalog->lock);
	return state;
}

void catalog_read_only(struct catalog *catalog)
{
	pthread_mutex_lock(&catalog->lock);
	if (catalog->traces.count == 1 && catalog->traces.items[0]->state == SERVED_LISTED)
		begin_reading(catalog->traces.items[0]);
	pthread_mutex_unlock(&catalog->lock);
}

/* --- use ------------------------------------------------------------------------------------------------------------ */

static struct served *catalog_find(const served_list *list, const char *id)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i]->id, id))
			return list->items[i];
	return NULL;
}

struct served *catalog_acquire(struct catalog *catalog, const char *id)
{
	struct served *served;

	pthread_mutex_lock(&catalog->lock);
	served = catalog_find(&catalog->traces, id);
	if (served) {
		served->users++;
		served->last_use = ++catalog->uses;
	}
	pthread_mutex_unlock(&catalog->lock);
	return served;
}

bool catalog_find_id(struct catalog *catalog, const char *path, char ret_id[TRACE_ID_SIZE + 1])
{
	bool found = false;

	pthread_mutex_lock(&catalog->lock);
	for (size_t i = 0; !found && i < catalog->traces.count; i++) {
		const struct served *served = catalog->traces.items[i];

		found = served->is_listed && !strcmp(served->path, path);
		if (found)
			memcpy(ret_id, served->id, sizeof(served->id));
	}
	pthread_mutex_unlock(&catalog->lock);
	return found;
}

/* Replies may have derived objects from the trace, which are kept with it. */
static void count_derived(struct catalog *catalog, struct served *served)
{
	uint64_t bytes = served->trace ? ops_trace_derived_bytes(served->trace) : 0;

	served->memory_bytes += bytes - served->derived_bytes;
	catalog->memory_used += bytes - served->derived_bytes;
	served->derived_bytes = bytes;
}

void catalog_release(struct served *served)
{
	struct catalog *catalog = served->catalog;

	pthread_mutex_lock(&catalog->lock);
	served->users--;
	count_derived(catalog, served);
	catalog_drop_unused(catalog);
	catalog_make_room(catalog);
	pthread_mutex_unlock(&catalog->lock);
}

enum ops_code catalog_memory(struct served *served, const struct ops_memory_timeline **ret_memory, struct ops_error *error)
{
	struct catalog *catalog = served->catalog;
	enum ops_code code = OPS_OK;

	pthread_mutex_lock(&served->memory_lock);
	if (!served->memory) {
		code = ops_memory_timeline_new(served->trace, &served->memory, error);
		if (!code) {
			uint64_t bytes = served->memory->block_count * sizeof(*served->memory->blocks) +
			                 served->memory->step_count * sizeof(*served->memory->steps);

			pthread_mutex_lock(&catalog->lock);
			served->memory_bytes += bytes;
			catalog->memory_used += bytes;
			pthread_mutex_unlock(&catalog->lock);
		}
	}
	*ret_memory = served->memory;
	pthread_mutex_unlock(&served->memory_lock);
	return code;
}
