/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/roofline.h: how far operators are from the limits of the machine, computed from shapes and types without
 * hardware counters. Requires traces that were recorded with record_shapes.
 *
 * An operator must compute its FLOPs and move the bytes of the tensors that it reads and writes, each once. The roof of the
 * processor is the least time for that; any additional time is avoidable in principle. A call counts at the outermost operator
 * whose shapes determine its work. On a device its time is that of the work it launched.
 *
 * The roof of the CPU is the metadata "roof", which `opstrobe roof` measures and recordings contain; that of a GPU is looked up
 * by the name of the device. Without a roof, times, FLOPs, bytes and intensities remain.
 *
 * The JSON form is in docs/openapi.yaml (Roofline).
 */
#ifndef OPSTROBE_INTERNAL_ROOFLINE_H
#define OPSTROBE_INTERNAL_ROOFLINE_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ops_roofline_by {
	OPS_ROOFLINE_OPERATOR, /* a row for each name, type and processor */
	OPS_ROOFLINE_SHAPE,    /* also a row for each set of input shapes */
	OPS_ROOFLINE_KERNEL,   /* a row for each kernel, with its share of the work of the operators that launch it */
	OPS_ROOFLINE_LINE,     /* a row for each line of the program; the backward pass counts at the line of the forward operator */
	OPS_ROOFLINE_MODULE,   /* a row for each innermost module; the backward pass counts at the module of the forward operator */
};

/* Zero values select the defaults. */
struct ops_roofline_options {
	enum ops_format format;
	enum ops_roofline_by by;
	const char *roof; /* replaces that of the trace: "67T,3.35T", FLOP/s and bytes/s, or a JSON object; NULL: none */
	size_t rows_max;  /* number of rows with the most time, or for lines and modules the most avoidable time; 0: all */
	size_t columns;   /* width of text; 0: unlimited */
	bool ascii;       /* text has only ASCII characters */
};

/* OPS_INVALID if `roof` is not valid. The text ends with a NUL and is freed with ops_free. Any thread may call it. */
enum ops_code ops_roofline(const struct ops_trace *trace, const struct ops_roofline_options *options, char **ret_text,
                           size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
