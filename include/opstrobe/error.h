/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/error.h: how every fallible function of the library reports what went wrong.
 *
 * A fallible function returns an `enum ops_code` (OPS_OK is 0) and takes a `struct ops_error *`, which may be
 * NULL. On failure it fills the error; on success it leaves it alone. Outputs named `ret_…` are left alone on
 * failure. The text is a chain of short causes, the outermost first:
 *
 *     cannot write trace 'a.json': cannot create 'a.json.tmp': no space left on device
 *
 * The struct holds its text itself, so that reporting a failed allocation cannot fail. The library never prints.
 */
#ifndef OPSTROBE_ERROR_H
#define OPSTROBE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* One list makes the enum, the names and the default texts. */
#define OPS_CODES(X)                                                                               \
	X(OK, "success")                                                                           \
	X(NO_MEMORY, "out of memory")                                                              \
	X(IO, "input/output error")                                                                \
	X(INVALID, "invalid argument")                                                             \
	X(STATE, "not possible in this state")                                                     \
	X(BUSY, "already recording")                                                               \
	X(UNSUPPORTED, "not supported")                                                            \
	X(CORRUPT, "corrupt input")

enum ops_code {
#define OPS_CODE_ENUM(name, text) OPS_##name,
	OPS_CODES(OPS_CODE_ENUM)
#undef OPS_CODE_ENUM
};

struct ops_error {
	enum ops_code code;
	int os_errno;    /* errno of the failed system call; 0: none failed */
	char text[1024]; /* NUL-terminated UTF-8; the innermost causes are truncated if it would not fit */
};

/* Replaces control characters, escape sequences, marks that change the direction of writing, and bytes that are not UTF-8 by '?'.
 * Error texts are free of them; use this for a path before printing it to a terminal. */
void ops_make_plain(char *text);

/* Returns the name of a code ("NO_MEMORY") and its default text ("out of memory"); static strings, never NULL. */
const char *ops_code_name(enum ops_code code);
const char *ops_code_text(enum ops_code code);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
