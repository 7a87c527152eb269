/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets struct ops_error (opstrobe/error.h): the first cause, then what each layer above it was doing.
 */
#ifndef OPS_BASE_FAULT_H
#define OPS_BASE_FAULT_H

#include <opstrobe/error.h>

/* Sets the error and returns `code`, so that a caller can write `return ops_fault(error, OPS_INVALID, "…")`. `error` may be NULL.
 * The text is in lower case, without a full stop, with the subject in single quotes. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault(struct ops_error *error, enum ops_code code,
                                                              const char *format, ...);
/* Returns OPS_IO with `os_errno`, whose description is appended: "cannot open 'x': no such file or directory". Returns
 * OPS_NO_MEMORY for ENOMEM. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault_errno(struct ops_error *error, int os_errno,
                                                                    const char *format, ...);
/* Returns OPS_NO_MEMORY, "out of memory". */
enum ops_code ops_fault_memory(struct ops_error *error);
/* Prepends "context: " to the text of an error that is already set. Returns `code`, which is that of the error. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault_context(struct ops_error *error, enum ops_code code,
                                                                      const char *format, ...);

#endif
