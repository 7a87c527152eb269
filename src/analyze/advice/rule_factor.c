/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorizations of matrices that are not needed: of a matrix that has been factored before, of which only the largest values
 * are read, and with vectors that nothing reads.
 *
 *     K ──solve with a──▶ x    K ──solve with b──▶ y        one LU factorization serves both
 *     W ──svdvals──▶ 400 values ──max──▶ 1 value            power iteration finds it
 *     X [2000, 80] ──svd──▶ U [2000, 2000] ──▶ 80 columns   full_matrices=False makes no others
 *     C ──eig──▶ complex vectors ──▶ real parts             eigh of a symmetric matrix makes no others
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* Returns the sizes of the matrices in a tensor. */
static bool matrix_sizes(const struct ops_input *tensor, double *ret_rows, double *ret_columns)
{
	if (!ops_input_is_tensor(tensor->tag) || tensor->n < 2)
		return false;
	*ret_rows = (double)ops_input_int(tensor, tensor->n - 2u);
	*ret_columns = (double)ops_input_int(tensor, tensor->n - 1u);
	return *ret_rows > 0 && *ret_columns > 0;
}

static bool rule_factor_is_forward(const struct advice *advice, uint32_t row)
{
	return advice_counts(advice, row) &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPERATOR));
}

/* --- the same matrix again -------------------------------------------------------------------------------------------- */

/* Returns the value of the first input of a node; OPS_NONE if unknown, if the input is a part of it, which may be another one each
 * time, or if another library may write to its memory. */
static uint32_t matrix_of(const struct advice *advice, uint32_t node, bool foreign)
{
	const struct data_flow *flow = advice->flow;
	struct ops_storage storage;
	struct ops_input matrix;

	if (!ops_event_storage(advice->trace, node, 0, &storage) || !advice_input(advice, node, 0, &matrix) ||
	    advice_input_bytes(&matrix) < (int64_t)storage.bytes)
		return OPS_NONE;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		uint32_t value = flow->uses.items[flow->nodes[node].first + i].value;
		uint32_t block = flow->memory.values.items[value].block;

		if (flow->memory.blocks.items[block].address == storage.address)
			return foreign && !flow->memory.lives.items[block].reported ? OPS_NONE : value;
	}
	return OPS_NONE;
}

/* Returns the share of a call that the factorization takes, by operations: two thirds of n³ of the LU factorization, two n² for each
 * right-hand side, four thirds of n³ for the rest of an inverse. */
static double factor_share(const struct advice *advice, uint32_t row)
{
	enum operator_kind kind = advice_kind(advice, row);
	struct ops_input matrix, sides;
	double rows, columns, right = 1;

	if (kind == OPERATOR_INVERTS)
		return 1.0 / 3;
	if (kind != OPERATOR_SOLVES || !advice_input(advice, row, 0, &matrix) || !matrix_sizes(&matrix, &rows, &columns))
		return 1;
	if (advice_input(advice, row, 1, &sides) && advice_input_elements(&matrix) > 0)
		right = (double)advice_input_elements(&sides) / (double)advice_input_elements(&matrix) * columns;
	return rows / (rows + 3 * right);
}

static bool add_factor(struct ops_map *seen, struct advice_result *result, uint32_t row, bool foreign)
{
	const struct advice *advice = result->advice;
	enum operator_kind kind = advice_kind(advice, row);
	uint32_t name = advice->events->name[row], value, *before;
	bool is_same;

	if (!operator_factors(kind) || (advice->zone[row] & ADVICE_IN_OPERATOR) || !advice->flow->nodes[row].count)
		return true;
	value = matrix_of(advice, row, foreign);
	if (value == OPS_NONE)
		return true;
	/* Factorizations of the LU family share their factors, others only with themselves. */
	before = ops_map_slot(seen, (uint64_t)value << 32 | (kind > OPERATOR_LU ? name : OPS_NONE), row);
	if (!before || *before == row || !rule_factor_is_forward(advice, row) || advice_is_claimed(result, row))
		return before != NULL;
	is_same = kind != OPERATOR_SOLVES && advice->events->name[*before] == name;
	advice_add_share(result, row, (is_same ? 1 : factor_share(advice, row)) * advice_work_share(advice, row));
	return true;
}

static bool rule_factor_find_again(const struct advice *advice, struct advice_result *result)
{
	struct ops_map seen = {0};
	uint8_t *foreign_names = advice_foreign_names(advice);
	bool done = foreign_names != NULL, foreign = done && advice_has_foreign_memory(advice, foreign_names);

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		done = add_factor(&seen, result, row, foreign);
	ops_map_release(&seen);
	ops_free(foreign_names);
	return done && advice_report_costs(result, "%s a matrix that has been factored before and not changed since, in %s.",
	                                   advice_events(result, "operator in each step factors", "operators in each step factor").text,
	                                   advice_cost(result).text);
}

