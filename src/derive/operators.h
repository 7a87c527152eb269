/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do, by their names: the one table of matrix products, convolutions, decompositions and views, of the operations
 * that they compute and of the bytes that they move.
 */
#ifndef OPS_DERIVE_OPERATORS_H
#define OPS_DERIVE_OPERATORS_H

#include <opstrobe/trace.h>

#include "derive/operator_call.h"
#include "derive/traffic.h"

enum operator_kind {
	OPERATOR_OTHER, /* reads all of its inputs, like all kinds below OPERATOR_ALLOCATES */
	/* How an operator uses its tensors, where shapes and allocations do not show it: */
	OPERATOR_VIEWS,      /* returns a view of its first input, of the same or an unknown part */
	OPERATOR_MAY_VIEW,   /* the same, unless it allocates */
	OPERATOR_NARROWS,    /* returns a view of the part that its arguments specify */
	OPERATOR_SELECTS,    /* reads the elements of its first input that it returns */
	OPERATOR_OVERWRITES, /* does not read the tensor that it writes to */
	OPERATOR_ALLOCATES,  /* allocates memory without contents */
	/* What it computes: */
	OPERATOR_REDUCES,
	OPERATOR_PRODUCT, /* of matrices or vectors; where[0] is the argument of the first factor, and the second follows */
	OPERATOR_CONVOLUTION,
	OPERATOR_POOLING,
	OPERATOR_RECURRENT,
	OPERATOR_ATTENTION,
	/* Factorizations of a matrix, up to OPERATOR_VALUES: */
	OPERATOR_SOLVES,     /* factors it for right-hand sides */
	OPERATOR_INVERTS,
	OPERATOR_LU,         /* its LU factors, and determinants */
	OPERATOR_PSEUDOINVERTS,
	OPERATOR_DECOMPOSES, /* other factors: Cholesky, QR, … */
	OPERATOR_VALUES,     /* singular values, or eigenvalues of a symmetric matrix */
	OPERATOR_SUBSTITUTES /* solves with known factors */
};

enum operator_flag {
	OPERATOR_ONLY_WORK = 1, /* averages with torch.profiler's columns omit its FLOPs */
	OPERATOR_IN_PLUGIN = 2, /* the TensorBoard plugin lists it among those that could use tensor cores */
	OPERATOR_ELEMENTWISE = 4, /* computes each element from those at the same position, with broadcasting */
};

/* A row of the table of operators. */
struct operator_row {
	const char *name; /* without "aten::" */
	enum operator_kind kind;
	operator_formula *flops; /* NULL: none */
	uint8_t where[6];
	struct operator_traffic traffic;
	unsigned flags;
};
extern const struct operator_row operator_rows[];
extern const size_t operator_row_count;

/* Returns the index of a name's row; 0 is the row of all names that are not in the table. */
uint16_t operator_find(struct ops_string name);
/* Returns the rows by string. They are kept with the trace. Returns NULL if out of memory. */
const uint16_t *ops_operators_of(const struct ops_trace *trace);

static inline bool operator_factors(enum operator_kind kind)
{
	return kind >= OPERATOR_SOLVES && kind <= OPERATOR_VALUES;
}

/* Returns true for operators of which implementations with tensor cores exist. */
static inline bool operator_fits_tensor_cores(const struct operator_row *row)
{
	return row->kind == OPERATOR_PRODUCT || row->kind == OPERATOR_CONVOLUTION || row->kind == OPERATOR_RECURRENT ||
	       row->kind == OPERATOR_ATTENTION || (row->flags & OPERATOR_IN_PLUGIN);
}

#endif
