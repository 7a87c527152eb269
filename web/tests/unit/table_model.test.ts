// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { type Column, filterProblem, parseFilter, parseOrder, sortRows, tableLines, toCsv, totalOf, treeLines } from "../../src/widgets/table_model";

interface Row {
	name: string;
	us: number | null;
	bytes: number;
}

const columns: Column<Row>[] = [
	{ id: "name", title: "Name", kind: "text", value: (row) => row.name },
	{ id: "self", title: "Self CPU", kind: "us", value: (row) => row.us },
	{ id: "size", title: "Size", kind: "bytes", value: (row) => row.bytes },
];
const rows: Row[] = [
	{ name: "aten::add", us: 1500, bytes: 4096 },
	{ name: "aten::mul", us: null, bytes: 10 },
	{ name: "Add, \"quoted\"", us: 20, bytes: 3 * 1024 * 1024 },
	{ name: "conv10", us: 20, bytes: 0 },
	{ name: "conv9", us: 20, bytes: 0 },
];
const names = (list: readonly Row[]) => list.map((row) => row.name);
const filtered = (text: string) => names(rows.filter(parseFilter(text, columns)));

test("rows without a figure come last in either order, equal ones stay in place", () => {
	expect(names(sortRows(rows, columns, parseOrder("-self")))).toEqual(["aten::add", 'Add, "quoted"', "conv10", "conv9", "aten::mul"]);
	expect(names(sortRows(rows, columns, parseOrder("self"))).at(-1)).toBe("aten::mul");
	expect(names(sortRows(rows, columns, parseOrder("name")))).toEqual(["Add, \"quoted\"", "aten::add", "aten::mul", "conv9", "conv10"]);
	expect(names(sortRows(rows, columns, parseOrder("nothing")))).toEqual(names(rows));
});

test("F27: a filter takes words in any case, leaves out, and compares figures with units", () => {
	expect(filtered("ADD")).toEqual(["aten::add", 'Add, "quoted"']);
	expect(filtered("add -aten")).toEqual(['Add, "quoted"']);
	expect(filtered('"add, "')).toEqual(['Add, "quoted"']);
	expect(filtered("self>1ms")).toEqual(["aten::add"]);
	expect(filtered("cpuself<=20")).toEqual(['Add, "quoted"', "conv10", "conv9"]);
	expect(filtered("selfcpu<=20")).toEqual(['Add, "quoted"', "conv10", "conv9"]);
	expect(filtered("size>=4KiB")).toEqual(["aten::add", 'Add, "quoted"']);
	expect(filtered("-size>0")).toEqual(["conv10", "conv9"]);
	expect(filtered("nothing>5")).toEqual([]); // no such column: words
	expect(filtered("self > 1ms")).toEqual(["aten::add"]);
	expect(filtered("add -size >=4KiB")).toEqual([]);
	expect(filtered("   ")).toHaveLength(rows.length);
	expect(filtered('"')).toHaveLength(rows.length);
});

test("a filter says what is wrong with a comparison", () => {
	expect(filterProblem("self>1ms -size<2MB add", columns)).toBe(undefined);
	expect(filterProblem("void reduce_kernel<4, float>(int)", columns)).toBe(undefined); // a name
	expect(filterProblem('"nothing>5"', columns)).toBe(undefined);
	expect(filterProblem("nothing>5", columns)).toMatch("No column 'nothing' with figures (choose from Self_CPU, Size)");
	expect(filterProblem("self>abc", columns)).toMatch("'abc' is not a number: write for example Self_CPU>1ms");
	expect(filterProblem("nothing > 5", columns)).toMatch("No column 'nothing' with figures");
	expect(filterProblem("self>", columns)).toMatch("'self>' has no number");
	expect(filterProblem("self >", columns)).toMatch("'self>' has no number");
});

test("a comparison names a column by any word of its title", () => {
	const us = (id: string, title: string, factor: number): Column<Row> => ({ id, title, kind: "us", value: (row) => row.us && row.us * factor });
	const several = [us("self", "Self CPU", 1), us("host_total", "CPU total", 2), us("host", "Mean CPU time", 3)];
	expect(names(rows.filter(parseFilter("self>=1.5ms", several)))).toEqual(["aten::add"]);
	expect(names(rows.filter(parseFilter("total=40", several)))).toEqual(['Add, "quoted"', "conv10", "conv9"]);
	expect(names(rows.filter(parseFilter("cpu_total=40", several)))).toEqual(['Add, "quoted"', "conv10", "conv9"]);
	expect(names(rows.filter(parseFilter("cpu_time=60", several)))).toEqual(['Add, "quoted"', "conv10", "conv9"]);
	expect(filterProblem("self>5MB", columns)).toMatch("Invalid unit 'MB' (choose from ns, us, µs, ms, s)");
});

test("groups sum times and bytes, are sorted by their sums, and can be closed", () => {
	const family: Column<Row> = { id: "family", title: "Family", kind: "text", groups: true, value: (row) => (row.name.startsWith("conv") ? "conv" : "rest") };
	const all = [...columns, family];
	const lines = tableLines(rows, all, parseOrder("self"), family, new Set());
	expect(lines.map((line) => line.group?.title ?? line.row?.name)).toEqual(["conv", "conv10", "conv9", "rest", 'Add, "quoted"', "aten::add", "aten::mul"]);
	expect(lines[0]!.group!.cells.get("self")).toBe(40);
	expect(lines[3]!.group!.count).toBe(3);
	expect(tableLines(rows, all, undefined, family, new Set(["rest"]))).toHaveLength(4);
	expect(totalOf({ ...columns[1]!, total: "max" }, rows)).toBe(1500);
	expect(totalOf(columns[1]!, [])).toBe(null);
});

interface Node {
	name: string;
	below: Node[];
}
const text: Column<Node>[] = [{ id: "name", title: "Name", kind: "text", value: (node) => node.name }];

test("a tree shows what is open; a filter shows what matches and what holds it", () => {
	const tree: Node[] = [{ name: "b", below: [{ name: "leaf", below: [] }, { name: "x", below: [] }] }, { name: "a", below: [] }];
	const shown = (filter?: string, order = "") =>
		treeLines(tree, (node) => node.below, text, parseOrder(order), (_, depth) => depth < 1, filter === undefined ? undefined : parseFilter(filter, text)).map((line) => `${line.depth}${line.row!.name}`);
	expect(shown()).toEqual(["0b", "1leaf", "1x", "0a"]);
	expect(shown(undefined, "name")).toEqual(["0a", "0b", "1leaf", "1x"]);
	expect(shown("leaf")).toEqual(["0b", "1leaf"]);
});

test("handles a tree a hundred thousand levels deep", () => {
	let node: Node = { name: "end", below: [] };
	for (let i = 0; i < 100_000; i++) node = { name: "n", below: [node] };
	expect(treeLines([node], (each) => each.below, text, undefined, () => true)).toHaveLength(100_001);
	expect(treeLines([node], (each) => each.below, text, undefined, () => false, parseFilter("end", text))).toHaveLength(100_001);
});

test("CSV quotes what needs it and lets no name be a formula", () => {
	const odd: Row[] = [{ name: "=1+1", us: -1.5, bytes: 1 }, { name: 'a "b"\nc', us: null, bytes: 2 }];
	expect(toCsv(odd, columns)).toBe('Name,Self CPU (us),Size (bytes)\r\n\'=1+1,-1.5,1\r\n"a ""b""\nc",,2\r\n');
});
