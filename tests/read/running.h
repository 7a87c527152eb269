/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared code of tests of recordings in progress: a folder for the recording file, records, and the contents of a snapshot.
 */
#ifndef OPS_TESTS_READ_RUNNING_H
#define OPS_TESTS_READ_RUNNING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/record.h>

static char folder[64];
static char path[128]; /* of the recording file */
static uint64_t total_bytes; /* of what report_memory() reported */

static int make_recording_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opstrobe-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/1.oprec", folder);
	return 0;
}

static int remove_recording_folder(void **state)
{
	(void)state;
	unlink(path);
	rmdir(folder);
	return 0;
}

static struct ops_session *start_recording(const struct ops_record_options *options)
{
	struct ops_session *session = NULL;
	struct ops_error error;

	if (ops_session_start(options, &session, &error))
		fail_msg("%s", error.text);
	return session;
}

static struct ops_trace *snapshot_last(const struct ops_session *session, uint64_t last_ns)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_session_snapshot(session, last_ns, &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	return trace;
}

static struct ops_range begin_named(const char *name)
{
	return ops_range_begin(name, strlen(name));
}

/* Events of a name, with these flags of those two. */
static size_t count_flagged(const struct ops_trace *trace, const char *name, uint16_t flags)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count = 0;

	for (size_t i = 0; i < events->count; i++) {
		struct ops_string text = ops_trace_string(trace, events->name[i]);

		count += text.size == strlen(name) && !memcmp(text.bytes, name, text.size) &&
		         (events->flags[i] & (OPS_EVENT_UNFINISHED | OPS_EVENT_CUT)) == flags;
	}
	return count;
}

static void report_memory(uint64_t address, int64_t bytes)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_memory_slot *slot =
		(struct ops_memory_slot *)(void *)ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	assert_non_null(slot);
	total_bytes += (uint64_t)bytes;
	*slot = (struct ops_memory_slot){
		.address = address,
		.time_ticks = ops_ticks(collector->tsc),
		.bytes = bytes,
		.total_allocated = total_bytes,
		.device_index = -1,
		.kind = OPS_SLOT_MEMORY,
	};
	ops_publish(thread);
}

#endif
