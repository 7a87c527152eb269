// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { sharedBeginnings } from "../../src/widgets/name_split";

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

test("short beginnings, one name, and the same name again are not split", () => {
	expect(split("aten::mul", "aten::mul_")).toEqual(["aten::mul", "aten::mul_"]);
	expect(split("a_single_very_long_name_of_a_kernel")).toEqual(["a_single_very_long_name_of_a_kernel"]);
	expect(split("a_long_name_of_a_kernel", "a_long_name_of_a_kernel")).toEqual(["a_long_name_of_a_kernel", "a_long_name_of_a_kernel"]);
});