const struct advice_rule advice_rule_factor = {
	.id = "repeated-factorization",
	.title = "The same matrix is factored again",
	.condition = "solve, inv, det or logdet get a matrix that one of them got before, or cholesky, qr, eigh, svd, pinv, lstsq or matrix_exp one that the "
		     "same operator got before, in this step or an earlier one, and no operator has written to it since.",
	.gain = "the share of operations for the factorization, by the shapes; all of a call that gives the same result",
	.explanation = "A factorization takes a number of operations that grows with the third power of the size, and a solution with known factors only "
		       "with the second.",
	.advice = "Factor the matrix once, where it is made: torch.linalg.lu_factor and lu_solve, torch.linalg.cholesky and torch.cholesky_solve. The "
		  "logarithm of the determinant follows from the diagonal of the factors. Pass scale_tril to MultivariateNormal. To check: no "
		  "factorization in the operators of a step.",
	.code = "factors = torch.linalg.lu_factor(matrix)  # once\n"
		"x = torch.linalg.lu_solve(*factors, b)    # in place of torch.linalg.solve(matrix, b)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.lu_solve.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_factor_find_again,
};

/* --- vectors that nothing reads ---------------------------------------------------------------------------------------- */

#define SIZE_MIN 32     /* minimum size of the matrix; a small one is decomposed at once */
#define SIDES_MIN 2.0   /* minimum ratio of the sides of the matrix */

/* Returns whether something reads a part of a value, and nothing more than `bytes` of it. */
static bool is_read_in_part(const struct advice *advice, uint32_t value, double bytes)
{
	const struct data_flow *flow = advice->flow;
	bool is_narrowed = false;

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];

		if (use->kind != DATA_VIEWS && (double)use->bytes > bytes)
			return false;
		is_narrowed |= use->kind == DATA_NARROWS;
	}
	return is_narrowed && !advice_may_read_block(advice, &flow->memory.blocks.items[flow->memory.values.items[value].block]);
}

/* Returns the share of a decomposition for vectors that nothing reads: it makes a square matrix of vectors for the longer side, of which
 * only as many as the shorter side has are read. 0: none. */
static double unread_vectors_share(const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	struct ops_input matrix;
	double rows, columns, longer, shorter, square;

	if (!advice_input(advice, row, 0, &matrix) || !matrix_sizes(&matrix, &rows, &columns))
		return 0;
	longer = rows > columns ? rows : columns;
	shorter = rows > columns ? columns : rows;
	square = (double)advice_input_bytes(&matrix) / shorter * longer;
	if (longer < SIZE_MIN || longer < SIDES_MIN * shorter)
		return 0;
	for (uint32_t i = 0; i < node->made_count; i++) {
		uint32_t value = flow->made.items[node->first_made + i];

		if (!data_flow_is_scratch(flow, row, value) && (double)flow->values[value].bytes >= square)
			return is_read_in_part(advice, value, square * shorter / longer) ? 1 - shorter / longer : 0;
	}
	return 0;
}

/* Adds a share of each call with one of the rule's names. */
static void add_named_shares(const struct advice *advice, struct advice_result *result, double (*share_of)(const struct advice *, uint32_t))
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		double share = result->which[advice->events->name[row]] && rule_factor_is_forward(advice, row) && !advice_is_claimed(result, row)
		                       ? share_of(advice, row)
		                       : 0;

		if (share > 0)
			advice_add_share(result, row, share * advice_work_share(advice, row));
	}
}

