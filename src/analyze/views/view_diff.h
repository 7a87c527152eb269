/* SPDX-License-Identifier: Apache-2.0
 *
 * Two traces side by side: what is shared by the diff and those who print it.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_H
#define OPS_ANALYZE_VIEW_DIFF_H

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/views.h>

#include "analyze/views/views.h"
#include "base/intern.h"

/* One side of a pair of lists of nodes. */
struct view_diff_side {
	struct ops_string name; /* of the one node; "CompositeNodes" of several, "Blank" of none */
	int64_t host_ns;
	int64_t device_ns;
	int64_t total_ns;       /* of each node the device's time, or the host's where it has none */
	size_t operators;       /* distinct names, at any depth */
};

struct view_diff_pair {
	struct view_diff_side sides[2];
	size_t children; /* pairs below */
};

enum view_diff_time {
	VIEW_DIFF_HOST,
	VIEW_DIFF_HOST_SELF,
	VIEW_DIFF_DEVICE,
	VIEW_DIFF_DEVICE_SELF,
	VIEW_DIFF_TOTAL, /* of each call the device's time, or the host's where it has none */
	VIEW_DIFF_TIMES
};

/* What has a name, on both sides: a part of the steps, a module, an operator or a kernel. */
struct view_diff_row {
	struct ops_string name; /* of `names` below */
	struct view_diff_sum {
		uint64_t calls;
		int64_t ns[VIEW_DIFF_TIMES];
	} sides[2];
};

/* In the order in which the names first appear, or sorted by name. */
struct view_diff_rows {
	struct view_diff_row *items;
	size_t count;
	size_t capacity;
	struct ops_intern names; /* numbered as the items were added */
};

struct view_diff_memory {
	char device[OPS_MEMORY_DEVICE_ROOM];
	int64_t peak_bytes[2];
	int64_t allocated_bytes[2]; /* in the steps */
};

struct view_diff_noise {
	size_t steps;
	double mean_ns;
	double median_ns;
	double deviation_ns; /* standard deviation of a sample; 0 of fewer than two steps */
	double error_ns;     /* standard error of the median */
};

struct view_diff {
	const struct ops_views *views[2]; /* base, experiment */
	struct ops_views own[2]; /* those that no trace keeps */
	struct ops_intern texts; /* names that no trace has */
	size_t nodes;              /* pairs in all, the root included */
	struct view_diff_pair root;
	OPS_ARRAY(struct view_diff_pair) pairs; /* right below the root */
	struct view_diff_rows parts;   /* what is right in the steps, those of all steps together */
	struct view_diff_rows modules; /* by path, each call and its backward */
	OPS_ARRAY(struct view_diff_memory) memory;
	struct view_diff_rows root_operators; /* of the main thread, as the plugin had them */
	struct view_diff_rows operators;      /* of all threads: those of the backward pass, too */
	struct view_diff_rows kernels;            /* that were launched in a step, or start in one */
	size_t counted[2];                         /* steps that operators and kernels are of; 0: the trace has none */
	struct view_diff_noise steps[2];
	struct ops_diff_verdict verdict;
};

/* Released in any case. False when memory is out. */
bool view_diff_init(struct view_diff *diff, const struct ops_trace *base, const struct ops_trace *experiment,
                    const struct ops_diff_options *options);
void view_diff_release(struct view_diff *diff);

/* A step's part of a total of operators or kernels; all of it where the trace has no steps. */
static inline double view_diff_per_step(const struct view_diff *diff, int side, double total)
{
	return diff->counted[side] ? total / (double)diff->counted[side] : total;
}

#endif
