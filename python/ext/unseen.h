/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of torch for a recording of which the recorded program learns nothing.
 */
#ifndef OPS_EXT_UNSEEN_H
#define OPS_EXT_UNSEEN_H

#include <Python.h>

struct ops_ext_unseen {
	PyObject *functions; /* torch._C.DisableTorchFunction, entered; NULL: not possible */
	PyObject *graph;     /* state of torch's tracer; NULL: it does not trace on this thread */
};

/* Until ops_ext_unseen_end(), calls on this thread become part of no graph that torch.jit.trace makes, and torch calls no
 * __torch_function__ for them. Both need the GIL, keep an exception that is set, and set none. */
struct ops_ext_unseen ops_ext_unseen_begin(void);
void ops_ext_unseen_end(struct ops_ext_unseen unseen);

#endif
