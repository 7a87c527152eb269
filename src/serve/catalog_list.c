/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of served traces, updated from what is found on disk; see catalog.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "serve/catalog.h"
#include "trace/diagnostics.h"

/* --- update --------------------------------------------------------------------------------------------------------- */

static void release_paths(path_list *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		ops_free(paths->items[i]);
	OPS_ARRAY_RELEASE(paths);
}

static void release_traces(served_list *traces)
{
	for (size_t i = 0; i < traces->count; i++)
		served_free(traces->items[i]);
	OPS_ARRAY_RELEASE(traces);
}

static int compare_ids(const void *left, const void *right)
{
	return strcmp((*(struct served *const *)left)->id, (*(struct served *const *)right)->id);
}

/* Returns the same pointers sorted by id. */
static struct served **sort_by_id(const served_list *list)
{
	struct served **sorted = ops_realloc_array(NULL, list->count + 1, sizeof(struct served *));

	if (sorted && list->count) {
		memcpy(sorted, list->items, list->count * sizeof(struct served *));
		qsort(sorted, list->count, sizeof(struct served *), compare_ids);
	}
	return sorted;
}

/* A file that was found in two ways is listed once. */
static void unlist_twins(struct served **sorted, size_t count)
{
	for (size_t i = 1; i < count; i++)
		sorted[i]->is_listed = strcmp(sorted[i - 1]->id, sorted[i]->id) != 0;
}

/* Known entries replace entries that were found again; other known entries are appended. `found` has capacity for them, and is
 * released by the caller. */
static void catalog_list_merge(struct catalog *catalog, served_list *found, struct served **known)
{
	size_t known_count = catalog->traces.count, kept = 0;
	served_list list = *found;
	bool changed = false;

	for (size_t i = 0; i < known_count; i++)
		known[i]->is_listed = false;
	for (size_t i = 0; i < found->count; i++) {
		struct served *served = list.items[i], **old;

		old = bsearch(&served, known, known_count, sizeof(struct served *), compare_ids);
		if (old && served->is_listed)
			(*old)->is_listed = true;
		changed |= !old && served->is_listed;
		if (!old && served->is_listed) {
			served->catalog = catalog;
			list.items[kept++] = served;
			continue;
		}
		if (old && served->is_listed)
			list.items[kept++] = *old;
		served_free(served);
	}
	for (size_t i = 0; i < known_count; i++) {
		if (!known[i]->is_listed)
			list.items[kept++] = known[i];
		changed |= !known[i]->is_listed;
	}
	list.count = kept;
	*found = catalog->traces;
	found->count = 0;
	catalog->traces = list;
	catalog->generation += changed;
	catalog->jobs_changed |= changed;
	catalog_drop_unused(catalog);
}

static enum ops_code list_again(struct catalog *catalog, served_list *found, struct ops_error *error)
{
	struct served **sorted = sort_by_id(found), **known = NULL;
	enum ops_code code = OPS_OK;

	if (sorted)
		unlist_twins(sorted, found->count);
	pthread_mutex_lock(&catalog->lock);
	if (sorted && OPS_ARRAY_RESERVE(found, catalog->traces.count))
		known = sort_by_id(&catalog->traces);
	if (known)
		catalog_list_merge(catalog, found, known);
	else
		code = ops_fault_memory(error);
	pthread_mutex_unlock(&catalog->lock);
	ops_free(sorted);
	ops_free(known);
	return code;
}

static enum ops_code scan(struct catalog *catalog, struct ops_error *error)
{
	served_list found = {0};
	path_list folders = {0};
	enum ops_code code = catalog_scan((const char *const *)catalog->paths.items, catalog->paths.count, &found, &folders,
	                                  error);

	if (!code)
		code = list_again(catalog, &found, error);
	if (!code && catalog->watch)
		watch_add(catalog->watch, &folders);
	release_traces(&found);
	release_paths(&folders);
	return code;
}

bool catalog_rescan(struct catalog *catalog)
{
	struct ops_error error;

	return scan(catalog, &error) != OPS_NO_MEMORY;
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

static bool copy_paths(struct catalog *catalog, const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(paths[i]) + 1;
		char **slot = OPS_ARRAY_PUSH(&catalog->paths);

		if (!slot)
			return false;
		*slot = ops_realloc_array(NULL, size, 1);
		if (!*slot)
			return false;
		memcpy(*slot, paths[i], size);
	}
	return true;
}

static uint64_t half_of_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
}

enum ops_code catalog_new(const struct ops_api_options *options, struct workers *workers, struct catalog **ret_catalog,
                          struct ops_error *error)
{
	struct catalog *catalog = ops_alloc_zeroed(1, sizeof(*catalog));
	enum ops_code code = OPS_OK;

