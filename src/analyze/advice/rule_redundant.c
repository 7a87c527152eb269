/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and convolutions of tensors that consist mostly of zeros, or of copies of the same rows, by construction
 * (analyze/flow).
 *
 *     aten::zeros ──▶ 1.5 MB ──aten::copy_ of 0.15 MB──▶ ──aten::conv1d──▶ nine tenths of the work are on zeros
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"
#include "base/text.h"

#define BYTES_MIN (64 << 10) /* minimum bytes of tensors that matter */
#define ZEROS_MIN 0.4        /* a triangular matrix has one half without the diagonal */
#define PADDING_MIN 0.25     /* samples in any order have more, unless all are about equally long */
#define COPIES_MIN 0.75      /* each row occurs four times */
#define GATHERED_MIN 0.5     /* each row is selected twice */

struct redundant {
	uint8_t *activates;    /* by string: treats each row separately, without a weight */
	uint8_t *sequences;    /* by string: attention, or a recurrent layer */
	uint8_t *scatters;     /* by string: takes an index for each element */
	uint64_t products;     /* number of redundant products */
	double bytes, content; /* sums over them */
	double missing, padding; /* sums of the bytes that are not content, and of those of them at complete positions */
	int64_t largest;      /* in bytes */
	struct ops_input tensor; /* the largest redundant tensor */
	uint32_t origin;      /* the row that creates it */
	uint8_t seen;         /* enum data_content_kind */
};

/* Returns true for a product whose second factor is the same for all rows of the first, so that equal rows give equal
 * rows. */
static bool works_by_rows(const struct advice *advice, uint32_t row)
{
	struct ops_input weight;

	if (!advice_input(advice, row, 1, &weight) || weight.tag != OPS_INPUT_TENSOR)
		return false;
	if (advice_kind(advice, row) == OPERATOR_PRODUCT)
		return !advice_operator(advice, row)->where[0] && weight.n == 2;
	for (size_t i = 2; i < weight.n; i++)
		if (ops_input_int(&weight, i) != 1)
			return false;
	return true;
}

/* Returns true if equal positions of the first factor give equal positions of the result. Windows of a convolution at the
 * edge of padding differ, but are few. */
static bool works_by_positions(const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_CONVOLUTION || works_by_rows(advice, row);
}

/* Returns true if padded positions in any of an operator's inputs add nothing to results at other positions: keys that a mask excludes,
 * moments after the end of a sequence, products of batches of such matrices. */
static bool leaves_out_padding(const struct redundant *all, const struct advice *advice, uint32_t row)
{
	struct ops_input second;

	return all->sequences[advice->events->name[row]] || (advice_kind(advice, row) == OPERATOR_PRODUCT && advice_input(advice, row, 1, &second) &&
	                                                     second.tag == OPS_INPUT_TENSOR && second.n >= 3);
}

/* Copies matter only in the first input, since rows of a weight are not rows of the result. */
static bool is_first_input(const struct advice *advice, uint32_t row, const struct data_use *use)
{
	struct ops_input first;

	return advice_input(advice, row, 0, &first) && advice_input_elements(&first) > 0 && advice_input_bytes(&first) == use->bytes;
}

static void note_tensor(struct redundant *all, const struct advice *advice, uint32_t row, const struct data_use *use,
                        const struct data_content *content)
{
	struct ops_input input;

	if (use->bytes <= all->largest)
		return;
	all->largest = use->bytes;
	all->origin = content->origin;
	for (size_t i = 0; advice_input(advice, row, i, &input); i++)
		if (advice_input_bytes(&input) == use->bytes) {
			all->tensor = input;
			return;
		}
}

/* Factoring a diagonal matrix, or solving with it, takes a division for each row, whatever its size. */
static bool is_solver(const struct advice *advice, uint32_t row)
{
	enum operator_kind kind = advice_kind(advice, row);

	return operator_factors(kind) || kind == OPERATOR_SUBSTITUTES;
}

static bool is_diagonal_solved(const struct advice *advice, uint32_t row, const struct data_use *use)
{
	return advice->contents[use->value].diagonal && is_solver(advice, row);
}

/* Share of a call of a normal distribution with a diagonal covariance that one for each dimension saves. */
#define INDEPENDENT_SAVES 0.6

/* Returns the outermost call of MultivariateNormal around a row; OPS_NONE: none. */
static uint32_t distribution_around(const struct advice *advice, uint32_t row)
{
	uint32_t found = OPS_NONE;

	while ((row = advice->events->parent[row]) != OPS_NONE)
		if (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && ops_string_contains(advice_name(advice, row), ": MultivariateNormal."))
			found = row;
	return found;
}

/* Share of the time of a scatter or gather that an index for each row saves. torch has a fast path for an expanded index, which is no
 * copy. */
