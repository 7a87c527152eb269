/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows are steps of the program.
 */
#ifndef OPS_DERIVE_STEPS_H
#define OPS_DERIVE_STEPS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

/* A step's name is "ProfilerStep", a '#' and a number, with spaces around the '#' or not. False for other names. */
bool ops_step_number(struct ops_string name, int64_t *ret_number);
/* Whether a row of the host is a step. Traces of 2021 have steps as operators; what a device shows of a step is none. */
bool ops_row_step(const struct ops_trace *trace, size_t row, int64_t *ret_number);

#endif
