/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling struct ops_error (opstrobe/error.h): the first cause, then what each layer above was doing.
 */
#ifndef OPS_BASE_FAULT_H
#define OPS_BASE_FAULT_H

#include <opstrobe/error.h>

/* Sets the error and returns `code`, so that a caller can write `return ops_fault(error, OPS_INVALID, "…")`. `error` may
 * be NULL. Lower case, no full stop, the subject in single quotes. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault(struct ops_error *error, enum ops_code code,
                                                              const char *format, ...);
/* OPS_IO with `os_errno` and its text appended: "cannot open 'x': no such file or directory". ENOMEM gives OPS_NO_MEMORY. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault_errno(struct ops_error *error, int os_errno,
                                                                    const char *format, ...);
/* OPS_NO_MEMORY, "out of memory". */
enum ops_code ops_fault_memory(struct ops_error *error);
/* Puts "context: " before the text of an error that is already set. Returns `code`, which is that of the error. */
__attribute__((format(printf, 3, 4))) enum ops_code ops_fault_context(struct ops_error *error, enum ops_code code,
                                                                      const char *format, ...);

#endif
