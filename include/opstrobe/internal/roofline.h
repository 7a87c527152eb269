/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/roofline.h: how far operators are from what the machine can do, from shapes and types, without hardware counters.
 * Requires traces that were recorded with record_shapes.
 *
 * An operator has to compute its FLOPs and to move the bytes of the tensors that it reads and writes, each once. The roof of
 * the processor says how long that takes at least; what an operator takes longer is avoidable in principle. A call counts at
 * the outermost operator whose shapes say what it has to do. On a device its time is that of what it launched there.
 *
 * The roof of the CPU is the metadata "roof", which `opstrobe roof` measures and recordings have; that of a GPU is known by
 * the name of the device. Without a roof, times, FLOPs, bytes and intensities remain.
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
	OPS_ROOFLINE_OPERATOR, /* a row a name, type and processor */
	OPS_ROOFLINE_SHAPE,    /* also a row for each set of input shapes */
	OPS_ROOFLINE_KERNEL,   /* a row for each kernel, with its share of what the operators that launch it have to do */
	OPS_ROOFLINE_LINE,     /* a row for each line of the program; what runs backward counts at the line of its forward operator */
	OPS_ROOFLINE_MODULE,   /* likewise for each innermost module */
};

/* All zero is the default. */
struct ops_roofline_options {
	enum ops_format format;
	enum ops_roofline_by by;
	const char *roof; /* instead of that of the trace: "67T,3.35T", FLOP/s and bytes/s, or a JSON object; NULL: none */
	size_t rows_max;  /* those with most time, or of lines and modules those with most avoidable time; 0: all */
	size_t columns;   /* of a terminal, for text; 0: any */
	bool ascii;       /* text has no other characters */
};

/* OPS_INVALID for a roof that is none. The text has a NUL behind and is freed with ops_free. Any thread may call it. */
enum ops_code ops_roofline(const struct ops_trace *trace, const struct ops_roofline_options *options, char **ret_text,
                           size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
