/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the stand-in for CUPTI.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <cupti.h>

#define SHOW __attribute__((visibility("default")))

/* What an entry point is to return, by its name. */
CUptiResult result_of(const char *function);
/* Returns the time on the clock of records. */
uint64_t now(void);

#endif
