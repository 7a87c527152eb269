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

/* Called when a session begins: watches the calls of modules from now on, if torch is imported, and records them if `rows`.
 * Returns 0, or -1 with an exception set. */
int ops_ext_modules_begin(bool rows, bool watch);
/* Ends watching. Adds the called modules to the recording, unless it is NULL. Never sets an exception: what cannot be added is
 * lost, and counted as such. Returns the descriptions, by ops_ext_describe_modules, of the modules that were added, in the same
 * order; NULL: none. */
PyObject *ops_ext_modules_end(struct ops_recording *recording);

/* Pauses or resumes recording calls. Any thread, without the GIL. */
void ops_ext_modules_pause(bool pause);
/* Restores torch's own function while no calls are recorded for long, so that calls take no more time than without a session. With
 * the GIL. Returns 0, or -1 with an exception set. */
int ops_ext_modules_suspend(bool suspend);

/* Returns the code object of Module.__call__ while its calls are recorded, borrowed; else NULL. Its frames are the rows that are
 * recorded here, so a recorder of frames leaves them out. */
PyObject *ops_ext_module_code(void);

/* Returns a new list of the modules that were called since the session began, and all that these contained then, if they are
 * still alive. Returns NULL with an exception set. */
PyObject *ops_ext_modules_called(void);

#endif
