/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory this process may use.
 */
#ifndef OPS_BASE_USABLE_MEMORY_H
#define OPS_BASE_USABLE_MEMORY_H

#include <stdint.h>

/* Returns the memory of the machine, or less where the process's control group or the remaining address space limits it. */
uint64_t ops_usable_memory(void);

#endif
