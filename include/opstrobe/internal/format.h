/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/format.h: figures as text for people, in the unit that fits. Tables, views and the terminal interface share them.
 */
#ifndef OPSTROBE_FORMAT_H
#define OPSTROBE_FORMAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any text made here fits, its NUL included. */
#define OPS_FORMAT_ROOM 48

/* "1.234 ms", in the unit from "ns" to "s" that fits; "0". */
void ops_format_duration(char *out, double ns);
/* "11.69 M": a count with the prefix that fits, from K to P. */
void ops_format_count(char *out, double count);
/* "1.50 MiB". */
void ops_format_bytes(char *out, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
