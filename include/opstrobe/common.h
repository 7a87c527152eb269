/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/common.h: what all headers share: strings, the number that means "none", formats of text, and how memory is freed.
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

/* May contain any bytes, including NUL; not necessarily UTF-8. A NUL follows the last byte unless a function says otherwise. */
struct ops_string {
	const char *bytes;
	size_t size;
};

/* The format of a result. */
enum ops_format {
	OPS_FORMAT_JSON,
	OPS_FORMAT_TEXT, /* text for people, for a terminal */
	OPS_FORMAT_CSV,
	OPS_FORMAT_MARKDOWN,
	OPS_FORMAT_BRIEF, /* text of a few lines; only for advice */
};

/* Frees a text, bytes or an array that a function returned through a `char **` or a pointer to an array, unless that function
 * names another way to free it. Texts have a NUL after their last byte. NULL is allowed. */
void ops_free(void *memory);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
