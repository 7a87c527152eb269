/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording calls of torch.nn.Module: one row a call, in eager mode as well. Which modules were called is module_registry.h.
 *
 * All of it under the GIL, and for the process: one session records at a time.
 */
#ifndef OPS_EXT_MODULE_CALLS_H
#define OPS_EXT_MODULE_CALLS_H

#include "ext.h"

#include <opstrobe/record.h>

/* A session begins: watches the calls of modules from now on, if torch is imported, and with `rows` records them. 0, or -1
 * with an exception set. */
int ops_ext_modules_begin(bool rows, bool watch);
/* Ends that; tells the recording, unless it is NULL, what was called. Never sets an exception: what cannot be told is lost,
 * and counted as such. Returns what ops_ext_describe_modules says of the modules that the recording was told, in its order; NULL for none. */
PyObject *ops_ext_modules_end(struct ops_recording *recording);

/* Records no calls until it is undone. Any thread, without the GIL. */
void ops_ext_modules_pause(bool pause);

/* The code object of Module.__call__ while its calls are recorded, borrowed; else NULL. Its frames are the rows that are
 * recorded here: who records frames leaves them out. */
PyObject *ops_ext_module_code(void);

/* The modules that were called since the session began, and all that these held then, as far as they live: a new list. NULL
 * with an exception set. */
PyObject *ops_ext_modules_called(void);

#endif
