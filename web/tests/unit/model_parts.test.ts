// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Module } from "../../src/data/replies";
import { HEATS, modelParts, openDepth, type Part, selfOf, totalOf } from "../../src/views/model_parts";

const CPU = HEATS[0]!;
const NO_COSTS = { host_ns: 0, backward_ns: 0, device_ns: 0, backward_device_ns: 0, flops: 0, backward_flops: 0 };
const NO_MEMORY = { cpu_allocated_bytes: 0, cpu_memory_bytes: 0, device_allocated_bytes: 0, device_memory_bytes: 0 };

function module(path: string, parent: number | null, firstCall: number | null, hostNs = 0, parameters = 0): Module {
	const total = { ...NO_COSTS, ...NO_MEMORY, host_ns: hostNs };
	const name = path.slice(path.lastIndexOf(".") + 1).replace(/\d+/, "");
	return {
		name: `nn.Module: ${path}`,
		path,
		class: name === "" ? "Block" : `Class_${name}`,
		parent,
		depth: 0,
		modules: 1,
		calls: firstCall === null ? 0 : 1,
		first_call: firstCall,
		total,
		self: total,
		step_ns: hostNs,
		share: null,
		cpu_peak_bytes: 0,
		device_peak_bytes: 0,
		parameter_count: parameters,
		parameter_bytes: 0,
	};
}

/** A model with `blocks` equal blocks of two modules, between an embedding that is defined last and a head. */
function transformer(blocks: number): Module[] {
	const modules = [module("net", null, 0, 1e6 * blocks + 3e6), module("layers", 0, 2, 1e6 * blocks)];
	for (let i = 0; i < blocks; i++) {
		const at = modules.length;
		modules.push(module(`layers.${i}`, 1, 2 + 3 * i, 1e6, 10));
		modules.push(module(`layers.${i}.mlp`, at, 4 + 3 * i, 4e5, 5), module(`layers.${i}.attn`, at, 3 + 3 * i, 5e5, 5));
	}
	modules.push(module("spare", 0, null), module("head", 0, 9999, 1e6), module("embed", 0, 1, 2e6));
	return modules;
}

const texts = (parts: readonly Part[]): unknown[] => parts.map((part) => [part.modules.map((each) => each.path).join(" "), ...(part.children.length > 0 ? [texts(part.children)] : [])]);

test("children are in order of their first calls, equal neighbours are one part", () => {
	expect(texts(modelParts(transformer(3), true, new Set()))).toEqual([
		["net", [["embed"], ["layers", [["layers.0 layers.1 layers.2", [["layers.0.attn layers.1.attn layers.2.attn"], ["layers.0.mlp layers.1.mlp layers.2.mlp"]]]]], ["head"]]],
	]);
});

test("blocks are shown one by one where that is wanted", () => {
	const modules = transformer(2);
	const each = ["layers.0", [["layers.0.attn"], ["layers.0.mlp"]]];
	const other = ["layers.1", [["layers.1.attn"], ["layers.1.mlp"]]];
	const expected = [["net", [["embed"], ["layers", [each, other]], ["head"]]]];
	expect(texts(modelParts(modules, false, new Set()))).toEqual(expected);
	expect(texts(modelParts(modules, true, new Set(["2"])))).toEqual(expected);
});

test("blocks that differ are not folded", () => {
	const modules = transformer(3);
	modules[5] = { ...modules[5]!, parameter_count: 11 }; // layers.1
	const layers = modelParts(modules, true, new Set())[0]!.children[1]!;
	expect(layers.children.map((part) => part.modules.length)).toEqual([1, 1, 1]);
});

test("what parts take adds up to the model", () => {
	const roots = modelParts(transformer(32), true, new Set());
	const add = (parts: readonly Part[]): number => parts.reduce((sum, part) => sum + selfOf(part, CPU) + add(part.children), 0);
	expect(totalOf(roots[0]!, CPU)).toBeCloseTo(35e3);
	expect(add(roots)).toBeCloseTo(35e3);
});

test("as many levels are open at first as give few boxes", () => {
	const folded = modelParts(transformer(32), true, new Set());
	expect(openDepth(folded, 40)).toBe(3);
	expect(openDepth(modelParts(transformer(32), false, new Set()), 40)).toBe(2);
	expect(openDepth(modelParts(transformer(100), false, new Set()), 40)).toBe(1);
});
