// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { kernelNames } from "../../src/format/kernel_name";

const elementwise = (functor: string, arrays: string) => ({
	name: `void at::native::vectorized_elementwise_kernel<4, ${functor}, std::array<char*, ${arrays}> >(int, ${functor}, std::array<char*, ${arrays}>)`,
	short_name: "at::native::vectorized_elementwise_kernel",
});
const gelu = "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)";

function shown(...kernels: { name: string; short_name: string }[]): (string | undefined)[] {
	const names = kernelNames(kernels);
	return kernels.map(({ name }) => names.get(name));
}

test("a kernel is shown without namespaces, arguments and parameters", () => {
	const name = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)";
	expect(shown({ name, short_name: "at::native::vectorized_layer_norm_kernel" })).toEqual(["vectorized_layer_norm_kernel"]);
	expect(shown({ name: "sm90_xmma_gemm_bf16", short_name: "sm90_xmma_gemm_bf16" })).toEqual(["sm90_xmma_gemm_bf16"]);
});

test("kernels of one template are shown with their arguments", () => {
	expect(shown(elementwise("at::native::CUDAFunctor_add<c10::BFloat16>", "3ul"), elementwise(`${gelu}#1}`, "2ul"))).toEqual([
		"vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, array<char*, 3ul>>",
		"vectorized_elementwise_kernel<4, GeluCUDAKernelImpl(TensorIteratorBase&, GeluType), array<char*, 2ul>>",
	]);
	const cutlass = (kind: string) => ({ name: `void cutlass::Kernel2<cutlass_80_${kind}>(cutlass_80_${kind}::Params)`, short_name: "cutlass::Kernel2" });
	expect(shown(cutlass("s16816gemm_bf16"), cutlass("s16816gemm_relu_bf16"))).toEqual(["cutlass_80_s16816gemm_bf16", "cutlass_80_s16816gemm_relu_bf16"]);
});

test("different kernels have different names", () => {
	const [a, b] = [elementwise(`${gelu}#1}`, "2ul"), elementwise(`${gelu}#2}`, "2ul")];
	const names = shown(a, b, { name: "void a::f<int>()", short_name: "a::f" }, { name: "void b::f<int>()", short_name: "b::f" });
	expect(new Set(names).size).toBe(4);
	expect(names.slice(2)).toEqual(["void a::f<int>()", "void b::f<int>()"]);
});
