/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators; see operators.h. The formulas of operations are in operator_formulas.c, those of bytes in traffic.c.
 */
#include "derive/operators.h"

#include "base/alloc.h"
#include "base/text.h"
#include "trace/derived.h"

/* Names are without "aten::". Sources of FLOPs: [P] torch.profiler, [F] torch.utils.flop_counter; otherwise the
 * definition of the operator, counted in the same way. Source of traffic: the operator's schema, whose tensors are read
 * and written once. READS and WRITES list argument numbers. A result has the size of an argument in WRITES, or `result`
 * computes its size. */
#define BIT(i) (1u << (i))
#define READS_1(a) BIT(a)
#define READS_2(a, b) (BIT(a) | BIT(b))
#define READS_3(a, b, c) (BIT(a) | BIT(b) | BIT(c))
#define READS_4(a, b, c, d) (BIT(a) | BIT(b) | BIT(c) | BIT(d))
#define READS_5(a, b, c, d, e) (BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e))
#define WRITES(a) BIT(a)

/* Operators with one, two and three tensors, and those that write to the first; `times` operations per element. */
#define POINTWISE_1(name, times) \
	{name, OPERATOR_OTHER, flops_each_element, {0, times, 1}, {READS_1(0), 0, traffic_broadcast}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}, \
	{name "_", OPERATOR_OTHER, flops_each_element, {0, times, 1}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}
#define POINTWISE_2(name) \
	{name, OPERATOR_OTHER, flops_pointwise, {0, 1, 2}, {READS_2(0, 1), 0, traffic_broadcast}, OPERATOR_ELEMENTWISE}, \
	{name "_", OPERATOR_OTHER, flops_pointwise, {0, 1, 2}, {READS_2(0, 1), WRITES(0), NULL}, OPERATOR_ELEMENTWISE}
#define POINTWISE_2_OTHER(name) \
	{name, OPERATOR_OTHER, flops_pointwise, {0, 1, 2}, {READS_2(0, 1), 0, traffic_broadcast}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}, \
	{name "_", OPERATOR_OTHER, flops_pointwise, {0, 1, 2}, {READS_2(0, 1), WRITES(0), NULL}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}