static bool rule_factor_find_full(const struct advice *advice, struct advice_result *result)
{
	add_named_shares(advice, result, unread_vectors_share);
	return advice_report_costs(result, "%s as many vectors as the longer side of the matrix has, and at most as many as the shorter side has are read. "
	                                   "The others take %s.",
	                           advice_events(result, "decomposition in each step makes", "decompositions in each step make").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_full_matrices = {
	.id = "full-matrices",
	.title = "A decomposition computes vectors that nothing reads",
	.condition = "svd or qr of a matrix with one side at least twice as long as the other makes a square matrix for the longer side, of which nothing "
		     "reads more than the reduced form has.",
	.gain = "the part of the decomposition for these vectors: one minus the shorter side divided by the longer one",
	.explanation = "The vectors beyond the rank only complete a basis. Making them takes operations in proportion to the square of the longer side.",
	.advice = "Pass full_matrices=False to torch.linalg.svd, some=True to torch.svd, and mode=\"reduced\" to torch.linalg.qr. To check: the shapes of "
		  "what it returns. The results are the same.",
	.code = "u, s, vh = torch.linalg.svd(a, full_matrices=False)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html",
	.names = (const char *const[]){"aten::linalg_svd", "aten::svd", "aten::linalg_qr", "aten::qr", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_SURE,
	.find = rule_factor_find_full,
};

/* --- real parts of complex values ------------------------------------------------------------------------------------- */

/* Operations in units of n³, with all vectors, and for values alone: of the QR algorithm for a general matrix and for a symmetric one
 * (Golub and Van Loan, Matrix Computations, 7.5.6 and 8.3.3). */
#define GENERAL 25.0
#define SYMMETRIC 9.0
#define GENERAL_VALUES 10.0
#define SYMMETRIC_VALUES (4.0 / 3)

/* Returns whether of all complex results that something reads it reads a half: the real parts. */
static bool reads_real_parts(const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	bool found = false;

	for (uint32_t i = 0; i < node->made_count; i++) {
		uint32_t value = flow->made.items[node->first_made + i];

		if (data_flow_is_scratch(flow, row, value) || flow->values[value].first == OPS_NONE)
			continue;
		if (!is_read_in_part(advice, value, (double)flow->values[value].bytes / 2))
			return false;
		found = true;
	}
	return found;
}

/* Returns the share of a decomposition that a symmetric one saves, if only real parts are read; 0: none. */
static double general_share(const struct advice *advice, uint32_t row)
{
	double rows, columns;
	struct ops_input matrix;

	if (!advice_input(advice, row, 0, &matrix) || !matrix_sizes(&matrix, &rows, &columns) || rows < SIZE_MIN || !reads_real_parts(advice, row))
		return 0;
	return ops_string_ends(advice_name(advice, row), "eigvals") ? 1 - SYMMETRIC_VALUES / GENERAL_VALUES : 1 - SYMMETRIC / GENERAL;
}

static bool rule_factor_find_general(const struct advice *advice, struct advice_result *result)
{
	add_named_shares(advice, result, general_share);
	return advice_report_costs(result, "%s complex eigenvalues or eigenvectors, of which only the real parts are read. For a symmetric matrix, which has "
	                                   "no other, a symmetric decomposition would take %s less.",
	                           advice_events(result, "decomposition in each step computes", "decompositions in each step compute").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_general_eigenvalues = {
	.id = "general-eigenvalues",
	.title = "Only real parts of a general eigendecomposition are read",
	.condition = "Operators read nothing but the real parts of what eig or eigvals computes of matrices of 32 rows or more.",
	.gain = "the difference in operations between a general and a symmetric matrix: 16 of 25 with vectors, 26 of 30 without",
	.explanation = "Eigenvalues of a symmetric matrix, such as a covariance, are real. eigh uses the symmetry, and is more accurate for such matrices.",
	.advice = "If the matrix is symmetric, use torch.linalg.eigh, or torch.linalg.eigvalsh. To check: the real parts are the same, in ascending order. If "
		  "it is not, the imaginary parts may matter.",
	.code = "values, vectors = torch.linalg.eigh(covariance)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html",
	.names = (const char *const[]){"aten::linalg_eig", "aten::linalg_eigvals", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* whether the matrix is symmetric is unknown */
	.bound = ADVICE_AT_MOST,
	.confidence = ADVICE_LIKELY,
	.find = rule_factor_find_general,
};

/* --- only a few values ------------------------------------------------------------------------------------------------- */

#define PART_MAX 0.25   /* maximum part of the values that is read */
#define ITERATION_SAVES 0.9 /* gain: an iteration takes a few products with a vector or a thin matrix */
#define CHOLESKY_SAVES 0.75 /* a Cholesky factorization takes a quarter of the operations for eigenvalues, or less */

enum reader_name { READS_EXTREME = 1, READS_LOGARITHM };

struct few {
	uint8_t *readers; /* by string: enum reader_name */
	uint64_t logarithms;
};

/* How the values of a decomposition are read. */
struct few_uses {
	size_t extreme, logarithm, all;
};

static void count_uses(const struct few *few, const struct advice *advice, uint32_t value, struct few_uses *uses)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];
		uint8_t reader = few->readers[advice->events->name[use->node]];
		bool is_part = use->kind == DATA_NARROWS && (double)use->bytes <= PART_MAX * (double)flow->values[value].bytes;

		if ((use->kind < DATA_OVERWRITES && !is_part) || (flow->memory.rows.context[use->node] & MEMORY_IN_BACKWARD))
			continue;
		is_part |= reader == READS_EXTREME || (double)use->bytes <= PART_MAX * (double)flow->values[value].bytes;
		uses->extreme += is_part;
		uses->logarithm += !is_part && reader == READS_LOGARITHM;
		uses->all++;
	}
}

/* Returns true for the norm of a matrix that is its largest singular value. */
static bool is_spectral_norm(const struct advice *advice, uint32_t row)
{
	struct ops_input order;
	double value = 0;

	if (!advice_input(advice, row, 1, &order))
		return false;
	if (order.tag == OPS_INPUT_DOUBLE)
		memcpy(&value, order.data, sizeof(value));
	else if (order.tag == OPS_INPUT_INT)
		value = (double)ops_input_int(&order, 0);
	return value == 2;
}

static void add_few(struct few *few, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	bool is_norm = result->which[advice->events->name[row]];
	struct few_uses uses = {0};
	struct ops_input matrix;
	double rows, columns;

	if ((!is_norm && advice_kind(advice, row) != OPERATOR_VALUES) || !rule_factor_is_forward(advice, row) || advice_is_claimed(result, row) || !advice_input(advice, row, 0, &matrix) ||
	    !matrix_sizes(&matrix, &rows, &columns) || rows < SIZE_MIN || columns < SIZE_MIN || (!is_norm && unread_vectors_share(advice, row) > 0))
		return;
	if (is_norm) {
		uses.extreme = uses.all = is_spectral_norm(advice, row);
	} else {
		const struct data_node *node = &advice->flow->nodes[row];

		for (uint32_t i = 0; i < node->made_count; i++)
			count_uses(few, advice, advice->flow->made.items[node->first_made + i], &uses);
	}
	if (!uses.all || (uses.extreme != uses.all && uses.logarithm != uses.all))
		return;
	few->logarithms += uses.logarithm > 0;
	advice_add_share(result, row, (uses.logarithm ? CHOLESKY_SAVES : ITERATION_SAVES) * advice_work_share(advice, row));
}

static bool rule_factor_find_few(const struct advice *advice, struct advice_result *result)
{
	static const char *const readers[] = {"aten::max", "aten::amax", "aten::min", "aten::amin", "aten::argmax", "aten::argmin", "aten::log",
	                                      "aten::log2", "aten::log10", NULL};
	enum { FIRST_LOGARITHM = 7 };
	struct few few = {.readers = advice_names(advice, readers)};
	bool done = few.readers != NULL;

	for (size_t id = 0; done && id < ops_trace_string_count(advice->trace); id++)
		few.readers[id] = !few.readers[id] ? 0 : few.readers[id] >= FIRST_LOGARITHM ? READS_LOGARITHM : READS_EXTREME;
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_few(&few, result, row);
	if (few.logarithms)
		result->detail = "The logarithms of all values are those of a determinant. torch.linalg.cholesky(a).diagonal().log() gives them for a positive "
				 "definite matrix, torch.linalg.slogdet for any.";
	done = done && advice_report_costs(result, "%s all values or vectors of a matrix, of which %s. "
	                                           "That takes %s.",
	                                   advice_events(result, "decomposition in each step computes", "decompositions in each step compute").text,
	                                   few.logarithms ? "only the logarithms are read" : "only the largest, the smallest or a few are read",
	                                   advice_cost(result).text);
	ops_free(few.readers);
	return done;
}

const struct advice_rule advice_rule_few_values = {
	.id = "decomposition-for-few-values",
	.title = "A matrix is decomposed for a few of its values",
	.condition = "Operators read the maximum, the minimum, at most a quarter, or only the logarithms of what svd, svdvals, eigh or eigvalsh compute of "
		     "matrices of 32 rows and columns or more; or a norm of matrices is the largest singular value.",
	.gain = "nine tenths of the decomposition, forward and backward; three quarters where only logarithms are read",
	.explanation = "A decomposition finds all singular values or eigenvalues. The largest ones take a few products with the matrix.",
	.advice = "Use power iteration for the largest singular value (torch.nn.utils.parametrizations.spectral_norm keeps its vectors from step to step), "
		  "torch.svd_lowrank, torch.pca_lowrank or torch.lobpcg for several. To check: no svd or eigh in the operators of a step. The values are "
		  "approximations.",
	.code = "layer = torch.nn.utils.parametrizations.spectral_norm(layer)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html",
	.names = (const char *const[]){"aten::linalg_matrix_norm", "aten::linalg_norm", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* exact values may be needed */
	.confidence = ADVICE_LIKELY,
	.find = rule_factor_find_few,
};
