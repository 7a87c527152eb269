/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/live.h: looking at a session while it records: which operators and ranges take time, how many steps there were
 * and how long they took, what allocators hold.
 *
 *     ops_live_new(&live, &error);
 *     for (…; sleep(1)) {
 *             ops_live_sample(live);
 *             ops_live_read(live, &state);
 *             …
 *     }
 *     ops_live_free(live);
 *
 * It reads what threads have published already. They notice nothing of it: no instruction of the hot path is there for it,
 * and the lock of the recorder is held for some blocks at a time. It sees sessions come and go, and adds up over all.
 * One thread at a time may use it, any.
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

/* All operators, or ranges, of one name that have ended. Ranges of steps, "ProfilerStep#3", are one. */
struct ops_live_row {
	const char *name; /* any bytes, no NUL behind; lives as long as the ops_live */
	size_t name_bytes;
	uint64_t calls;
	uint64_t total_ns;
	uint64_t self_ns; /* without the operators and ranges inside */
};

struct ops_live_memory {
	uint16_t device_type; /* c10::DeviceType */
	int16_t device_index; /* -1 for the CPU */
	uint64_t allocated_bytes;
	uint64_t peak_bytes;
};

struct ops_live_state {
	const struct ops_live_row *rows; /* those with most own time first */
	size_t row_count;
	uint64_t self_ns; /* of all rows */
	uint64_t records;
	uint64_t lost;
	uint64_t recorder_bytes; /* that the session in progress takes */
	uint64_t steps;          /* that have ended: ProfilerStep#…, or calls of step() of the optimizer that was first */
	uint64_t step_ns[OPS_LIVE_STEPS]; /* from end to end, the last ones, the oldest first */
	size_t step_count;
	struct ops_live_memory memory[OPS_LIVE_DEVICES]; /* of devices whose allocators were recorded */
	size_t memory_count;
};

enum ops_code ops_live_new(struct ops_live **ret_live, struct ops_error *error);
/* Takes in what was recorded since the last time. Where memory is out, names are summed as "(other)". */
void ops_live_sample(struct ops_live *live);
/* The sums so far; valid until the next sample. */
void ops_live_read(struct ops_live *live, struct ops_live_state *ret_state);
void ops_live_free(struct ops_live *live); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
