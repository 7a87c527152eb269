/* SPDX-License-Identifier: Apache-2.0
 *
 * What is unusual about the tensors of an operator, as far as the data flow shows it (analyze/flow).
 */
#ifndef OPS_ANALYZE_ADVICE_UNUSUAL_H
#define OPS_ANALYZE_ADVICE_UNUSUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct advice;

/* Minimum bytes of tensors that matter. */
#define UNUSUAL_BYTES_MIN (64 << 10)

enum unusual { USUAL, NEVER_READ, READ_IN_PART, MOSTLY_ZEROS, MOSTLY_COPIES, GROWN, SCATTERED, AGAINST_EACH_OTHER, IN_CHAIN, UNUSUAL_COUNT };

/* What is unusual about a call. */
struct unusual_call {
	enum unusual kind;
	uint32_t value; /* a value that it is about; OPS_NONE: none */
	double part;    /* the part of the value that is read, or that is neither zeros nor copies */
};

/* Returns, by value of the flow, whether it was copied to extend it, freed with ops_free. Requires a flow. Returns NULL if out of
 * memory. */
uint8_t *advice_unusual_grown(const struct advice *advice);
/* Returns what is unusual about the tensors of a node, from the contents and uses of its values. Requires a flow. */
struct unusual_call advice_unusual_of(const struct advice *advice, const uint8_t *grown, uint32_t node);
/* The same from the layouts of the tensors of an operator. Operators inside others and in backward passes have layouts that torch
 * chooses. */
enum unusual advice_unusual_layout(const struct advice *advice, uint32_t node, bool computes_much);
/* Returns true if a node reads only as much as it returns. */
bool advice_only_selects(const struct advice *advice, uint32_t node);
/* Describes it in a sentence: "It makes a result of 24.0 MB, and no operator reads it." */
void advice_describe_unusual(const struct advice *advice, const struct unusual_call *call, uint32_t row, char *text, size_t size);

#endif
