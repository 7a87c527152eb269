/* SPDX-License-Identifier: Apache-2.0
 *
 * Watch files of processes that have ended: each becomes an incident, with the recording that the process left.
 */
#include <opstrobe/internal/incidents.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/internal/snapshot.h>
#include <opstrobe/read.h>

#include "base/alloc.h"
#include "base/memory_group.h"
#include "base/text.h"
#include "record/spill.h"
#include "watch/left_behind.h"
#include "watch/watch_facts.h"

#define CLAIMED ".taken" /* suffix of a file of which some process makes an incident */

bool left_page_check(struct ops_watch_page *page)
{
	if (page->magic != OPS_WATCH_MAGIC || page->version != OPS_WATCH_VERSION || page->bytes != sizeof(*page))
		return false;
	page->boot_id[sizeof(page->boot_id) - 1] = page->process_name[sizeof(page->process_name) - 1] = '\0';
	page->host_name[sizeof(page->host_name) - 1] = page->command[sizeof(page->command) - 1] = '\0';
	page->recording[sizeof(page->recording) - 1] = page->control_group[sizeof(page->control_group) - 1] = '\0';
	page->latest &= 1;
	if (page->end_stack.count > OPS_STACK_FRAMES)
		page->end_stack.count = OPS_STACK_FRAMES;
	return true;
}

static bool page_read(const char *path, struct ops_watch_page *page)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t size = fd < 0 ? -1 : pread(fd, page, sizeof(*page), 0);

	if (fd >= 0)
		close(fd);
	return size == sizeof(*page) && left_page_check(page);
}

static bool page_is_alive(const struct ops_watch_page *page)
{
	char boot_id[40];

	ops_spill_boot_id(boot_id);
	return strcmp(boot_id, page->boot_id) == 0 && watch_process_start(page->pid) == page->start_time;
}

static int64_t modified_ns(const char *path)
{
	struct stat seen;

	return stat(path, &seen) == 0 ? (int64_t)seen.st_mtim.tv_sec * 1000000000 + seen.st_mtim.tv_nsec : 0;
}

/* Returns the end of the process, as far as it is known. */
static int64_t end_of(const char *path, const struct ops_watch_page *page, const struct ops_watch_sample *last,
                      const struct ops_trace *trace)
{
	int64_t time_ns = page->signal ? page->signal_ns : last->time_ns;

	if (trace && ops_trace_info(trace)->stop_ns > time_ns && !page->signal)
		time_ns = ops_trace_info(trace)->stop_ns;
	return time_ns ? time_ns : modified_ns(path);
}

void left_page_facts(const struct ops_watch_page *page, int64_t end_ns, struct ops_buffer *out)
{
	struct watch_memory memory = {.rss_bytes = page->rss_bytes, .limit_bytes = page->memory_limit_bytes};
	struct watch_step step = {.number = page->step, .median_ns = page->step_median_ns, .goes_on = true};
	struct watch_facts facts = {.page = page, .step = &step, .memory = &memory, .threads = &page->samples[page->latest]};
	struct ops_memory_group_events events;

	ops_memory_group_events_read(page->control_group, &events); /* the group may exist no more */
	memory.oom_kills = events.oom_kills;
	facts.trigger = page->signal ? OPS_TRIGGER_SIGNAL : page->exits ? OPS_TRIGGER_EXIT : OPS_TRIGGER_KILLED;
	facts.time_ns = end_ns;
	facts.tid = page->signal || page->exits ? page->end_stack.tid : page->step_tid ? page->step_tid : page->main_tid;
	step.duration_ns = page->step_begin_ns > 0 && end_ns > page->step_begin_ns ? end_ns - page->step_begin_ns : 0;
	watch_facts_write(&facts, out);
}

/* Writes the incident of a watch file. Returns false if it could not be written. */
static bool page_report(const char *path, const struct ops_watch_page *page, const char *directory, uint64_t max_bytes)
{
	struct ops_trace *trace = NULL;
	int64_t end_ns;
	struct ops_buffer text = {0};
	struct ops_error error;
	enum ops_code code;

	if (page->recording[0])
		ops_trace_recover(page->recording, &trace, NULL, &error); /* if that fails, the incident has no trace */
	end_ns = end_of(path, page, &page->samples[page->latest], trace);
	left_page_facts(page, end_ns, &text);
	code = text.failed ? OPS_NO_MEMORY
	                   : ops_incident_write(directory, text.bytes, text.size, trace, end_ns, page->pid, max_bytes, NULL, &error);
	ops_trace_unref(trace);
	ops_buffer_release(&text);
	return code == OPS_OK;
}

/* The contents of a file are not sufficient for removing another one. */
static bool is_recording_in(const char *box, const char *path)
{
	size_t size = strlen(box);

	while (size > 1 && box[size - 1] == '/')
		size--;
	return !strncmp(path, box, size) && path[size] == '/' && !strchr(path + size + 1, '/') &&
	       strlen(path + size + 1) > strlen(OPS_RECORDING_SUFFIX) && ops_ends_with(path, OPS_RECORDING_SUFFIX);
}

/* Returns whether it is the watch file of an ended process. The process that renames the file gets it. */
static bool report_left_behind(const char *box, const char *name, struct ops_watch_page *page, const char *directory, uint64_t max_bytes)
{
	char path[PATH_MAX], taken[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", box, name) >= (int)sizeof(path) ||
	    snprintf(taken, sizeof(taken), "%s" CLAIMED, path) >= (int)sizeof(taken))
		return false;
	if (!page_read(path, page) || page_is_alive(page) || rename(path, taken) != 0)
		return false;
	if (!page_report(taken, page, directory, max_bytes)) {
		rename(taken, path); /* the disk may be full, so it is tried again later */
		return true;
	}
	if (is_recording_in(box, page->recording))
		unlink(page->recording);
	unlink(taken);
	return true;
}

size_t ops_incidents_adopt(const char *box, const char *directory, uint64_t max_bytes)
{
	struct ops_watch_page *page = ops_alloc(sizeof(*page));
	DIR *folder = page ? opendir(box) : NULL;
	struct dirent *entry;
	size_t count = 0;

	while (folder && (entry = readdir(folder)))
		if (ops_ends_with(entry->d_name, OPS_WATCH_SUFFIX))
			count += report_left_behind(box, entry->d_name, page, directory, max_bytes);
	if (folder)
		closedir(folder);
	ops_free(page);
	return count;
}
