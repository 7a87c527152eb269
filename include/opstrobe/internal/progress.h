/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/progress.h: whether a recorded program makes progress.
 */
#ifndef OPSTROBE_PROGRESS_H
#define OPSTROBE_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a number that changes whenever a thread records something; 0 before the first record, and while nothing is recorded.
 * Any thread, without the GIL. */
uint64_t ops_recording_progress(void);
/* Returns how many events of average size all threads have recorded in this session, by the space that they took. The difference of two
 * results is exact to a few events per thread. */
uint64_t ops_recording_slots(void);
/* What the calling thread records from now on does not count: it observes others. */
void ops_recording_observe(void);

#ifdef __cplusplus
}
#endif
#endif
