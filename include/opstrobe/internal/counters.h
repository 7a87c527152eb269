/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/counters.h: counters of the processor and the kernel for a thread (Linux perf events): cycles, page faults,
 * ….
 *
 *     const char *const names[] = {"pagefaults"};
 *     const struct ops_counters *counters;
 *     code = ops_counters_open(names, 1, &counters, &refused, &error);
 *     int64_t values[OPS_COUNTERS_MAX];
 *     if (counters->read(values)) …                    // of the calling thread, any thread
 *     ops_counters_close();
 *
 * A process has one open set at a time. A thread's counters are opened when it first reads them, and count in user mode from then
 * on. They are closed when the thread ends or reads another set.
 */
#ifndef OPSTROBE_COUNTERS_H
#define OPSTROBE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_COUNTERS_MAX 8

/* An open set. Part of OPS_TORCH_BRIDGE_ABI. */
struct ops_counters {
	uint32_t count;
	const char *names[OPS_COUNTERS_MAX]; /* static strings */
	/* Reads the values of the calling thread, in order of names. Returns false if the thread has no counters because no file
	 * descriptors are left. */
	bool (*read)(int64_t *ret_values);
};

/* Opens those of the named counters that the machine permits, after closing the set that was open before. Sets bit i of
 * `*ret_refused` if name i was refused, and `*ret_errno` to the reason of the first refusal. OPS_INVALID for an unknown name (the
 * text lists the known ones) or too many names; then nothing is open. */
enum ops_code ops_counters_open(const char *const *names, size_t count, const struct ops_counters **ret_counters,
                                uint32_t *ret_refused, int *ret_errno, struct ops_error *error);
void ops_counters_close(void);

/* Returns whether a counter has this name. */
bool ops_counters_known(const char *name, size_t size);

/* For tests: the kernel refuses every counter with this errno; 0: no longer. */
void ops_counters_refuse(int os_errno);

#ifdef __cplusplus
}
#endif
#endif
