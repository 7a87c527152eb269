/* SPDX-License-Identifier: Apache-2.0
 *
 * Categories of device work; see categories.h. Words are lower case. The order of the table matters: an attention kernel of CUTLASS is
 * attention, an implicit matrix product of cuDNN or MIOpen is a convolution, and a fused kernel is what is most specific in its name.
 */
#include "derive/categories.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "derive/work.h"

#define NAME_MAX_SIZE 512 /* what a kernel is comes before its template arguments */

struct rule {
	enum ops_category category;
	const char *words[32]; /* one of them is in the name */
};

static const struct rule rules[] = {
	{OPS_CATEGORY_ATTENTION,
	 {"flash_fwd", "flash_bwd", "flashattn", "flash_attn", "flash::", "fmha", "attention", "attn_fwd", "attn_bwd", "attn_kernel",
	  "mha_fwd", "mha_bwd", "_mha_", "mla_decode", "mla_kernel", "flash_mla", "batchprefill", "batchdecode", "bwd_kernel_dk_dv",
	  "bwd_kernel_dq"}},
	{OPS_CATEGORY_EXPERTS,
	 {"moe_", "_moe", "moe::", "fusedmoe", "moegemm", "topkgating", "topk_gating", "matmul_ogs", "expert", "grouped_topk",
	  "_routing", "bitmatrix"}},
	{OPS_CATEGORY_CONVOLUTION,
	 {"conv1d", "conv2d", "conv3d", "convolution", "convolve", "asmconv", "conv_fwd", "conv_bwd", "conv_depthwise", "winograd", "fprop",
	  "dgrad", "wgrad", "implicit_gemm", "igemm_fwd", "igemm_bwd", "igemm_wrw", "im2col", "im2d2col", "col2im", "miopensp3", "scudnn"}},
	{OPS_CATEGORY_NORMALISATION,
	 {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "batchnorm", "bn_fw", "bn_bw", "group_norm", "groupnorm",
	  "instance_norm", "instancenorm", "gammabeta", "rowwisemoments", "l2norm", "l2_norm", "norm2d", "fusedparams",
	  "computeinternalgradients"}},
	{OPS_CATEGORY_MATRIX_PRODUCT,
	 {"gemm", "cijk_", "nvjet_", "matmul", "gemv", "splitkreduce", "wvsplitk", "marlin", "bmm_", "_mm_", "dot_kernel", "cutlass",
	  "addmm", "triton_mm"}},
	{OPS_CATEGORY_SOFTMAX, {"softmax"}},
	{OPS_CATEGORY_QUANTISATION, {"quant"}},
	{OPS_CATEGORY_SORT, {"topk", "top_k", "topp", "top_p", "sort", "sampling", "multinomial"}},
	{OPS_CATEGORY_POINTWISE, {"rotary", "masked_fill"}},
	{OPS_CATEGORY_MEMORY,
	 {"direct_copy", "copy_kernel", "copykernel", "catarray", "transpose", "fillfunctor", "fill_kernel", "_and_cache", "unrolled_copy",
	  "copy_device_to_device"}},
	{OPS_CATEGORY_INDEXING, {"index", "gather", "scatter", "embedding"}},
	{OPS_CATEGORY_REDUCTION, {"reduce", "cumsum", "scan", "triton_red_", "triton_per_"}},
	{OPS_CATEGORY_POINTWISE,
	 {"elementwise", "pointwise", "triton_poi_", "act_and_mul", "silu", "gelu", "swiglu", "relu", "dropout", "multi_tensor",
	  "activation"}},
};

/* torch.compile lists what it fused, so the kind of its kernel comes before other words. */
static const struct rule compiled[] = {
	{OPS_CATEGORY_ATTENTION, {"triton_tem_fused_flex_attention", "triton_flex_attention"}},
	{OPS_CATEGORY_CONVOLUTION, {"triton_tem_fused_convolution", "triton_convolution"}},
	{OPS_CATEGORY_MATRIX_PRODUCT, {"triton_tem_", "triton_mm", "triton_bmm"}},
	{OPS_CATEGORY_POINTWISE, {"triton_poi_"}},
};

static bool has_word(struct ops_string name, const struct rule *rule)
{
	for (size_t i = 0; i < sizeof(rule->words) / sizeof(*rule->words) && rule->words[i]; i++)
		if (ops_string_contains(name, rule->words[i]))
			return true;
	return false;
}

static enum ops_category category_by(const struct rule *table, size_t count, struct ops_string name)
{
	for (size_t i = 0; i < count; i++)
		if (has_word(name, &table[i]))
			return table[i].category;
	return OPS_CATEGORY_OTHER;
}

static enum ops_category category_of_kernel(struct ops_string name)
{
	char lower[NAME_MAX_SIZE];
	struct ops_string text = {lower, name.size < sizeof(lower) ? name.size : sizeof(lower)};
	enum ops_category category;

	for (size_t i = 0; i < text.size; i++)
		lower[i] = name.bytes[i] >= 'A' && name.bytes[i] <= 'Z' ? (char)(name.bytes[i] - 'A' + 'a') : name.bytes[i];
	category = category_by(compiled, sizeof(compiled) / sizeof(*compiled), text);
	return category == OPS_CATEGORY_OTHER ? category_by(rules, sizeof(rules) / sizeof(*rules), text) : category;
}

enum ops_category ops_category_of(uint8_t kind, struct ops_string name)
{
	switch (ops_work_of(kind, name)) {
	case OPS_WORK_COMMUNICATION:
		return OPS_CATEGORY_COMMUNICATION;
	case OPS_WORK_COPY:
	case OPS_WORK_SET:
		return OPS_CATEGORY_MEMORY;
	case OPS_WORK_COMPUTE:
		return category_of_kernel(name);
	default:
		return OPS_CATEGORY_OTHER;
	}
}

const char *ops_category_name(enum ops_category category)
{
	static const char *const names[OPS_CATEGORY_COUNT] = {
		"matrix_product", "attention", "experts", "convolution", "normalisation", "softmax", "reduction",
		"pointwise", "indexing", "sort", "quantisation", "memory", "communication", "other"};

	return names[category];
}
