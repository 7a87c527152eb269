/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the library that stands in for CUPTI share.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <cupti.h>

#define SHOW __attribute__((visibility("default")))

/* What an entry point is to return, by its name. */
CUptiResult result_of(const char *function);
/* The clock of records. */
uint64_t now(void);

#endif
