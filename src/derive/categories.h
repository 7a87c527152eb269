/* SPDX-License-Identifier: Apache-2.0
 *
 * What device work computes, by its name: the same categories for libraries of all vendors (docs/reference/definitions.md).
 */
#ifndef OPS_DERIVE_CATEGORIES_H
#define OPS_DERIVE_CATEGORIES_H

#include <stdint.h>

#include <opstrobe/trace.h>

enum ops_category {
	OPS_CATEGORY_MATRIX_PRODUCT,
	OPS_CATEGORY_ATTENTION,
	OPS_CATEGORY_EXPERTS,
	OPS_CATEGORY_CONVOLUTION,
	OPS_CATEGORY_NORMALISATION,
	OPS_CATEGORY_SOFTMAX,
	OPS_CATEGORY_REDUCTION,
	OPS_CATEGORY_POINTWISE,
	OPS_CATEGORY_INDEXING,
	OPS_CATEGORY_SORT, /* sorting, the largest k, sampling */
	OPS_CATEGORY_QUANTISATION,
	OPS_CATEGORY_MEMORY, /* copies, fills, concatenation, writes to a cache of keys and values */
	OPS_CATEGORY_COMMUNICATION,
	OPS_CATEGORY_OTHER,
	OPS_CATEGORY_COUNT
};

/* Returns the category of work of this kind (enum ops_event_kind) and name. */
enum ops_category ops_category_of(uint8_t kind, struct ops_string name);

/* Returns "matrix_product", "attention", … The text is static. */
const char *ops_category_name(enum ops_category category);

#endif
