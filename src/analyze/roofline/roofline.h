/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of operators against roofs.
 */
#ifndef OPS_ANALYZE_ROOFLINE_H
#define OPS_ANALYZE_ROOFLINE_H

#include <opstrobe/internal/roofline.h>

#include "analyze/result.h"
#include "analyze/roofline/roof.h"
#include "base/array.h"
#include "base/intern.h"

/* A call of an operator that has something to do. */
struct roofline_call {
	uint32_t row;
	uint32_t kernels;  /* that it launched, with copies and fills on the device */
	int64_t device_ns; /* their time */
	bool launches;     /* calls that start work are inside, whether their work is in the trace or not */
	bool transfers;    /* between host and device, which no roof covers */
	bool uses_tensor_cores;
};

struct roofline_row {
	struct ops_string name; /* of lines "train.py:7" with the path of the file, empty where it is not known */
	struct ops_string shapes; /* empty: not by shape */
	const char *type;         /* "float32"; "" for types without name, and for several */
	const char *processor;    /* "CPU" or "GPU" */
	int64_t count;
	int64_t time_ns;
	double flops, bytes;
	double compute_ns, memory_ns; /* the least time for FLOPs and for bytes */
	double bound_ns;              /* the sum over calls of the larger one */
	double calls_ns;              /* the least time for that number of calls or kernels */
	const struct roof *roof;
	uint32_t longest; /* row of the trace, of the operator */
	int64_t longest_ns;
};

struct roofline {
	const struct ops_trace *trace;
	enum ops_roofline_by by;
	struct roof cpu, device;
	bool has_device_work;
	OPS_ARRAY(struct roofline_call) calls;
	OPS_ARRAY(struct roofline_row) rows; /* most time first */
	/* All time of kernels that compute, or, where no device works, of operators; and the time of what is in the rows. */
	int64_t total_ns, known_ns;
	bool has_shapes; /* some operator has inputs */
	struct ops_intern keys;
	struct ops_intern shapes;
	struct ops_intern places; /* lines or modules */
};

/* `roof`: NULL, or a text for roof_parse. On failure the roofline is to be released all the same. */
enum ops_code roofline_init(struct roofline *roofline, const struct ops_trace *trace, enum ops_roofline_by by,
                            const char *roof, struct ops_error *error);
void roofline_release(struct roofline *roofline);

/* Adds the rows of a trace to a table, with the columns if it has none yet. `worker`: NULL, or the first cell of each row. */
enum ops_code roofline_table_fill(struct result_table *table, const struct ops_trace *trace, const char *worker,
                                  const struct ops_roofline_options *options, struct ops_error *error);

/* "compute", "memory", "overhead": what bounds a row; NULL without a roof. */
const char *roofline_bound(const struct roofline_row *row);

#endif