	if (!catalog)
		return ops_fault_memory(error);
	pthread_mutex_init(&catalog->lock, NULL);
	pthread_cond_init(&catalog->summaries, NULL);
	catalog->workers = workers;
	catalog->on_diagnostic = options->on_diagnostic;
	catalog->memory_limit = options->memory_bytes ? options->memory_bytes : half_of_memory();
	if (!copy_paths(catalog, options->paths, options->path_count))
		code = ops_fault_memory(error);
	if (!code && options->watch) {
		catalog->watch = watch_new(catalog);
		code = catalog->watch ? OPS_OK : ops_fault_memory(error);
	}
	if (!code)
		code = scan(catalog, error);
	if (!code && catalog->watch && !watch_start(catalog->watch))
		code = ops_fault_memory(error);
	if (code) {
		catalog_free(catalog);
		return code;
	}
	*ret_catalog = catalog;
	return OPS_OK;
}

void catalog_stop(struct catalog *catalog)
{
	atomic_store(&catalog->stopping, true);
}

void catalog_free(struct catalog *catalog)
{
	if (!catalog)
		return;
	watch_free(catalog->watch);
	summarizer_free(catalog->summarizer);
	release_traces(&catalog->traces);
	release_paths(&catalog->paths);
	pthread_cond_destroy(&catalog->summaries);
	pthread_mutex_destroy(&catalog->lock);
	ops_free(catalog);
}

/* --- summaries ------------------------------------------------------------------------------------------------------ */

/* The total size of a pipe is unknown. */
static void write_progress(const struct ops_read_progress *progress, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_key(json, "share");
	if (progress->bytes_total)
		ops_json_number(json, fmin((double)progress->bytes / (double)progress->bytes_total, 1));
	else
		ops_json_null(json);
	ops_json_member(json, "bytes", (int64_t)progress->bytes);
	ops_json_member(json, "events", (int64_t)progress->events);
	ops_json_member(json, "notes", (int64_t)progress->notes);
	ops_json_close(json, '}');
}

static void write_diagnostics(const struct served *served, struct ops_json_writer *json)
{
	ops_json_key(json, "diagnostics");
	ops_json_open(json, '[');
	for (size_t i = 0; i < served->diagnostic_count; i++)
		ops_diagnostic_write(&served->diagnostics[i], json);
	ops_json_close(json, ']');
}

static void write_summary(const struct served *served, bool with_summaries, struct ops_json_writer *json)
{
	ops_json_key(json, "summary");
	if (with_summaries && served->summary)
		ops_json_raw(json, served->summary, served->summary_size);
	else
		ops_json_null(json);
}

static void write_served(const struct served *served, bool with_summaries, struct ops_json_writer *json)
{
	static const char *const states[] = {"listed", "reading", "ready", "failed"};
	const char *slash = strrchr(served->path, '/');

	ops_json_open(json, '{');
	ops_json_member_text(json, "id", served->id);
	ops_json_member_text(json, "run", served->run);
	ops_json_member_text(json, "worker", served->worker);
	ops_json_member_or_null(json, "span", served->span ? served->span : -1);
	ops_json_member_text(json, "name", slash ? slash + 1 : served->path);
	ops_json_member_text(json, "path", served->path);
	ops_json_member(json, "bytes", (int64_t)served->bytes);
	ops_json_member_or_null(json, "changed_ns", served->changed_ns ? served->changed_ns : -1);
	ops_json_member_text(json, "state", states[served->state]);
	ops_json_key(json, "progress");
	if (served->state == SERVED_READING)
		write_progress(&served->progress, json);
	else
		ops_json_null(json);
	ops_json_member_or_null(json, "events", served->events);
	ops_json_member_or_null(json, "rank", served->events >= 0 ? served->job_facts.rank : -1);
	ops_json_key(json, "job");
	if (served->job_key)
		ops_json_word(json, served->job_key->id);
	else
		ops_json_null(json);
	write_summary(served, with_summaries, json);
	write_diagnostics(served, json);
	ops_json_key(json, "error");
	if (served->state == SERVED_FAILED)
		ops_json_word(json, served->error.text);
	else
		ops_json_null(json);
	ops_json_close(json, '}');
}

void catalog_write(struct catalog *catalog, bool with_summaries, struct ops_json_writer *json)
{
	pthread_mutex_lock(&catalog->lock);
	catalog_find_jobs(catalog);
	ops_json_member(json, "generation", catalog->generation);
	ops_json_key(json, "watching");
	ops_json_bool(json, catalog->watch != NULL);
	ops_json_key(json, "traces");
	ops_json_open(json, '[');
	for (size_t i = 0; i < catalog->traces.count; i++)
		if (catalog->traces.items[i]->is_listed)
			write_served(catalog->traces.items[i], with_summaries, json);
	ops_json_close(json, ']');
	pthread_mutex_unlock(&catalog->lock);
}
