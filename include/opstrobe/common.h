/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/common.h: what the rest of the interface has in common: strings, the number that is none, the format of a
 * text, and how memory is freed.
 */
#ifndef OPSTROBE_COMMON_H
#define OPSTROBE_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Means "none" for 32-bit ids and rows. */
#define OPS_NONE UINT32_MAX

/* Any bytes, also NUL; not necessarily UTF-8. A NUL follows the last one unless a function says otherwise. */
struct ops_string {
	const char *bytes;
	size_t size;
};

/* The format of an answer. */
enum ops_format {
	OPS_FORMAT_JSON,
	OPS_FORMAT_TEXT, /* for people, on a terminal */
	OPS_FORMAT_CSV,
	OPS_FORMAT_MARKDOWN,
	OPS_FORMAT_BRIEF, /* text of a few lines; of advice only */
};

/* Frees a text, bytes or an array that a function returned through a `char **` or a pointer to an array, where the function does
 * not name another one. Texts have a NUL after their last byte. NULL is allowed. */
void ops_free(void *memory);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
