/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of the program: rows that mark them, or else steps derived from optimizers, servers, data loaders and loops
 * (docs/reference/definitions.md).
 */
#ifndef OPS_DERIVE_STEPS_H
#define OPS_DERIVE_STEPS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "derive/iterations.h"

/* Parses a step's name: "ProfilerStep", optional spaces, '#', optional spaces and a number. Returns false for other
 * names. */
bool ops_step_number(struct ops_string name, int64_t *ret_number);
/* Returns true if a row of the host is a step. Traces of 2021 have steps as operators. A device's copy of a step does
 * not count. */
bool ops_row_step(const struct ops_trace *trace, size_t row, int64_t *ret_number);
/* A range in which a program fetches the next batch: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__". */
bool ops_is_batch_name(struct ops_string name);

/* Metadata of a trace in which rows mark steps that the recorder found: its name. Marks of the program come without. */
#define OPS_STEPS_FOUND_BY "steps_found_by"

enum ops_steps_source {
	OPS_STEPS_NONE,
	OPS_STEPS_MARKED,    /* by rows such as "ProfilerStep#3" */
	OPS_STEPS_OPTIMIZER, /* each ends with a step() of the optimizer that stepped first */
	OPS_STEPS_BATCHES,   /* each begins with the fetch of a batch */
	OPS_STEPS_ITERATIONS, /* each is an iteration of a server: derive/iterations.h */
	OPS_STEPS_LOOP,      /* each is an iteration of the outermost loop: derive/outer_loop.h. Also instead of steps of an optimizer or
	                      * batches if it and most of the operators' time are outside of them */
};

struct ops_step {
	int64_t number;
	int64_t start_ns, end_ns;
	uint32_t row;   /* the row that marks it; OPS_NONE: derived */
	uint32_t track; /* the thread whose step it is */
	uint8_t kind;   /* enum ops_iteration_kind, of the iteration that the step is or contains */
	bool is_shadow; /* a shadow step: recorded without events, to measure the overhead of recording */
	char text[24];  /* the number, in decimal */
};

struct ops_steps {
	enum ops_steps_source source;
	OPS_ARRAY(struct ops_step) list; /* in order of start, of all processes together */
	uint32_t loop_row;   /* the first call that the iterations of a loop are counted by; OPS_NONE: the steps are not of a loop */
	bool first_is_apart; /* the first step takes much longer than the others, because it warms up: means leave it out */
	uint8_t *helps;      /* by track: true for a thread of a process without steps while another has some, such as a worker of a loader.
	                      * What it does takes no time of a step */
};

/* The steps of a trace: those marked by rows, or else derived for each process. The result is kept with the trace.
 * Returns NULL if out of memory. */
const struct ops_steps *ops_steps_of(const struct ops_trace *trace);
/* Returns the index of the step at a time, or OPS_NONE. */
uint32_t ops_steps_at(const struct ops_steps *steps, int64_t time_ns);
/* Returns the number of steps of a thread, without shadow steps, which have no events. */
size_t ops_steps_of_track(const struct ops_steps *steps, uint32_t track);
/* The same for the thread of the first step, which is what totals are divided by: a step that several processes run together
 * counts once. 0 without steps. */
size_t ops_steps_counted(const struct ops_steps *steps);
/* Returns the number of those steps that means cover: without the first if it is apart. */
size_t ops_steps_averaged(const struct ops_steps *steps);
/* Returns true if events that begin at this time count in means per step: in such a step, or anywhere without steps. */
bool ops_steps_averages(const struct ops_steps *steps, int64_t time_ns);
/* Returns whether the steps are less than 98 % of the trace, so that sums over them and over the trace differ. */
bool ops_steps_are_part(const struct ops_trace *trace);
/* Returns "marks", "optimizer", "batches", "iterations", "loop" or "none". */
const char *ops_steps_source_name(enum ops_steps_source source);
/* Returns the same for people: "marks of the recording". */
const char *ops_steps_source_about(enum ops_steps_source source);

#endif