#define INDEX_SAVES 0.6

/* Returns whether a node reads a value as the index for each element, which is a copy of one for each row. */
static bool is_repeated_index(const struct redundant *all, const struct advice *advice, uint32_t row, const struct data_use *use)
{
	const struct data_content *content = &advice->contents[use->value];
	struct ops_input index;

	return all->scatters[advice->events->name[row]] && content->kind == CONTENT_COPIES && !content->gathered && advice_input(advice, row, 2, &index) &&
	       advice_input_bytes(&index) == use->bytes;
}

/* Returns the share of a node's reads of a value that need no computation; 0 if too little of the value is
 * redundant. */
static double redundant_share(const struct redundant *all, const struct advice *advice, uint32_t row, const struct data_use *use)
{
	const struct data_content *content = &advice->contents[use->value];
	double share;

	/* A value of only zeros is an initial state, or data of a trial. */
	if (use->kind != DATA_READS || content->bytes <= 0 || !content->kind || (use->bytes < BYTES_MIN && !is_diagonal_solved(advice, row, use)))
		return 0;
	share = 1 - (double)data_content_read(advice->contents, use) / (double)use->bytes;
	if (all->scatters[advice->events->name[row]])
		return share >= COPIES_MIN && is_repeated_index(all, advice, row, use) ? share : 0;
	if (all->activates[advice->events->name[row]] && !content->diagonal)
		return content->gathered && share >= GATHERED_MIN ? share : 0;
	if (content->positional && leaves_out_padding(all, advice, row))
		return share >= PADDING_MIN ? share : 0;
	if (all->sequences[advice->events->name[row]])
		return 0;
	if (content->positional && works_by_positions(advice, row) && is_first_input(advice, row, use))
		return share >= PADDING_MIN ? share : 0;
	if (content->kind == CONTENT_ZEROS)
		return share >= ZEROS_MIN ? share : 0;
	return share >= (content->gathered ? GATHERED_MIN : COPIES_MIN) && works_by_rows(advice, row) && is_first_input(advice, row, use) ? share : 0;
}

/* Adds a part of an operator that copies elements, once. */
static void add_copy(struct advice_result *result, uint32_t row, double share)
{
	if (row != OPS_NONE && share > 0 && advice_counts(result->advice, row) && !advice_is_claimed(result, row))
		advice_add_share(result, row, share * advice_work_share(result->advice, row));
}

static bool is_counted(const struct redundant *all, const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_PRODUCT || advice_kind(advice, row) == OPERATOR_CONVOLUTION ||
	       all->activates[advice->events->name[row]] || all->sequences[advice->events->name[row]] || all->scatters[advice->events->name[row]] ||
	       (advice->flow->nodes[row].count && data_content_reads_diagonal(advice->flow, advice->contents, row, is_solver(advice, row) ? 1 : BYTES_MIN));
}

/* Adds what it takes to copy elements before a layer rather than after it, where there are fewer of them, and to join the
 * copies with other tensors. */
static void add_enlargement(const struct redundant *all, struct advice_result *result, uint32_t row, const struct data_use *use, double share)
{
	const struct data_flow *flow = result->advice->flow;
	const struct data_content *content = &result->advice->contents[use->value];
	uint32_t maker = flow->values[use->value].node;

	if (content->kind != CONTENT_COPIES || content->positional)
		return;
	add_copy(result, content->origin, 1 - (double)data_flow_made_bytes(flow, row) / (double)use->bytes);
	if (maker != OPS_NONE && maker != content->origin && !is_counted(all, result->advice, maker))
		add_copy(result, maker, share);
}

static void add_product(struct redundant *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	const struct data_node *node = &advice->flow->nodes[row];
	const struct data_use *most = NULL;
	double share = 0;
	uint32_t call;
	bool is_solved;

	if (!is_counted(all, advice, row) ||
	    !advice_counts(advice, row) || advice_is_claimed(result, row) ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)))
		return;
	for (uint32_t i = 0; i < node->count; i++) {
		const struct data_use *use = &advice->flow->uses.items[node->first + i];
		double of_use = redundant_share(all, advice, row, use);

		if (of_use > share) {
			share = of_use;
			most = use;
		}
	}
	if (!most)
		return;
	all->products++;
	all->bytes += (double)most->bytes;
	all->content += (double)most->bytes * (1 - share);
	all->missing += (double)most->bytes * share;
	all->padding += advice->contents[most->value].positional ? (double)most->bytes * share : 0;
	all->seen |= advice->contents[most->value].kind;
	note_tensor(all, advice, row, most, &advice->contents[most->value]);
	is_solved = is_diagonal_solved(advice, row, most);
	call = is_solved ? distribution_around(advice, row) : OPS_NONE;
	if (call != OPS_NONE) {
		result->claimed[row] = 1;
		advice_add_at(result, advice->site[call], row, advice_claim_share(result, call, INDEPENDENT_SAVES * advice_work_share(advice, row)));
		return;
	}
	if (all->scatters[advice->events->name[row]])
		share = INDEX_SAVES;
	/* A running sum adds each element once. */
	if (advice->contents[most->value].triangle || is_solved)
		share = 1;
	advice_add_share(result, row, share * advice_work_share(advice, row));
	add_enlargement(all, result, row, most, share);
}

