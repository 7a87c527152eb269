/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of the program: rows that mark them, or else what optimizers and data loaders show (docs/reference/definitions.md).
 */
#ifndef OPS_DERIVE_STEPS_H
#define OPS_DERIVE_STEPS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/array.h"

/* A step's name is "ProfilerStep", a '#' and a number, with spaces around the '#' or not. False for other names. */
bool ops_step_number(struct ops_string name, int64_t *ret_number);
/* Whether a row of the host is a step. Traces of 2021 have steps as operators; what a device shows of a step is none. */
bool ops_row_step(const struct ops_trace *trace, size_t row, int64_t *ret_number);
/* A range in which a program fetches the next batch: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__". */
bool ops_is_batch_name(struct ops_string name);

enum ops_steps_source {
	OPS_STEPS_NONE,
	OPS_STEPS_MARKED,    /* by rows "ProfilerStep#3" */
	OPS_STEPS_OPTIMIZER, /* each ends with a step() of the optimizer that stepped first */
	OPS_STEPS_BATCHES,   /* each begins with the fetch of a batch */
};

struct ops_step {
	int64_t number;
	int64_t start_ns, end_ns;
	uint32_t row;   /* that marks it; OPS_NONE: derived */
	uint32_t track; /* the thread whose step it is */
	bool is_shadow; /* nothing else of it was recorded, to measure what recording costs */
	char text[24];  /* the number, in decimal */
};

struct ops_steps {
	enum ops_steps_source source;
	OPS_ARRAY(struct ops_step) list; /* in order of start, those of all processes */
};

/* The steps of a trace: those marked by rows, or else derived for each process. Kept with the trace; NULL when memory is out. */
const struct ops_steps *ops_steps_of(const struct ops_trace *trace);
/* The step that a moment is in: an index, or OPS_NONE. */
uint32_t ops_steps_at(const struct ops_steps *steps, int64_t time_ns);
/* How many are of a thread. */
size_t ops_steps_of_track(const struct ops_steps *steps, uint32_t track);
/* "marks", "optimizer", "batches" or "none". */
const char *ops_steps_source_name(enum ops_steps_source source);

#endif
