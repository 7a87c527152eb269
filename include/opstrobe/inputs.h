/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/inputs.h: the compact form of an operator's inputs, as ops_trace_inputs returns it, and functions that decode it.
 *
 * An input list is a uint32_t count followed by that many items. An item is a 4-byte head {tag, dtype, n} followed by
 * its data, 4-byte aligned, in the machine's byte order:
 *
 *     tag           n                 data                              torch's "Input type"
 *     NONE          0                 –                                 ""  (None, strings, devices, undefined tensors)
 *     TENSOR        dimensions        int64 sizes[n], int64 strides[n]  "float", "long int", …
 *     TENSOR_PLAIN  dimensions        int64 sizes[n]                    as TENSOR; a layout without strides (sparse)
 *     TENSOR_LIST   tensors           n TENSOR or TENSOR_PLAIN items    "TensorList"
 *     INT           0                 int64                             "Scalar"
 *     BOOL          0 or 1            –                                 "Scalar"
 *     DOUBLE        0                 double                            "Scalar"
 *     COMPLEX       0                 double re, double im              "Scalar"
 *     SCALAR_LIST   items (≤ 30)      n scalar items (heads included)   "ScalarList"
 *     INT_LIST      items (≤ 30)      int64[n]                          "ScalarList"
 *
 * Lists of more than OPS_INPUT_LIST_MAX scalars are written as NONE, as torch does.
 */
#ifndef OPSTROBE_INPUTS_H
#define OPSTROBE_INPUTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_INPUT_LIST_MAX 30

enum ops_input_tag {
	OPS_INPUT_NONE = 0,
	OPS_INPUT_TENSOR,
	OPS_INPUT_TENSOR_PLAIN, /* a tensor without strides */
	OPS_INPUT_TENSOR_LIST,
	OPS_INPUT_INT,
	OPS_INPUT_BOOL,
	OPS_INPUT_DOUBLE,
	OPS_INPUT_COMPLEX,
	OPS_INPUT_SCALAR_LIST,
	OPS_INPUT_INT_LIST,
};

struct ops_input_head {
	uint8_t tag;   /* enum ops_input_tag */
	uint8_t dtype; /* c10::ScalarType of a tensor */
	uint16_t n;
};

/* Returns whether an item with this tag is a tensor, with or without strides. */
static inline int ops_input_is_tensor(uint8_t tag)
{
	return tag == OPS_INPUT_TENSOR || tag == OPS_INPUT_TENSOR_PLAIN;
}

/* --- reading a list ----------------------------------------------------------------------------------------------
 *
 *     struct ops_input_cursor cursor = ops_inputs_open(list.bytes, list.size);
 *     struct ops_input item;
 *     while (ops_inputs_next(&cursor, &item))
 *             …
 *
 * Any bytes are safe to read: the loop ends at the first item that is truncated or malformed.
 */

/* One item; `data` is borrowed from the list. */
struct ops_input {
	uint8_t tag;
	uint8_t dtype;
	uint16_t n;
	const char *data;
	size_t data_bytes;
};

struct ops_input_cursor {
	const char *at;
	const char *end;
	uint32_t left; /* number of remaining items, if they are well-formed */
};

/* Returns the number of items that a list claims, or 0 if it has fewer than four bytes. */
static inline uint32_t ops_inputs_count(const char *bytes, size_t size)
{
	uint32_t count = 0;

	if (size >= sizeof(count))
		memcpy(&count, bytes, sizeof(count));
	return count;
}

static inline struct ops_input_cursor ops_inputs_open(const char *bytes, size_t size)
{
	struct ops_input_cursor cursor = {bytes, bytes, ops_inputs_count(bytes, size)};

	if (size >= sizeof(uint32_t)) {
		cursor.at += sizeof(uint32_t);
		cursor.end += size;
	}
	return cursor;
}

/* Returns the size of the data after the head of an item that is not a list. */
static inline size_t ops_input_flat_bytes(const struct ops_input_head *head)
{
	switch (head->tag) {
	case OPS_INPUT_TENSOR:
		return (size_t)head->n * 16;
	case OPS_INPUT_TENSOR_PLAIN:
	case OPS_INPUT_INT_LIST:
		return (size_t)head->n * 8;
	case OPS_INPUT_INT:
	case OPS_INPUT_DOUBLE:
		return 8;
	case OPS_INPUT_COMPLEX:
		return 16;
	default:
		return 0;
	}
}

/* Returns whether a list with the tag `outer` may contain an item with the tag `inner`. */
static inline int ops_input_fits(uint8_t outer, uint8_t inner)
{
	if (outer == OPS_INPUT_TENSOR_LIST)
		return ops_input_is_tensor(inner);
	return outer == OPS_INPUT_SCALAR_LIST && inner >= OPS_INPUT_INT && inner <= OPS_INPUT_COMPLEX;
}

/* Returns 1 and the next item, or 0 at the end. */
static inline int ops_inputs_next(struct ops_input_cursor *cursor, struct ops_input *ret_item)
{
	struct ops_input_head head;
	const char *at = cursor->at;
	const char *data;
	uint32_t i;

	if (cursor->left == 0 || (size_t)(cursor->end - at) < sizeof(head))
		return 0;
	memcpy(&head, at, sizeof(head));
	if (head.tag > OPS_INPUT_INT_LIST)
		return 0;
	data = at += sizeof(head);
	if (head.tag == OPS_INPUT_TENSOR_LIST || head.tag == OPS_INPUT_SCALAR_LIST) {
		for (i = 0; i < head.n; i++) {
			struct ops_input_head inner;
			if ((size_t)(cursor->end - at) < sizeof(inner))
				return 0;
			memcpy(&inner, at, sizeof(inner));
			at += sizeof(inner);
			if (!ops_input_fits(head.tag, inner.tag) ||
			    (size_t)(cursor->end - at) < ops_input_flat_bytes(&inner))
				return 0;
			at += ops_input_flat_bytes(&inner);
		}
	} else {
		if ((size_t)(cursor->end - at) < ops_input_flat_bytes(&head))
			return 0;
		at += ops_input_flat_bytes(&head);
	}
	ret_item->tag = head.tag;
	ret_item->dtype = head.dtype;
	ret_item->n = head.n;
	ret_item->data = data;
	ret_item->data_bytes = (size_t)(at - data);
	cursor->at = at;
	cursor->left--;
	return 1;
}

/* Returns the items of a TENSOR_LIST or SCALAR_LIST. */
static inline struct ops_input_cursor ops_input_items(const struct ops_input *list)
{
	struct ops_input_cursor cursor = {list->data, list->data + list->data_bytes, list->n};
	return cursor;
}

/* Returns int64 number `i` of an item's data. TENSOR: a size (i < n) or a stride (i >= n); INT: the value; INT_LIST: an element. */
static inline int64_t ops_input_int(const struct ops_input *item, size_t i)
{
	int64_t value;

	memcpy(&value, item->data + i * sizeof(value), sizeof(value));
	return value;
}

/* Returns the value of a DOUBLE, or the real (0) or imaginary (1) part of a COMPLEX. */
static inline double ops_input_double(const struct ops_input *item, size_t i)
{
	double value;

	memcpy(&value, item->data + i * sizeof(value), sizeof(value));
	return value;
}

#ifdef __cplusplus
}
#endif
#endif