static bool rule_redundant_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const activations[] = {"aten::relu*", "aten::leaky_relu*", "aten::elu", "aten::gelu", "aten::silu", "aten::tanh",
	                                          "aten::sigmoid", "aten::layer_norm", NULL};
	static const char *const sequences[] = {"aten::scaled_dot_product_attention", "aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", NULL};
	static const char *const scatters[] = {"aten::scatter_add*", "aten::scatter_reduce*", "aten::gather", NULL};
	struct redundant all = {.activates = advice_names(advice, activations), .sequences = advice_names(advice, sequences),
	                        .scatters = advice_names(advice, scatters), .origin = OPS_NONE};
	bool done = all.activates && all.sequences && all.scatters;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_product(&all, result, row);
	/* Also adds the place where the zeros come from, since padding has to be changed there. */
	if (done && all.origin != OPS_NONE && result->tally.ns > 0) {
		double gain_ns = (double)result->tally.ns;
		bool pads = all.padding > 0.5 * all.missing;

		advice_add(result, all.origin, pads ? result->tally.ns : result->tally.ns / 16);
		result->detail = pads ? "Make batches of samples that are about equally long, such as from a list that is sorted by length, and shuffle the batches." : NULL;
		done = advice_report_gain(result, gain_ns, "%s with tensors of which %s of the elements are %s "
		                          "by construction. The largest is %s. Computing takes %s.",
		                          advice_counted(advice, all.products, "operator in each step computes", "operators in each step compute").text,
		                          ops_figure_of_percent(100 - 100 * all.content / all.bytes).text,
		                          pads                         ? "padding"
		                          : all.seen == CONTENT_ZEROS  ? "zeros"
		                          : all.seen == CONTENT_COPIES ? "copies of others"
		                                                       : "zeros or copies of others",
		                          advice_describe_tensor(&all.tensor).text, advice_spent(advice, gain_ns).text);
	}
	ops_free(all.activates);
	ops_free(all.sequences);
	ops_free(all.scatters);
	return done;
}

const struct advice_rule advice_rule_redundant = {
	.id = "redundant-elements",
	.title = "Operators compute with padding, zeros or copies",
	.condition = "A matrix product or a convolution reads a tensor of at least 64 kB of which at least 40 % of the elements are zeros by construction "
		     "(aten::zeros into which less is written, eye, diag, one_hot, a triangle of ones, padding), or a product by a weight reads one of "
		     "which at least 75 % are copies (repeat, expanded and concatenated tensors, interpolation), or at least half of rows that an index selects; or scatter_add or gather reads an index of which as much is a copy. What an operator computes from "
		     "numbers counts as dense, and so do tensors that are all zeros. Of diagonal matrices (diag_embed) and of their factors, all operators count, and factorizations and solvers of any size. Padding of complete positions, also by pad_sequence, counts from 25 %. It is followed through embeddings, attention and "
		     "layers that treat all positions alike. It also counts in keys and values of attention, in products of batches of matrices, and in sequences of recurrent layers.",
	.gain = "the share of zeros or copies in the time of the products and convolutions, forward and backward; all of a product with a triangle "
		"of ones, which is a running sum; six tenths of a scatter or gather; and the time of copying more elements before a layer than would be copied after it",
	.explanation = "The operator multiplies all elements, also those that add nothing and those that it has multiplied before.",
	.advice = "Pad to the longest sample of the batch, not to a fixed length, and group samples by length (pack_padded_sequence for recurrent layers), keep sparse matrices sparse (torch.sparse, index_add_), "
		  "use index_add_ and index_select with an index for each row in place of scatter_add_ and gather with one for each element, "
		  "torch.cumsum in place of a triangle of ones and a product of elements in place of a diagonal matrix (Independent(Normal(mean, scale), 1) in place of MultivariateNormal), and apply a layer "
		  "before its input is repeated or enlarged. To check: smaller shapes at the line.",
	.code = "scores = F.interpolate(classify(x), size=size)  # in place of classify(F.interpolate(x, size=size))",
	.link = "https://docs.pytorch.org/docs/stable/sparse.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* remedies differ: another operator, another order, other batches */
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_LEAST, /* zeros and copies pass through later layers as well */
	.find = rule_redundant_find,
};
