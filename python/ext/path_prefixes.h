/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefixes that paths of source files are recorded without: the directories in which modules are found. One list per process, that of the
 * recording that was started last. Threads read it without the GIL.
 */
#ifndef OPS_EXT_PATH_PREFIXES_H
#define OPS_EXT_PATH_PREFIXES_H

#include "ext.h"

#include <opstrobe/trace.h>

/* Sets the prefixes, a tuple of str, the longest first, or NULL for none. Requires the GIL. Returns 0, or -1 with an exception set. */
int ops_path_prefixes_set(PyObject *prefixes);
/* Returns the end of `path` after the first prefix that it has, or all of it. From any thread. */
struct ops_string ops_path_without_prefix(struct ops_string path);

/* Removes the parts "." and ".." of an absolute path in place, which Python's path of `python ../train.py` has. Returns its size. */
size_t ops_path_normalize(char *path);

#endif
