// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { differingParts, sharedBeginnings } from "../../src/widgets/name_split";

function split(...names: string[]): string[] {
	const splits = sharedBeginnings(names);
	return names.map((name) => {
		const at = splits.get(name);
		return at === undefined ? name : `${name.slice(0, at)}|${name.slice(at)}`;
	});
}

test("names are split where they begin to differ, at a word", () => {
	expect(split("aten::_flash_attention_forward", "aten::_flash_attention_backward", "aten::mm")).toEqual([
		"aten::_flash_attention_|forward",
		"aten::_flash_attention_|backward",
		"aten::mm",
	]);
	expect(split("cutlass::Kernel2<cutlass_80_bf16_256x128>", "cutlass::Kernel2<cutlass_80_bf16_128x128>")).toEqual([
		"cutlass::Kernel2<cutlass_80_bf16_|256x128>",
		"cutlass::Kernel2<cutlass_80_bf16_|128x128>",
	]);
	// One name is the beginning of the other.
	expect(split("aten::native_layer_norm", "aten::native_layer_norm_backward")).toEqual(["aten::native_layer_|norm", "aten::native_layer_|norm_backward"]);
});

test("names whose words are long differ soon after the split", () => {
	expect(split("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16", "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvSlidingCausalP16")).toEqual([
		"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKv|CausalP16",
		"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKv|SlidingCausalP16",
	]);
	expect(split("kernel_abcdefghijklmnopqrstuvwxyz1", "kernel_abcdefghijklmnopqrstuvwxyz2")).toEqual(["kernel_abcdefghijklmnopqr|stuvwxyz1", "kernel_abcdefghijklmnopqr|stuvwxyz2"]);
});

test("names with the same words after different splits are split at one place", () => {
	expect(split("void at::native::elementwise_kernel<128>", "void at::native::vectorized_elementwise_kernel<8>", "void at::native::vectorized_layer_norm")).toEqual([
		"void at::native::|elementwise_kernel<128>",
		"void at::native::|vectorized_elementwise_kernel<8>",
		"void at::native::vectorized_|layer_norm",
	]);
});

test("sentences are not split", () => {
	expect(split("Communication between ranks limits the speed", "Communication between ranks is slow")).toEqual(["Communication between ranks limits the speed", "Communication between ranks is slow"]);
});

test("short beginnings, one name, and the same name again are not split", () => {
	expect(split("aten::mul", "aten::mul_")).toEqual(["aten::mul", "aten::mul_"]);
	expect(split("a_single_very_long_name_of_a_kernel")).toEqual(["a_single_very_long_name_of_a_kernel"]);
	expect(split("a_long_name_of_a_kernel", "a_long_name_of_a_kernel")).toEqual(["a_long_name_of_a_kernel", "a_long_name_of_a_kernel"]);
});

test("labels have the words in which names differ", () => {
	expect(differingParts(["node-17.example.com_rank3", "node-17.example.com_rank12"])).toEqual(["3", "12"]);
	expect(differingParts(["logs/a1/trace.json", "logs/b12/trace.json"])).toEqual(["a1", "b12"]);
	expect(differingParts(["rank1", "rank10"])).toEqual(["1", "10"]); // not "" and "0"
	expect(differingParts(["rank", "rank-2"])).toEqual(["rank", "rank-2"]);
	expect(differingParts(["a", "a"])).toEqual(["a", "a"]);
	expect(differingParts(["worker0"])).toEqual(["worker0"]);
	expect(differingParts([])).toEqual([]);
});
