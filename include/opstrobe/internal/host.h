/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/host.h: how much memory this process may use.
 */
#ifndef OPSTROBE_INTERNAL_HOST_H
#define OPSTROBE_INTERNAL_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the memory of the machine, or less if the process's control group limits it. */
uint64_t ops_memory_limit(void);
/* The same, or less if the remaining address space is smaller. */
uint64_t ops_usable_memory(void);
/* Returns the memory that is free on the machine and in the control group. Memory that caches files is. */
uint64_t ops_free_memory(void);

#ifdef __cplusplus
}
#endif
#endif
