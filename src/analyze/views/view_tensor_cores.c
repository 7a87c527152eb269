/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores: which kernels use them, by name, and the shares of time. The TensorBoard plugin's list of kernels
 * is from 2021; newer names follow. Which operators could use them is in derive/operators.h.
 */
#include <math.h>
#include <string.h>

#include "analyze/views/views.h"
#include "base/text.h"

/* Matches parts of names that kernels without tensor cores also have. All other parts identify the instruction. */
static bool could_be_plain(const char *part)
{
	return !strcmp(part, "xmma_gemm") || !strcmp(part, "xmma_implicit_gemm") || !strcmp(part, "xmma_sparse_gemm") ||
	       !strcmp(part, "xmma_sparse_conv") || !strcmp(part, "conv1x1");
}

/* Matches the sizes of a matrix instruction, "_MI16x16x16x1_", in names of Tensile and hipBLASLt. */
static bool has_matrix_instruction(struct ops_string name)
{
	const char *at = memmem(name.bytes, name.size, "_MI", 3), *end = name.bytes + name.size;

	return at && at + 3 < end && at[3] >= '1' && at[3] <= '9' && memmem(at, (size_t)(end - at), "x", 1);
}

/* Matches kernels on AMD's matrix cores: Tensile and hipBLASLt, Composable Kernel, and kernels that name the
 * instruction. */
static bool uses_matrix_cores(struct ops_string name)
{
	static const char *const parts[] = {"mfma", "MFMA", "_xdl", "Xdl", "xdlops", "wmma", "FmhaFwd", "FmhaBwd", NULL};

	if (ops_string_contains(name, "Cijk_"))
		return has_matrix_instruction(name);
	return ops_string_contains_any(name, parts) ||
	       (ops_string_contains(name, "ck_tile::") && (ops_string_contains(name, "Gemm") || ops_string_contains(name, "Fmha")));
}

bool view_kernel_uses_tensor_cores(struct ops_string name)
{
	/* Parts of cuBLAS and cuDNN names that denote 32-bit input, output and computation. TF32 is
	 * f32f32_tf32f32_f32. */
	static const char *const plain[] = {"f32f32_f32f32_f32", "sgemm", "scudnn", NULL};
	static const char *const parts[] = {
		"h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
		"conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
		"xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
		"nvjet_", "tensorop", "wgmma", "flash_fwd_", "flash_bwd_", "fmha_cutlassF_f16", "fmha_cutlassF_bf16",
		"fmha_cutlassB_f16", "fmha_cutlassB_bf16", "_native_sdpa_sm", "triton_tem_fused_",
		"FlashAttnFwdSm", "FlashAttnBwdSm", /* FlashAttention 3 */
		"attn_fwd", "attn_bwd", "bwd_kernel_dk_dv", "bwd_kernel_dq", /* flash attention in Triton, and AOTriton's for AMD */
		"fmhaSm", "16dp256b", "32dp32b", "tcgen05", /* Blackwell, whose tensor cores have their own memory */
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (ops_string_contains(name, parts[i]))
			return !ops_string_contains_any(name, plain) || !could_be_plain(parts[i]);
	return uses_matrix_cores(name);
}

double view_tensor_cores_used(const struct ops_views *views)
{
	double all_ns = 0, used_ns = 0;

	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		double duration_ns = (double)view_duration(views, event->row);

		if (event->part != VIEW_KERNEL)
			continue;
		all_ns += duration_ns;
		if (views->names[views->events->name[event->row]] & VIEW_NAME_TENSOR_CORES)
			used_ns += duration_ns;
	}
	if (all_ns > 0)
		return used_ns / all_ns;
	return views->has_kernels ? 0 : (double)NAN;
}

double view_tensor_cores_eligible(const struct ops_views *views)
{
	double all_ns = 0, eligible_ns = 0;

	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->kept != i || !view_is_operator(views, node))
			continue;
		all_ns += (double)node->kernel_self_ns;
		if (node->eligible && !node->eligible_below)
			eligible_ns += (double)node->kernel_self_ns;
	}
	return all_ns > 0 ? eligible_ns / all_ns : 0;
}

bool view_write_tensor_cores(const struct ops_views *views, struct ops_json_writer *json)
{
	ops_json_member_open(json, "tensor_cores", '{');
	ops_json_member_number(json, "used_ratio", view_tensor_cores_used(views));
	ops_json_member_number(json, "eligible_ops_kernel_ratio", view_tensor_cores_eligible(views));
	ops_json_close(json, '}');
	return true;
}
