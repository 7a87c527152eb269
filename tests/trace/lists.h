/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists for tests, written item by item in the form of opstrobe/inputs.h.
 */
#ifndef OPS_TEST_LISTS_H
#define OPS_TEST_LISTS_H

#include <stdint.h>
#include <string.h>

#include <opstrobe/inputs.h>

struct list {
	char bytes[8192];
	size_t size;
};

static inline void put(struct list *list, const void *bytes, size_t size)
{
	memcpy(list->bytes + list->size, bytes, size);
	list->size += size;
}

static inline void put_head(struct list *list, uint8_t tag, uint8_t dtype, uint16_t n)
{
	put(list, &(struct ops_input_head){tag, dtype, n}, sizeof(struct ops_input_head));
}

/* Begins a list of `count` items. */
static inline void list_open(struct list *list, uint32_t count)
{
	list->size = 0;
	put(list, &count, sizeof(count));
}

/* A tensor of `n` dimensions: its sizes and then its strides. */
static inline void put_tensor(struct list *list, uint8_t dtype, uint16_t n, const int64_t *values)
{
	put_head(list, OPS_INPUT_TENSOR, dtype, n);
	put(list, values, (size_t)n * 16);
}

static inline void put_plain_tensor(struct list *list, uint8_t dtype, uint16_t n, const int64_t *sizes)
{
	put_head(list, OPS_INPUT_TENSOR_PLAIN, dtype, n);
	put(list, sizes, (size_t)n * 8);
}

static inline void put_int(struct list *list, int64_t value)
{
	put_head(list, OPS_INPUT_INT, 0, 0);
	put(list, &value, sizeof(value));
}

static inline void put_bool(struct list *list, int value)
{
	put_head(list, OPS_INPUT_BOOL, 0, value != 0);
}

static inline void put_double(struct list *list, double value)
{
	put_head(list, OPS_INPUT_DOUBLE, 0, 0);
	put(list, &value, sizeof(value));
}

static inline void put_complex(struct list *list, double real, double imaginary)
{
	put_head(list, OPS_INPUT_COMPLEX, 0, 0);
	put(list, &real, sizeof(real));
	put(list, &imaginary, sizeof(imaginary));
}

static inline void put_int_list(struct list *list, uint16_t n, const int64_t *values)
{
	put_head(list, OPS_INPUT_INT_LIST, 0, n);
	put(list, values, (size_t)n * 8);
}

#endif
