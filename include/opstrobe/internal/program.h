/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/program.h: distinguishes the program's source files from those of libraries.
 */
#ifndef OPSTROBE_INTERNAL_PROGRAM_H
#define OPSTROBE_INTERNAL_PROGRAM_H

#include <stdbool.h>

#include <opstrobe/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether a file belongs to Python or to an installed package. */
bool ops_file_is_library(struct ops_string file);

#ifdef __cplusplus
}
#endif
#endif
