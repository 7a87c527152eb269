/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison of two traces: definitions shared by the diff and its writers.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_H
#define OPS_ANALYZE_VIEW_DIFF_H

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/views.h>

#include "analyze/views/view_step_stats.h"
#include "analyze/views/views.h"
#include "base/intern.h"

/* One side of a pair of lists of nodes. */
struct view_diff_side {
	struct ops_string name; /* name of a single node; "(several)", or "(none)" */
	int64_t host_ns;
	int64_t device_ns;
	int64_t total_ns;       /* sum of each node's device time, or host time if it has none */
	size_t operators;       /* number of distinct names, at any depth */
};

struct view_diff_pair {
	struct view_diff_side sides[2];
	size_t children; /* number of pairs below */
};

enum view_diff_time {
	VIEW_DIFF_HOST,
	VIEW_DIFF_HOST_SELF,
	VIEW_DIFF_DEVICE,
	VIEW_DIFF_DEVICE_SELF,
	VIEW_DIFF_TOTAL, /* sum of each call's device time, or host time if it has none */
	VIEW_DIFF_TIMES
};

/* Figures of one name on both sides: a part of the steps, a module, an operator or a kernel. */
struct view_diff_row {
	struct ops_string name; /* from `names` below */
	struct view_diff_sum {
		uint64_t calls;
		int64_t ns[VIEW_DIFF_TIMES];
	} sides[2];
};

/* In order of first appearance, or sorted by name. */
struct view_diff_rows {
	struct view_diff_row *items;
	size_t count;
	size_t capacity;
	struct ops_intern names; /* same indexes as the items */
};

struct view_diff_memory {
	struct ops_memory_device device;
	int64_t peak_bytes[2];
	int64_t allocated_bytes[2]; /* bytes allocated in the steps */
};

struct view_diff_noise {
	size_t steps;
	double mean_ns;
	double median_ns;
	double deviation_ns; /* sample standard deviation; 0 for fewer than two steps */
	double error_ns;     /* standard error of the median */
	struct view_waited waited;
};

struct view_diff {
	const struct ops_views *views[2]; /* base, experiment */
	struct ops_views own[2]; /* views that are not kept with the trace */
	struct ops_intern texts; /* names that are in no trace */
	size_t nodes;              /* number of pairs, including the root */
	struct view_diff_pair root;
	OPS_ARRAY(struct view_diff_pair) pairs; /* pairs directly below the root */
	struct view_diff_rows parts;   /* events directly in the steps, summed over all steps */
	struct view_diff_rows modules; /* by path: each call and its backward */
	OPS_ARRAY(struct view_diff_memory) memory;
	struct view_diff_rows root_operators; /* operators of the main thread, as the TensorBoard plugin shows them */
	struct view_diff_rows operators;      /* operators of all threads, including the backward pass */
	struct view_diff_rows kernels;            /* kernels launched in a step, or that start in one */
	size_t counted[2];                         /* number of steps that operators and kernels belong to; 0: the trace
	                                            * has none */
	struct view_diff_noise steps[2];
	struct ops_diff_verdict verdict;
};

/* The caller must release the diff in any case. Returns false if out of memory. */
bool view_diff_init(struct view_diff *diff, const struct ops_trace *base, const struct ops_trace *experiment,
                    const struct ops_diff_options *options);
void view_diff_release(struct view_diff *diff);

/* Divides a total of operators or kernels by the number of steps; returns the total if the trace has no steps. */
static inline double view_diff_per_step(const struct view_diff *diff, int side, double total)
{
	return diff->counted[side] ? total / (double)diff->counted[side] : total;
}

#endif
