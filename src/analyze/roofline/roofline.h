/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of operators compared with roofs.
 */
#ifndef OPS_ANALYZE_ROOFLINE_H
#define OPS_ANALYZE_ROOFLINE_H

#include <opstrobe/internal/roofline.h>

#include "analyze/roofline/roof.h"
#include "analyze/run_trace.h"
#include "base/array.h"
#include "derive/shapes.h"

/* A call of an operator with a known demand. */
struct roofline_call {
	uint32_t row;
	uint32_t kernels;  /* number of kernels that it launched, including copies and fills on the device */
	int64_t device_ns; /* time of these */
	bool launches;     /* contains calls that start work, whether that work is in the trace or not */
	bool transfers;    /* moves data between host and device, which no roof covers */
	bool uses_tensor_cores;
	const struct roof *roof; /* NULL: belongs to no row, since the demand of the call is unknown */
	int64_t time_ns;         /* time on the processor of the roof */
	double bound_ns;         /* shortest time for FLOPs or bytes; 0 if the roof does not have the rate */
	bool is_compute_bound;   /* the bound is the time for FLOPs */
};

struct roofline_row {
	struct ops_string name; /* for lines "train.py:7" with the path of the file; empty if unknown */
	struct ops_string shapes; /* empty: not by shape */
	const char *type;         /* "float32"; "" for types without a name, and for several types */
	const char *processor;    /* "CPU" or "GPU" */
	int64_t count;
	int64_t time_ns;
	double flops, bytes;
	double compute_ns, memory_ns; /* shortest time for the FLOPs and for the bytes */
	double bound_ns;              /* the sum over calls of the larger one */
	double calls_ns;              /* shortest time for that number of calls or kernels */
	const struct roof *roof;
	uint32_t longest; /* row of the operator in the trace */
	int64_t longest_ns;
};

struct roofline {
	const struct ops_trace *trace;
	enum ops_roofline_by by;
	struct roof cpu, device;
	bool has_device_work;
	OPS_ARRAY(struct roofline_call) calls;
	OPS_ARRAY(struct roofline_row) rows; /* most time first */
	/* Total time of kernels that compute, or of operators if no device works; and the part of it that the rows
	 * cover. */
	int64_t total_ns, known_ns;
	bool has_shapes; /* some operator has inputs */
	struct ops_intern keys;
	struct ops_shapes shapes;
	struct ops_intern places; /* lines or modules */
};

/* `roof`: NULL, or a text for roof_parse. The caller must release the roofline even on failure. */
enum ops_code roofline_init(struct roofline *roofline, const struct ops_trace *trace, enum ops_roofline_by by,
                            const char *roof, struct ops_error *error);
void roofline_release(struct roofline *roofline);

#define ROOFLINE_BY_SHAPE 1u /* option of table_operator_roofline */
/* Adds the rows of a trace to that table. The context is struct ops_roofline_options. */
run_fill operator_roofline_fill;

/* Returns what bounds a row: "compute", "memory" or "overhead". Returns NULL without a roof. */
const char *roofline_bound(const struct roofline_row *row);

#endif