#define POINTWISE_3(name, times) \
	{name, OPERATOR_OTHER, flops_each_element, {0, times, 3}, {READS_3(0, 1, 2), 0, traffic_broadcast}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}, \
	{name "_", OPERATOR_OTHER, flops_each_element, {0, times, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_ONLY_WORK | OPERATOR_ELEMENTWISE}
/* Comparisons count no operations. */
#define COMPARISON(name) {name, OPERATOR_OTHER, NULL, {0, 0, 2}, {READS_2(0, 1), 0, traffic_truth}, 0}
/* (grad_output, self or result, …). */
#define GRADIENT(name, times) \
	{name, OPERATOR_OTHER, flops_each_element, {0, times, 2}, {READS_2(0, 1), 0, traffic_broadcast}, OPERATOR_ONLY_WORK}
/* (self, dim, …); the last number is the argument with the dimensions. */
#define REDUCTION(name, times, dimensions) \
	{name, OPERATOR_REDUCES, flops_each_element, {0, times, dimensions}, {READS_1(0), 0, traffic_reduced}, OPERATOR_ONLY_WORK}
#define FILL(name) {name, OPERATOR_OVERWRITES, NULL, {0}, {0, WRITES(0), NULL}, 0}
/* Reads all of the first argument; writes are not counted. */
#define READ_ALL(kind, name) {name, OPERATOR_##kind, NULL, {0}, {READS_1(0), 0, NULL}, 0}
/* (self[], other[], …): lists of tensors, like the operators on single tensors. */
#define FOREACH(name, reads, flags) \
	{"_foreach_" name, OPERATOR_OTHER, flops_each, {0}, {reads, WRITES(0), NULL}, flags}, \
	{"_foreach_" name "_", OPERATOR_OTHER, flops_each, {0}, {reads, WRITES(0), NULL}, flags}
/* Without formulas, alone or in the list of the TensorBoard plugin. */
#define NAMED(kind, name) {name, OPERATOR_##kind, NULL, {0}, {0, 0, NULL}, 0}
#define IN_PLUGIN(kind, name) {name, OPERATOR_##kind, NULL, {0}, {0, 0, NULL}, OPERATOR_IN_PLUGIN}

const struct operator_row operator_rows[] = {
	{"", OPERATOR_OTHER, NULL, {0}, {0, 0, NULL}, 0}, /* any other name */

	/* One operation per element [P for add and mul of equal shapes]. */
	POINTWISE_2("add"), POINTWISE_2("sub"), POINTWISE_2("mul"), POINTWISE_2("div"),
	POINTWISE_2_OTHER("pow"), POINTWISE_2_OTHER("maximum"), POINTWISE_2_OTHER("minimum"), POINTWISE_2_OTHER("atan2"),
	POINTWISE_2_OTHER("remainder"), POINTWISE_2_OTHER("fmod"), POINTWISE_2_OTHER("floor_divide"), POINTWISE_2_OTHER("true_divide"),
	POINTWISE_1("abs", 1), POINTWISE_1("neg", 1), POINTWISE_1("exp", 1), POINTWISE_1("exp2", 1), POINTWISE_1("expm1", 1),
	POINTWISE_1("log", 1), POINTWISE_1("log2", 1), POINTWISE_1("log10", 1), POINTWISE_1("log1p", 1),
	POINTWISE_1("sqrt", 1), POINTWISE_1("rsqrt", 1), POINTWISE_1("reciprocal", 1), POINTWISE_1("square", 1),
	POINTWISE_1("sin", 1), POINTWISE_1("cos", 1), POINTWISE_1("tan", 1), POINTWISE_1("tanh", 1), POINTWISE_1("erf", 1),
	POINTWISE_1("sigmoid", 1), POINTWISE_1("relu", 1), POINTWISE_1("silu", 1), POINTWISE_1("gelu", 1), POINTWISE_1("mish", 1),
	POINTWISE_1("elu", 1), POINTWISE_1("leaky_relu", 1), POINTWISE_1("softplus", 1), POINTWISE_1("hardtanh", 1),
	POINTWISE_1("hardswish", 1), POINTWISE_1("hardsigmoid", 1), POINTWISE_1("clamp_min", 1), POINTWISE_1("clamp_max", 1),
	POINTWISE_1("floor", 1), POINTWISE_1("ceil", 1), POINTWISE_1("round", 1), POINTWISE_1("trunc", 1), POINTWISE_1("sign", 1),
	POINTWISE_3("clamp", 2), POINTWISE_3("lerp", 3), POINTWISE_3("addcmul", 3), POINTWISE_3("addcdiv", 3),
	{"where", OPERATOR_OTHER, NULL, {0, 0, 3}, {READS_3(0, 1, 2), 0, traffic_broadcast}, OPERATOR_ELEMENTWISE},
	{"masked_fill", OPERATOR_OTHER, NULL, {0, 0, 2}, {READS_2(0, 1), 0, traffic_broadcast}, OPERATOR_ELEMENTWISE},
	COMPARISON("eq"), COMPARISON("ne"), COMPARISON("lt"), COMPARISON("le"), COMPARISON("gt"), COMPARISON("ge"),
	COMPARISON("logical_and"), COMPARISON("logical_or"), COMPARISON("logical_not"), COMPARISON("isnan"), COMPARISON("isinf"),
	GRADIENT("threshold_backward", 1), GRADIENT("sigmoid_backward", 3), GRADIENT("tanh_backward", 3),
	GRADIENT("gelu_backward", 1), GRADIENT("silu_backward", 1), GRADIENT("mish_backward", 1), GRADIENT("elu_backward", 1),
	GRADIENT("leaky_relu_backward", 1), GRADIENT("hardtanh_backward", 1), GRADIENT("hardswish_backward", 1),
	GRADIENT("hardsigmoid_backward", 1), GRADIENT("native_dropout_backward", 2),
	{"native_dropout", OPERATOR_OTHER, flops_each_element, {0, 2}, {READS_1(0), WRITES(0), traffic_mask}, OPERATOR_ONLY_WORK},

	/* Operators that move data: (self, src), lists of tensors, and pure writes. The rows selected by indices may be
	 * few. */
	{"copy_", OPERATOR_OVERWRITES, NULL, {0}, {READS_1(1), WRITES(0), NULL}, 0},
	{"cat", OPERATOR_OTHER, NULL, {0}, {READS_1(0), WRITES(0), NULL}, 0},
	FILL("fill_"), FILL("zero_"), FILL("normal_"), FILL("uniform_"), FILL("bernoulli_"), FILL("random_"), FILL("exponential_"),
	{"embedding", OPERATOR_SELECTS, NULL, {0, 1}, {READS_1(1), 0, traffic_rows}, 0},
	{"embedding_renorm_", OPERATOR_OTHER, NULL, {0, 1}, {READS_1(1), 0, traffic_rows}, 0},
	{"index_select", OPERATOR_SELECTS, NULL, {0, 2, 1}, {READS_1(2), 0, traffic_selected}, 0},
	{"gather", OPERATOR_SELECTS, NULL, {0, 2}, {READS_1(2), 0, traffic_gathered}, 0},
	{"embedding_dense_backward", OPERATOR_OTHER, NULL, {0, 2}, {READS_2(0, 1), 0, traffic_embedding_gradient}, 0},
	{"flip", OPERATOR_OTHER, NULL, {0}, {READS_1(0), WRITES(0), NULL}, 0},
	{"roll", OPERATOR_OTHER, NULL, {0}, {READS_1(0), WRITES(0), NULL}, 0},

	/* One operation per input element; means divide; variances subtract, square and add. */
	REDUCTION("sum", 1, 1), REDUCTION("mean", 1, 1), REDUCTION("prod", 1, 1), REDUCTION("amax", 1, 1), REDUCTION("amin", 1, 1),
	REDUCTION("max", 1, 1), REDUCTION("min", 1, 1), REDUCTION("argmax", 1, 1), REDUCTION("argmin", 1, 1),
	REDUCTION("logsumexp", 3, 1), REDUCTION("std", 4, 1), REDUCTION("var", 4, 1), REDUCTION("std_mean", 4, 1),
	REDUCTION("var_mean", 4, 1), REDUCTION("linalg_vector_norm", 2, 2), REDUCTION("norm", 2, 2),
	{"any", OPERATOR_REDUCES, NULL, {0, 0, 1}, {READS_1(0), 0, traffic_reduced}, 0},
	{"all", OPERATOR_REDUCES, NULL, {0, 0, 1}, {READS_1(0), 0, traffic_reduced}, 0},
	{"cumsum", OPERATOR_OTHER, flops_each_element, {0, 1}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"sort", OPERATOR_OTHER, NULL, {0}, {READS_1(0), WRITES(0), NULL}, 0},
	READ_ALL(OTHER, "topk"),

	/* Golub and Van Loan, "Matrix Computations", 4th edition: Cholesky 4.2, LU 3.2 (and 2 n^3 for the inverse), R of
	 * Householder's QR 5.2. Eigenvalues and singular values are bounded from below by the reduction to tridiagonal
	 * (8.3) and bidiagonal (5.4) form. Vectors and Q take more, but the arguments do not always show whether they are
	 * computed. */
	{"linalg_cholesky_ex", OPERATOR_DECOMPOSES, flops_decomposition, {0, 1, 0, 0}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"cholesky", OPERATOR_DECOMPOSES, flops_decomposition, {0, 1, 0, 0}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"linalg_lu_factor_ex", OPERATOR_LU, flops_decomposition, {0, 3, 1, 0}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_linalg_solve_ex", OPERATOR_SOLVES, flops_decomposition, {0, 3, 1, 1}, {READS_2(0, 1), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"linalg_inv_ex", OPERATOR_INVERTS, flops_decomposition, {0, 6, 0, 0}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"linalg_qr", OPERATOR_DECOMPOSES, flops_decomposition, {0, 6, 2, 0}, {READS_1(0), 0, NULL}, OPERATOR_ONLY_WORK},
	{"_linalg_eigh", OPERATOR_VALUES, flops_decomposition, {0, 4, 0, 0}, {READS_1(0), 0, NULL}, OPERATOR_ONLY_WORK},
	{"_linalg_svd", OPERATOR_VALUES, flops_decomposition, {0, 12, 4, 0}, {READS_1(0), 0, NULL}, OPERATOR_ONLY_WORK},

	/* Operations by the convention of benchFFT (fftw.org/speed/method.html). */
	{"_fft_c2c", OPERATOR_OTHER, flops_fourier, {2}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_fft_r2c", OPERATOR_OTHER, flops_fourier, {1}, {READS_1(0), 0, NULL}, OPERATOR_ONLY_WORK},
	{"_fft_c2r", OPERATOR_OTHER, flops_fourier, {2}, {READS_1(0), 0, NULL}, OPERATOR_ONLY_WORK}, /* its input is half a spectrum */

	/* (self, dim, …): maximum, difference, exponential, sum, quotient. Backward: the product of gradient and
	 * result, its sum, difference and product; for a logarithm, an exponential instead of the first product. */
	{"_softmax", OPERATOR_OTHER, flops_each_element, {0, 5}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_log_softmax", OPERATOR_OTHER, flops_each_element, {0, 5}, {READS_1(0), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_softmax_backward_data", OPERATOR_OTHER, flops_each_element, {0, 4}, {READS_2(0, 1), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_log_softmax_backward_data", OPERATOR_OTHER, flops_each_element, {0, 4}, {READS_2(0, 1), WRITES(0), NULL}, OPERATOR_ONLY_WORK},

	/* Mean, difference, square, sum, product with the scale, weight and bias: 7 operations per element, 5 without
	 * mean and bias. Backward: the normalised element (2), its gradient (1), the sums of that and of its product
	 * with the element (3), the result (4), the gradients of weight and bias (3). The input is counted as read
	 * once, although its mean requires all of it first. */
	{"native_layer_norm", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_3(0, 2, 3), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"native_group_norm", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"native_batch_norm", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_native_batch_norm_legit", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_batch_norm_with_update", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"cudnn_batch_norm", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"miopen_batch_norm", OPERATOR_OTHER, flops_each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"_fused_rms_norm", OPERATOR_OTHER, flops_each_element, {0, 5}, {READS_2(0, 2), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	/* (grad_output, input, …); library versions (input, grad_output, …). */
	{"native_layer_norm_backward", OPERATOR_OTHER, flops_each_element, {1, 13}, {READS_5(0, 1, 3, 4, 5), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"native_group_norm_backward", OPERATOR_OTHER, flops_each_element, {1, 13}, {READS_5(0, 1, 2, 3, 4), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"native_batch_norm_backward", OPERATOR_OTHER, flops_each_element, {1, 13}, {READS_3(0, 1, 2), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"batch_norm_backward", OPERATOR_OTHER, flops_each_element, {1, 13}, {READS_3(0, 1, 2), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"_fused_rms_norm_backward", OPERATOR_OTHER, flops_each_element, {1, 11}, {READS_4(0, 1, 3, 4), WRITES(1), NULL}, OPERATOR_ONLY_WORK},
	{"cudnn_batch_norm_backward", OPERATOR_OTHER, flops_each_element, {0, 13}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_ONLY_WORK},
	{"miopen_batch_norm_backward", OPERATOR_OTHER, flops_each_element, {0, 13}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_ONLY_WORK},

	/* Pooling reads all of its input, and writes less. Backward: (grad_output, self, …). */
	READ_ALL(POOLING, "max_pool2d_with_indices"), READ_ALL(POOLING, "avg_pool2d"), READ_ALL(POOLING, "_adaptive_avg_pool2d"),
	READ_ALL(POOLING, "mkldnn_max_pool2d"),
	{"max_pool2d_with_indices_backward", OPERATOR_POOLING, NULL, {0}, {READS_1(0), WRITES(1), NULL}, 0},
	{"avg_pool2d_backward", OPERATOR_POOLING, NULL, {0}, {READS_1(0), WRITES(1), NULL}, 0},
	{"_adaptive_avg_pool2d_backward", OPERATOR_POOLING, NULL, {0}, {READS_1(0), WRITES(1), NULL}, 0},

	/* (self, mat2) [P, F]; the scale factors of _scaled_mm are not counted [F]. */
	{"mm", OPERATOR_PRODUCT, flops_matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"bmm", OPERATOR_PRODUCT, flops_matrix_product, {0, 3, 3}, {READS_2(0, 1), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"_scaled_mm", OPERATOR_PRODUCT, flops_matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, NULL}, 0},
	{"_int_mm", OPERATOR_PRODUCT, flops_matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, NULL}, 0},
	/* (self, mat1, mat2): the addition is not counted [P, F]. */
	{"addmm", OPERATOR_PRODUCT, flops_matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"addmm_", OPERATOR_PRODUCT, flops_matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_IN_PLUGIN},
	{"_addmm_activation", OPERATOR_PRODUCT, flops_matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), 0, traffic_product}, 0},
	{"baddbmm", OPERATOR_PRODUCT, flops_matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"baddbmm_", OPERATOR_PRODUCT, flops_matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"addbmm", OPERATOR_PRODUCT, flops_matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, OPERATOR_IN_PLUGIN},
	{"addbmm_", OPERATOR_PRODUCT, flops_matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	/* Products with vectors, counted as matrices of one column. */
	{"mv", OPERATOR_PRODUCT, flops_matrix_product, {0, 2, 1}, {READS_2(0, 1), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"addmv", OPERATOR_PRODUCT, flops_matrix_product, {1, 2, 1}, {READS_3(0, 1, 2), 0, traffic_product}, OPERATOR_IN_PLUGIN},
	{"addmv_", OPERATOR_PRODUCT, flops_matrix_product, {1, 2, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"dot", OPERATOR_PRODUCT, flops_matrix_product, {0, 1, 1}, {READS_2(0, 1), 0, traffic_product}, 0},
	{"vdot", OPERATOR_PRODUCT, flops_matrix_product, {0, 1, 1}, {READS_2(0, 1), 0, traffic_product}, 0},

	/* (input, weight, bias, stride, padding, dilation, groups) [P for conv2d]. */
	{"conv1d", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	{"conv2d", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	{"conv3d", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	/* (input, weight, bias, stride, padding, dilation, transposed, …) [F]. */
	{"convolution", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	{"_convolution", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	{"convolution_overrideable", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, 0},
	/* (self, weight, bias, padding, stride, dilation, groups). */
	{"mkldnn_convolution", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 4, 3, 5}, {READS_2(0, 1), 0, traffic_convolution}, 0},
	{"miopen_convolution", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 4, 3, 5}, {READS_2(0, 1), 0, traffic_convolution}, 0},
	/* (self, weight, padding, stride, dilation, groups, …) [F]. */
	{"cudnn_convolution", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 3, 2, 4}, {READS_2(0, 1), 0, traffic_convolution}, OPERATOR_IN_PLUGIN},
	/* (self, weight, kernel_size, bias, stride, padding) [F]. */
	{"_slow_conv2d_forward", OPERATOR_CONVOLUTION, flops_convolution, {0, 1, 4, 5, 0}, {READS_2(0, 1), 0, traffic_convolution}, 0},
	/* (input, weight, …) [F for the operator inside]. */
	{"conv_transpose1d", OPERATOR_CONVOLUTION, flops_transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, OPERATOR_IN_PLUGIN},
	{"conv_transpose2d", OPERATOR_CONVOLUTION, flops_transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, OPERATOR_IN_PLUGIN},
	{"conv_transpose3d", OPERATOR_CONVOLUTION, flops_transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, OPERATOR_IN_PLUGIN},
	/* (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask) [F]. */
	{"convolution_backward", OPERATOR_CONVOLUTION, flops_convolution_backward, {1, 2, 4, 5, 6, 7}, {READS_3(0, 1, 2), 0, traffic_gradients}, 0},

	FOREACH("add", READS_2(0, 1), 0), FOREACH("sub", READS_2(0, 1), 0), FOREACH("mul", READS_2(0, 1), 0), FOREACH("div", READS_2(0, 1), 0),
	FOREACH("addcmul", READS_3(0, 1, 2), OPERATOR_ONLY_WORK), FOREACH("addcdiv", READS_3(0, 1, 2), OPERATOR_ONLY_WORK),
	FOREACH("lerp", READS_2(0, 1), OPERATOR_ONLY_WORK), FOREACH("sqrt", READS_1(0), OPERATOR_ONLY_WORK), FOREACH("neg", READS_1(0), OPERATOR_ONLY_WORK), FOREACH("exp", READS_1(0), OPERATOR_ONLY_WORK),
	{"_foreach_zero_", OPERATOR_OVERWRITES, NULL, {0}, {0, WRITES(0), NULL}, 0},
	{"_foreach_copy_", OPERATOR_OTHER, NULL, {0}, {READS_1(1), WRITES(0), NULL}, 0},
	{"_foreach_norm", OPERATOR_OTHER, NULL, {0}, {READS_1(0), 0, NULL}, 0},
	/* (self[], grads[], exp_avgs[], exp_avg_sqs[], …) and (self[], grads[], momentum_buffers[], …). */
	{"_fused_adam_", OPERATOR_OTHER, NULL, {0}, {READS_4(0, 1, 2, 3), BIT(0) | BIT(2) | BIT(3), NULL}, 0},
	{"_fused_adamw_", OPERATOR_OTHER, NULL, {0}, {READS_4(0, 1, 2, 3), BIT(0) | BIT(2) | BIT(3), NULL}, 0},
	{"_fused_sgd_", OPERATOR_OTHER, NULL, {0}, {READS_3(0, 1, 2), BIT(0) | BIT(2), NULL}, 0},

	/* Recurrent layers in one operator: matrix products only. */
	{"_cudnn_rnn", OPERATOR_RECURRENT, flops_recurrent, {0}, {READS_2(0, 1), 0, NULL}, 0},
	{"miopen_rnn", OPERATOR_RECURRENT, flops_recurrent, {0}, {READS_2(0, 1), 0, NULL}, 0},
	/* (input, w_ih, w_hh, …); backward: gradients of the multiplied inputs and of the weights. */
	{"mkldnn_rnn_layer", OPERATOR_RECURRENT, flops_weight_product, {0, 1, 2}, {READS_3(0, 1, 2), 0, NULL}, 0},
	{"mkldnn_rnn_layer_backward", OPERATOR_RECURRENT, flops_weight_product, {0, 1, 2, 2}, {READS_3(0, 1, 2), 0, NULL}, 0},

	/* (self, weight, bias). */
	{"mkldnn_linear", OPERATOR_PRODUCT, flops_weight_product, {0, 1}, {READS_3(0, 1, 2), 0, traffic_linear}, 0},
	{"mkldnn::_linear_pointwise", OPERATOR_PRODUCT, flops_fused_linear, {5}, {READS_2(0, 1), 0, NULL}, 0},
	/* (X, W, B, padding, stride, dilation, …); in place (other, X, W, B, padding, stride, dilation, …). */
	{"mkldnn::_convolution_pointwise", OPERATOR_CONVOLUTION, flops_fused_convolution, {12}, {READS_2(0, 1), 0, NULL}, 0},
	{"mkldnn::_convolution_pointwise_", OPERATOR_CONVOLUTION, flops_convolution, {1, 2, 5, 4, 6}, {READS_2(1, 2), 0, traffic_convolution}, 0},
	{"mkldnn::_convolution_transpose_pointwise", OPERATOR_CONVOLUTION, flops_transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, 0},

	/* (query, key, value, …), each (batch, heads, length, size): scores and weighted values [F]. */
	{"_scaled_dot_product_flash_attention", OPERATOR_ATTENTION, flops_attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"_scaled_dot_product_flash_attention_for_cpu", OPERATOR_ATTENTION, flops_attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"_scaled_dot_product_efficient_attention", OPERATOR_ATTENTION, flops_attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"_scaled_dot_product_cudnn_attention", OPERATOR_ATTENTION, flops_attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"_scaled_dot_product_fused_attention_overrideable", OPERATOR_ATTENTION, flops_attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	/* The same with (batch, length, heads, size), which flop_counter mistakes for the order above. No value if the
	 * sequences are packed; their lengths are then a tensor, in argument 3, 4, or 6 backward. */
	{"_flash_attention_forward", OPERATOR_ATTENTION, flops_attention, {0, 2, 1, 1, 1, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	{"_efficient_attention_forward", OPERATOR_ATTENTION, flops_attention, {0, 2, 1, 1, 1, 4}, {READS_3(0, 1, 2), WRITES(0), NULL}, 0},
	/* (grad_out, query, key, value, …): the scores again, and the gradients of scores, values, queries, keys
	 * [F]. */
	{"_scaled_dot_product_flash_attention_backward", OPERATOR_ATTENTION, flops_attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_scaled_dot_product_flash_attention_for_cpu_backward", OPERATOR_ATTENTION, flops_attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_scaled_dot_product_efficient_attention_backward", OPERATOR_ATTENTION, flops_attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_scaled_dot_product_cudnn_attention_backward", OPERATOR_ATTENTION, flops_attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_scaled_dot_product_fused_attention_overrideable_backward", OPERATOR_ATTENTION, flops_attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_flash_attention_backward", OPERATOR_ATTENTION, flops_attention, {1, 2, 1, 3, 2, 6}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},
	{"_efficient_attention_backward", OPERATOR_ATTENTION, flops_attention, {1, 2, 1, 3, 2, 6}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, 0},

	/* Without formulas. Autograd nodes have no prefix. */
	NAMED(NARROWS, "diagonal"), NAMED(NARROWS, "select"), NAMED(NARROWS, "slice"), NAMED(NARROWS, "narrow"),
	NAMED(VIEWS, "alias"), NAMED(VIEWS, "as_strided"), NAMED(VIEWS, "broadcast_tensors"), NAMED(VIEWS, "broadcast_to"), NAMED(VIEWS, "chunk"), NAMED(VIEWS, "detach"),
	NAMED(VIEWS, "detach_"), NAMED(VIEWS, "expand"), NAMED(VIEWS, "expand_as"), NAMED(VIEWS, "imag"),
	NAMED(VIEWS, "lift_fresh"), NAMED(VIEWS, "mT"), NAMED(VIEWS, "movedim"), NAMED(VIEWS, "numpy_T"),
	NAMED(VIEWS, "permute"), NAMED(VIEWS, "real"), NAMED(VIEWS, "requires_grad_"), NAMED(VIEWS, "set_"),
	NAMED(VIEWS, "split"), NAMED(VIEWS, "split_with_sizes"), NAMED(VIEWS, "squeeze"), NAMED(VIEWS, "swapaxes"),
	NAMED(VIEWS, "t"), NAMED(VIEWS, "tensor_split"), NAMED(VIEWS, "transpose"), NAMED(VIEWS, "unbind"),
	NAMED(VIEWS, "unflatten"), NAMED(VIEWS, "unfold"), NAMED(VIEWS, "unsqueeze"), NAMED(VIEWS, "view"),
	NAMED(VIEWS, "view_as"), NAMED(VIEWS, "view_as_complex"), NAMED(VIEWS, "view_as_real"),
	NAMED(VIEWS, "_reshape_alias"), NAMED(VIEWS, "_unsafe_view"),
	NAMED(MAY_VIEW, "contiguous"), NAMED(MAY_VIEW, "flatten"), NAMED(MAY_VIEW, "reshape"),
	NAMED(MAY_VIEW, "resolve_conj"), NAMED(MAY_VIEW, "resolve_neg"), NAMED(MAY_VIEW, "to"), NAMED(MAY_VIEW, "type_as"),
	NAMED(SELECTS, "diag"), NAMED(SELECTS, "diagonal_copy"), NAMED(SELECTS, "index"), NAMED(SELECTS, "masked_select"),
	NAMED(SELECTS, "take"), NAMED(SELECTS, "take_along_dim"), NAMED(SELECTS, "trace"),
	NAMED(ALLOCATES, "empty"), NAMED(ALLOCATES, "empty_like"), NAMED(ALLOCATES, "empty_strided"),
	NAMED(ALLOCATES, "new_empty"), NAMED(ALLOCATES, "new_empty_strided"), NAMED(ALLOCATES, "resize_"),
	IN_PLUGIN(PRODUCT, "matmul"), IN_PLUGIN(PRODUCT, "linear"), NAMED(PRODUCT, "einsum"),
	IN_PLUGIN(PRODUCT, "chain_matmul"), IN_PLUGIN(PRODUCT, "linalg_multi_dot"), IN_PLUGIN(PRODUCT, "addr"),
	NAMED(PRODUCT, "_grouped_mm"), NAMED(PRODUCT, "_scaled_grouped_mm"), IN_PLUGIN(PRODUCT, "AddbmmBackward"),
	NAMED(PRODUCT, "AddbmmBackward0"), IN_PLUGIN(PRODUCT, "AddmmBackward"), NAMED(PRODUCT, "AddmmBackward0"),
	IN_PLUGIN(PRODUCT, "AddmvBackward"), NAMED(PRODUCT, "AddmvBackward0"), IN_PLUGIN(PRODUCT, "BmmBackward0"),
	NAMED(PRODUCT, "BaddbmmBackward0"), IN_PLUGIN(PRODUCT, "MmBackward"), NAMED(PRODUCT, "MmBackward0"),
	IN_PLUGIN(PRODUCT, "MvBackward"), NAMED(PRODUCT, "MvBackward0"),
	IN_PLUGIN(CONVOLUTION, "conv_tbc"), IN_PLUGIN(CONVOLUTION, "cudnn_convolution_backward"),
	IN_PLUGIN(CONVOLUTION, "cudnn_convolution_backward_input"),
	IN_PLUGIN(CONVOLUTION, "cudnn_convolution_backward_weight"), IN_PLUGIN(CONVOLUTION, "cudnn_convolution_transpose"),
	IN_PLUGIN(CONVOLUTION, "cudnn_convolution_transpose_backward"),
	IN_PLUGIN(CONVOLUTION, "cudnn_convolution_transpose_backward_input"),
	IN_PLUGIN(CONVOLUTION, "cudnn_convolution_transpose_backward_weight"),
	IN_PLUGIN(CONVOLUTION, "CudnnConvolutionBackward"), IN_PLUGIN(CONVOLUTION, "CudnnConvolutionTransposeBackward"),
	NAMED(CONVOLUTION, "ConvolutionBackward0"), NAMED(CONVOLUTION, "_conv_depthwise2d"),
	NAMED(CONVOLUTION, "conv_depthwise3d"), NAMED(CONVOLUTION, "thnn_conv2d"), NAMED(CONVOLUTION, "slow_conv3d"),
	NAMED(CONVOLUTION, "slow_conv3d_forward"), NAMED(CONVOLUTION, "_nnpack_spatial_convolution"),
	NAMED(CONVOLUTION, "miopen_depthwise_convolution"), NAMED(CONVOLUTION, "miopen_convolution_transpose"),
	NAMED(CONVOLUTION, "cudnn_convolution_relu"), NAMED(CONVOLUTION, "cudnn_convolution_add_relu"),
	NAMED(CONVOLUTION, "_convolution_mode"),
	NAMED(POOLING, "max_pool1d"), NAMED(POOLING, "max_pool2d"), NAMED(POOLING, "max_pool3d"),
	NAMED(POOLING, "max_pool1d_with_indices"), NAMED(POOLING, "max_pool3d_with_indices"), NAMED(POOLING, "avg_pool1d"),
	NAMED(POOLING, "avg_pool3d"), NAMED(POOLING, "adaptive_avg_pool1d"), NAMED(POOLING, "adaptive_avg_pool2d"),
	NAMED(POOLING, "adaptive_avg_pool3d"), NAMED(POOLING, "_adaptive_avg_pool3d"), NAMED(POOLING, "adaptive_max_pool1d"),
	NAMED(POOLING, "adaptive_max_pool2d"), NAMED(POOLING, "adaptive_max_pool3d"),
	NAMED(POOLING, "fractional_max_pool2d"), NAMED(POOLING, "fractional_max_pool3d"),
	NAMED(POOLING, "quantized_max_pool2d"), NAMED(POOLING, "mkldnn_max_pool3d"),
	IN_PLUGIN(RECURRENT, "gru_cell"), IN_PLUGIN(RECURRENT, "lstm_cell"), IN_PLUGIN(RECURRENT, "rnn_relu_cell"),
	IN_PLUGIN(RECURRENT, "rnn_tanh_cell"), IN_PLUGIN(RECURRENT, "_thnn_fused_gru_cell"),
	IN_PLUGIN(RECURRENT, "_thnn_fused_lstm_cell"),
	NAMED(ATTENTION, "scaled_dot_product_attention"), NAMED(ATTENTION, "_scaled_dot_product_attention_math"),
	NAMED(SOLVES, "linalg_solve"), NAMED(SOLVES, "linalg_solve_ex"),
	NAMED(INVERTS, "linalg_inv"), NAMED(INVERTS, "inverse"),
	NAMED(LU, "linalg_det"), NAMED(LU, "det"), NAMED(LU, "logdet"), NAMED(LU, "slogdet"), NAMED(LU, "linalg_slogdet"),
	NAMED(LU, "linalg_lu_factor"),
	NAMED(PSEUDOINVERTS, "linalg_pinv"), NAMED(PSEUDOINVERTS, "pinverse"),
	NAMED(VALUES, "linalg_svdvals"), NAMED(VALUES, "linalg_svd"), NAMED(VALUES, "svd"), NAMED(VALUES, "linalg_eigvalsh"),
	NAMED(VALUES, "linalg_eigh"),
	NAMED(DECOMPOSES, "linalg_cholesky"), NAMED(DECOMPOSES, "qr"), NAMED(DECOMPOSES, "linalg_eig"),
	NAMED(DECOMPOSES, "linalg_lstsq"), NAMED(DECOMPOSES, "linalg_matrix_exp"),
	NAMED(SUBSTITUTES, "cholesky_solve"), NAMED(SUBSTITUTES, "cholesky_inverse"), NAMED(SUBSTITUTES, "linalg_lu_solve"),
	NAMED(SUBSTITUTES, "linalg_solve_triangular"), NAMED(SUBSTITUTES, "triangular_solve"),
	IN_PLUGIN(OTHER, "prelu"),
	{"rsub", OPERATOR_OTHER, NULL, {0}, {0, 0, NULL}, OPERATOR_ELEMENTWISE}, /* calls sub */
};
const size_t operator_row_count = sizeof(operator_rows) / sizeof(operator_rows[0]);

uint16_t operator_find(struct ops_string name)
{
	if (ops_string_starts(name, "aten::")) {
		name.bytes += sizeof("aten::") - 1;
		name.size -= sizeof("aten::") - 1;
	} else if (!ops_string_starts(name, "mkldnn::") && !ops_string_contains(name, "Backward") && !ops_string_starts(name, "detach")) {
		return 0; /* operators within aten::detach are called "detach" */
	}
	for (size_t i = 1; name.size && i < operator_row_count; i++)
		if (operator_rows[i].name[0] == name.bytes[0] && ops_string_is(name, operator_rows[i].name))
			return (uint16_t)i;
	return 0;
}

static void operators_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	size_t count = ops_trace_string_count(trace);
	uint16_t *rows = ops_realloc_array(NULL, count + 1, sizeof(*rows));

	for (size_t id = 0; rows && id < count; id++)
		rows[id] = operator_find(ops_trace_string(trace, (uint32_t)id));
	if (rows)
		*ret_made = (struct ops_derived_object){rows, ops_free, (count + 1) * sizeof(*rows)};
}

const uint16_t *ops_operators_of(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_OPERATORS, operators_derive);
}
