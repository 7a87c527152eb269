// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { type CallNode, callNode, findNodes, flameBoxes, functionRows, nodeAt, pathOf, sandwich, walk } from "../../src/widgets/flame_model";

// main calls f (which calls itself and g) and g.
const inner = callNode("f", 5, [callNode("g", 10)]);
const f = callNode("f", 20, [inner, callNode("h", 5)]);
const g = callNode("g", 30);
const main = callNode("main", 30, [f, g]);
const root = callNode("all", 0, [main]);

test("totals include what is below", () => {
	expect([root.total, main.total, f.total, inner.total]).toEqual([100, 100, 40, 15]);
});

test("boxes are as wide as their time, and narrow ones are merged", () => {
	const boxes = flameBoxes(root, 0.01);
	expect(boxes.map((box) => [box.node.name, box.depth, box.from, box.width])).toContainEqual(["g", 2, 0.4, 0.3]);
	const many = callNode("all", 0, Array.from({ length: 1000 }, (_, i) => callNode(`n${i}`, i === 500 ? 1000 : 1)));
	const drawn = flameBoxes(many, 0.01);
	expect(drawn.map((box) => box.merged).sort((a, b) => a - b)).toEqual([0, 0, 499, 500]);
	expect(drawn.reduce((sum, box) => sum + (box.depth === 1 ? box.width : 0), 0)).toBeCloseTo(1);
});

test("zooming shows a node over the full width, below its ancestors", () => {
	const boxes = flameBoxes(f, 0.01);
	expect(boxes.filter((box) => box.depth < 2).map((box) => [box.node.name, box.width])).toEqual([["all", 1], ["main", 1]]);
	expect(boxes.find((box) => box.node === f)).toMatchObject({ depth: 2, from: 0, width: 1 });
	expect(boxes.some((box) => box.node === g)).toBe(false);
});

test("a search counts the time of what is inside another hit once", () => {
	const found = findNodes(root, "F");
	expect(found.nodes).toEqual(new Set([f, inner]));
	expect(found.total).toBe(40);
	expect(findNodes(root, "").nodes.size).toBe(0);
});

test("functions: self adds up to everything, recursion counts once in total", () => {
	const rows = new Map(functionRows(root).map((row) => [row.name, row]));
	expect(rows.get("f")).toEqual({ name: "f", self: 25, total: 40, places: 2 });
	expect(rows.get("g")).toEqual({ name: "g", self: 40, total: 40, places: 2 });
	expect([...rows.values()].reduce((sum, row) => sum + row.self, 0)).toBe(100);
});

test("the sandwich has all callers above and all callees below", () => {
	const { callers, callees } = sandwich(root, "g");
	expect(callees.total).toBe(40);
	expect(callers.total).toBe(40);
	const above = Object.fromEntries(callers.children.map((node) => [node.name, node.total]));
	expect(above).toEqual({ main: 30, f: 10 });
	const recursive = sandwich(root, "f");
	expect(recursive.callees.total).toBe(40);
	expect(recursive.callers.children.map((node) => node.name)).toEqual(["main"]);
	expect(recursive.callees.children.map((node) => [node.name, node.total])).toEqual([["f", 15], ["h", 5]]);
});

test("a node is found again by its path", () => {
	for (const node of walk(root)) expect(nodeAt(root, pathOf(node))).toBe(node);
	expect(nodeAt(root, [7, 7])).toBeUndefined();
});

test("handles stacks a hundred thousand calls deep", () => {
	let node: CallNode = callNode("leaf", 1);
	for (let i = 0; i < 100_000; i++) node = callNode(i % 2 ? "a" : "b", 0, [node]);
	expect(functionRows(callNode("all", 0, [node])).length).toBe(3);
	expect(flameBoxes(node, 0.01).length).toBeLessThan(600);
	expect(findNodes(node, "leaf").total).toBe(1);
});
