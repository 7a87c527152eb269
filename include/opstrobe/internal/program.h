/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/program.h: which source files are the program's.
 */
#ifndef OPSTROBE_INTERNAL_PROGRAM_H
#define OPSTROBE_INTERNAL_PROGRAM_H

#include <stdbool.h>

#include <opstrobe/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Code of Python or of a package, not of the program. */
bool ops_file_is_library(struct ops_string file);

#ifdef __cplusplus
}
#endif
#endif
