/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared code of the tests of the recorder: sessions in one line, and inspection of recordings.
 */
#ifndef TESTS_RECORD_HARNESS_H
#define TESTS_RECORD_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/record.h>

#include "record/recording.h"

struct text {
	const char *bytes;
	size_t size;
};
#define TEXT(literal) ((struct text){literal, sizeof(literal) - 1})

/* Starts a session with default options, or with a ceiling. Fails the test when it cannot. */
struct ops_session *start(void);
struct ops_session *start_bounded(uint64_t max_bytes);
/* Stops it and checks what every recording promises. */
struct ops_recording *stop(struct ops_session *session);

/* Checks what every recording promises: headers, offsets, order, sums. */
void check_recording(const struct ops_recording *recording);

/* One slot of a recording. */
struct found {
	const struct ops_share *share;
	const struct ops_slot *slot;
	const char *payload; /* NULL when there is none */
	struct text name;
	struct text args; /* NULL bytes when there are none */
};

/* Calls `visit` with every slot, thread by thread, in order. */
void each_slot(const struct ops_recording *recording, void (*visit)(const struct found *found, void *context),
               void *context);
size_t count_named(const struct ops_recording *recording, struct text name);
/* Returns the only slot of that name; fails the test if there are none or several. */
struct found find(const struct ops_recording *recording, struct text name);
/* The share of a thread, NULL when it is not in the recording. */
const struct ops_share *find_share(const struct ops_recording *recording, int64_t tid);

double slot_value(const struct ops_slot *slot);
int64_t own_tid(void);
uint64_t resident_bytes(void);

/* Records `count` closed ranges of this name. */
void record_ranges(struct text name, size_t count);

#endif
