/* SPDX-License-Identifier: Apache-2.0
 *
 * Categories of kernels by names of NVIDIA's, AMD's and servers' libraries, torch and torch.compile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "derive/categories.h"

struct expected {
	const char *category;
	const char *names[24];
};

static const struct expected kernels[] = {
	{"matrix_product",
	 {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
	  "nvjet_tst_64x64_h_bz_bias_TNT", "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>",
	  "void cublasLt::splitKreduce_kernel<32, 16, int, float>", "void gemv2T_kernel_val<int, int, float, float, float, float>",
	  "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT448x32x64_MI16x16x1", "Cijk_Ailk_Bljk_SB_MT64x64x8_SN_K1",
	  "_ZN7ck_tile6kentryILi1ENS_10GemmKernelIS1_EEJEEEvDpT1_", "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8>",
	  "bmm_Bfloat16_MxE4m3_MxE4m3_Fp32_dynBatch_sm100f", "triton_tem_fused_addmm_3", "triton_mm_kernel", "void marlin::Marlin<256, 1, 8>"}},
	{"attention",
	 {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>",
	  "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)", "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvDenseP32",
	  "kernel_unified_attention_3d", "void vllm::paged_attention_v2_kernel<__half>", "_ZN5aiter30fmha_fwd_hd128_bf16_causal_rtneE",
	  "attn_fwd.kd", "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2, 8>", "triton_tem_fused_flex_attention_0"}},
	{"experts",
	 {"fused_moe_kernel", "void vllm::moe::topkGating<8, 32>", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
	  "void moe::dev::finalize::finalizeKernel", "_ZN2ck19kernel_moe_gemm_2lds", "_combined_routing_compute", "_sum_bitmatrix_rows", "void vllm::moe::moe_align_block_size_kernel<int>"}},
	{"convolution",
	 {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "void cudnn::cnn::wgrad2d_grouped_direct_kernel",
	  "void cudnn::winograd_nonfused::winogradForwardFilter4x4", "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1",
	  "cudnn_volta_scudnn_128x64_stridedB_splitK_xregs_large_nn_v1", "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt256x128x32", "Im2d2Col_v2", "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd>",
	  "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3>"}},
	{"normalisation",
	 {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "void vllm::rms_norm_kernel<c10::BFloat16>",
	  "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512>", "MIOpenBatchNormFwdTrainSpatial",
	  "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", "triton_red_fused_native_layer_norm_2",
	  "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>", "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdIS1_EEJEEEvDpT1_"}},
	{"softmax", {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 9>", "void at::native::cunn_SoftMaxForward<4, float>"}},
	{"reduction",
	 {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>",
	  "void at::native::tensor_kernel_scan_innermost_dim<float>", "triton_per_fused_sum_3", "triton_red_fused_mean_1"}},
	{"pointwise",
	 {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "triton_poi_fused_convolution_relu_4",
	  "triton_poi_fused__to_copy_1", "void vllm::act_and_mul_kernel<c10::BFloat16>", "void at::native::elementwise_kernel<128, 4, at::native::masked_fill_kernel>", "void vllm::rotary_embedding_kernel<c10::BFloat16>",
	  "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedAdam>"}},
	{"indexing",
	 {"void at::native::index_elementwise_kernel<128, 4>", "void at::native::vectorized_gather_kernel<16, long>",
	  "void at::native::_scatter_gather_elementwise_kernel<128, 8>", "void at::native::indexSelectLargeIndex<float>"}},
	{"sort",
	 {"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>", "void cub::DeviceRadixSortOnesweepKernel<int>",
	  "void flashinfer::sampling::TopPSamplingFromProbKernel", "void rocprim::detail::onesweep_iteration_sort"}},
	{"quantisation",
	 {"void vllm::scaled_fp8_quant_kernel<c10::BFloat16>", "per_token_group_quant_8bit_kernel", "void aiter::dynamic_per_group_scaled_quant_kernel"}},
	{"memory",
	 {"Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "__amd_rocclr_copyBuffer", "CopyHostToDevice",
	  "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>", "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>",
	  "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>",
	  "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"}},
	{"communication", {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "void vllm::cross_device_reduce_1stage<__half, 8>", "rcclGenericKernel"}},
	{"other", {"mine", "", "upsample_bilinear2d_out_frame", "prefill_positions"}},
};

static void names_have_a_category(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		for (const char *const *name = kernels[i].names; *name; name++) {
			const char *found = ops_category_name(ops_category_of(OPS_EVENT_KERNEL, ops_string_of(*name)));

			if (strcmp(found, kernels[i].category) != 0)
				fail_msg("'%s' is %s, not %s", *name, found, kernels[i].category);
		}
}

static void the_kind_of_an_event_decides_first(void **state)
{
	(void)state;
	assert_int_equal(ops_category_of(OPS_EVENT_GPU_MEMCPY, ops_string_of("gemm")), OPS_CATEGORY_MEMORY);
	assert_int_equal(ops_category_of(OPS_EVENT_GPU_MEMSET, ops_string_of("x")), OPS_CATEGORY_MEMORY);
	assert_int_equal(ops_category_of(OPS_EVENT_SYNC, ops_string_of("gemm")), OPS_CATEGORY_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_a_category),
		cmocka_unit_test(the_kind_of_an_event_decides_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
