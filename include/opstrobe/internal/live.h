/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/live.h: observes a session while it records: the time of operators and ranges, the number and duration of
 * steps, the memory that allocators hold.
 *
 *     ops_live_new(&live, &error);
 *     for (…; sleep(1)) {
 *             ops_live_sample(live);
 *             ops_live_read(live, &state);
 *             …
 *     }
 *     ops_live_free(live);
 *
 * It reads what threads have published. Recording threads are not affected: the hot path has no instruction for it, and the
 * recorder's lock is held for a few blocks at a time. Sums cover all sessions since ops_live_new. Any thread may use it, one at a
 * time.
 */
#ifndef OPSTROBE_LIVE_H
#define OPSTROBE_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_LIVE_DEVICES 16
#define OPS_LIVE_STEPS 64

struct ops_live;

/* All ended operators, or ranges, of the same name. All steps ("ProfilerStep#3") have one row. */
struct ops_live_row {
	const char *name; /* any bytes, not NUL-terminated; valid as long as the ops_live */
	size_t name_bytes;
	uint64_t calls;
	uint64_t total_ns;
	uint64_t self_ns; /* without the time of operators and ranges inside */
};

struct ops_live_memory {
	uint16_t device_type; /* c10::DeviceType */
	int16_t device_index; /* -1 for the CPU */
	uint64_t allocated_bytes;
	uint64_t peak_bytes;
};

struct ops_live_state {
	const struct ops_live_row *rows; /* sorted by self time, largest first */
	size_t row_count;
	uint64_t self_ns; /* of all rows */
	uint64_t records;
	uint64_t lost;
	uint64_t recorder_bytes; /* memory of the current session */
	uint64_t steps;          /* steps that have ended: ProfilerStep#…, or calls of step() of the first optimizer */
	uint64_t step_ns[OPS_LIVE_STEPS]; /* from end to end; the last steps, oldest first */
	size_t step_count;
	struct ops_live_memory memory[OPS_LIVE_DEVICES]; /* devices whose allocators were recorded */
	size_t memory_count;
};

enum ops_code ops_live_new(struct ops_live **ret_live, struct ops_error *error);
/* Adds what was recorded since the last call. If out of memory, further names are summed as "(other)". */
void ops_live_sample(struct ops_live *live);
/* Returns the sums so far; valid until the next sample. */
void ops_live_read(struct ops_live *live, struct ops_live_state *ret_state);
void ops_live_free(struct ops_live *live); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
