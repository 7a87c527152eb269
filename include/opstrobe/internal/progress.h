/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/progress.h: whether a program that is recorded still does something.
 */
#ifndef OPSTROBE_PROGRESS_H
#define OPSTROBE_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A number that changes whenever a thread records something; 0 before that, and while nothing is recorded. Any thread, without
 * the GIL. */
uint64_t ops_recording_progress(void);

#ifdef __cplusplus
}
#endif
#endif
