/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch file, and the handlers of fatal signals, which mark it.
 */
#ifndef OPS_WATCH_PAGE_H
#define OPS_WATCH_PAGE_H

#include <stdbool.h>

#include <opstrobe/internal/watch.h>

/* Maps the file or, without a path, memory. Returns NULL with errno set on failure. */
struct ops_watch_page *watch_page_new(const char *path);
void watch_page_free(struct ops_watch_page *page);

/* From now on a fatal signal marks the page, and SIGUSR2 calls `request`; then each signal is handled as before, except for a
 * SIGUSR2 that would have ended the program. */
void watch_signals_start(struct ops_watch_page *page, void (*read_own_stack)(struct ops_stack *ret_stack), void (*request)(void));
void watch_signals_stop(void);

#endif
