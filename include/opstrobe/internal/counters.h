/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/counters.h: what the processor and the kernel count for a thread (Linux perf events): cycles, page faults, ….
 *
 *     const char *const names[] = {"pagefaults"};
 *     const struct ops_counters *counters;
 *     code = ops_counters_open(names, 1, &counters, &refused, &error);
 *     int64_t values[OPS_COUNTERS_MAX];
 *     if (counters->read(values)) …                    // of the calling thread, any thread
 *     ops_counters_close();
 *
 * A process has one open set at a time. A thread's counters are opened when it first reads them and count what it does in
 * user mode from then on. They are closed when the thread ends or reads those of another set.
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

/* A set that is open. Part of OPS_TORCH_BRIDGE_ABI. */
struct ops_counters {
	uint32_t count;
	const char *names[OPS_COUNTERS_MAX]; /* static texts */
	/* The calling thread's values, in order of names. False when the thread has none: no file descriptors are left. */
	bool (*read)(int64_t *ret_values);
};

/* Opens those of the named counters that this machine lets the calling thread have, and closes what was open before. Bit i
 * of `*ret_refused` is set where name i was refused, and `*ret_errno` says why the first was. OPS_INVALID for a name that is
 * not known (the text lists those that are) or for too many; then nothing is open. */
enum ops_code ops_counters_open(const char *const *names, size_t count, const struct ops_counters **ret_counters,
                                uint32_t *ret_refused, int *ret_errno, struct ops_error *error);
void ops_counters_close(void);

/* Whether a counter has this name. */
bool ops_counters_known(const char *name, size_t size);

/* Tests only: the kernel refuses everything with this errno; 0 for no more. */
void ops_counters_refuse(int os_errno);

#ifdef __cplusplus
}
#endif
#endif
