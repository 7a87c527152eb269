/* SPDX-License-Identifier: Apache-2.0
 *
 * The library that writes CUPTI's records to a file (record/record_cupti.c), between the collector and the stand-in for CUPTI:
 * the replayed file results in the same trace as the session. RECORD_CUPTI_FILE names a file to keep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>

#include "asking.h"
#include "fake_cupti/fake_cupti.h"
#include "gpu/cupti.h"
#include "replay/replaying.h"

#define LAUNCHES 50

static struct ops_trace *replay(const char *path)
{
	struct loaded file = load_file(path);
	struct ops_trace *trace = replay_bytes(file.bytes, file.size);

	free(file.bytes);
	return trace;
}

static void assert_launched(const struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);

	for (uint32_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_KERNEL)
			assert_int_not_equal(launch_of(trace, row), OPS_NONE);
}

static void what_is_kept_replays_as_it_was(void **state)
{
	char own[] = "/tmp/opstrobe-record-XXXXXX";
	const char *wanted = getenv("RECORD_CUPTI_FILE"), *path = wanted ? wanted : own;
	void *fake = dlopen(getenv("RECORD_CUPTI_LIBRARY"), RTLD_NOW);
	__typeof__(&fake_cupti_launch) launch = (__typeof__(launch))(uintptr_t)dlsym(fake, "fake_cupti_launch");
	__typeof__(&fake_cupti_copy) copy = (__typeof__(copy))(uintptr_t)dlsym(fake, "fake_cupti_copy");
	struct ops_trace *recorded, *replayed;
	struct run run;

	(void)state;
	if (!wanted)
		close(mkstemp(own));
	setenv("RECORD_CUPTI_FILE", path, 1);
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	for (int i = 0; i < LAUNCHES; i++)
		launch(i % 2 ? "_Z4gemmPKfS0_Pf" : "_Z4reluPf", 264, 256, 1000, 20000);
	copy(4096, 100, 200);
	recorded = checked_trace(stop_run(&run));
	replayed = replay(path);
	if (!wanted)
		unlink(path);
	for (enum ops_event_kind kind = OPS_EVENT_KERNEL; kind <= OPS_EVENT_RUNTIME; kind++)
		assert_int_equal(count_kind(recorded, kind), count_kind(replayed, kind));
	assert_int_equal(count_kind(replayed, OPS_EVENT_KERNEL), LAUNCHES);
	assert_launched(replayed);
	find_row(replayed, OPS_EVENT_GPU_MEMCPY, "Memcpy HtoD (Pageable -> Device)");
	ops_trace_unref(replayed);
	ops_trace_unref(recorded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_replays_as_it_was)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
