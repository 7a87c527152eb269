/* SPDX-License-Identifier: Apache-2.0
 *
 * The content of each value: elements that are neither zeros nor copies of other elements, and so have to be computed
 * with. It follows from the operators that create the value, independent of the numbers.
 *
 *     aten::zeros ──▶ 0 of 36 MB ──aten::index_put_──▶ 36 kB of 36 MB
 *     64 kB ──aten::repeat──▶ 64 kB of 16 MB
 *     1 MB of nodes ──aten::index──▶ 1 MB of 20 MB of edges
 */
#ifndef OPS_ANALYZE_DATA_CONTENT_H
#define OPS_ANALYZE_DATA_CONTENT_H

#include "analyze/flow/data_flow.h"

enum data_content_kind { CONTENT_ZEROS = 1, CONTENT_COPIES = 2 };

/* The content of a value. */
struct data_content {
	int64_t bytes;   /* upper bound of the bytes of elements that are neither zeros nor copies */
	uint32_t origin; /* node that created the zeros or copies; OPS_NONE: none */
	uint8_t kind;    /* kinds of the rest: a set of enum data_content_kind */
	bool constant;   /* all elements are equal */
	bool positional; /* the rest are complete positions, such as padding: layers that treat all positions alike compute
	                  * the same at each of them */
	bool gathered;   /* the copies are rows selected by indices: layers that treat each row separately compute the same for
	                  * equal rows */
	bool diagonal;   /* a diagonal matrix, or several of them */
	bool triangle;   /* one half has equal elements, so that a product with it is a running sum */
};

/* Returns the contents by value, freed with ops_free. Returns NULL if out of memory. */
struct data_content *data_content_of(const struct data_flow *flow);
/* Returns an upper bound of the content in what a node reads of a value, since all of the content may be in that
 * part. */
int64_t data_content_read(const struct data_content *contents, const struct data_use *use);
/* Returns whether a node reads a value of at least `bytes_min` that is diagonal matrices. */
bool data_content_reads_diagonal(const struct data_flow *flow, const struct data_content *contents, uint32_t node, int64_t bytes_min);

#endif
