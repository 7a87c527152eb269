// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { TimelineReply } from "../../src/timeline/api";
import { Geometry } from "../../src/timeline/geometry";
import { Fitter, shortName } from "../../src/timeline/labels";
import { FOLDED, GAP, layOut, LINE, visibleDepths, visibleItems } from "../../src/timeline/layout";
import { CLASSES, classOf, contrast, Palette, parseColor } from "../../src/timeline/palette";

const track = (id: number, group: number, depths: number) =>
	({ id, group, kind: "thread", label: `t${id}`, tid: id, depths, folded_depths: depths, events: 1, start_ns: 0, end_ns: 1 }) as const;
const timeline: TimelineReply = {
	origin_ns: "0",
	duration_ns: 1000,
	events: 3,
	lost: 0,
	wrappers: 0,
	tile_bins: 512,
	band_depths: 64,
	level_min: 9,
	level_max: 10,
	kinds: ["cpu_op"],
	groups: [
		{ id: 0, kind: "process", label: "p" },
		{ id: 1, kind: "device", label: "d" },
		{ id: 2, kind: "other", label: "empty" },
	],
	tracks: [track(0, 0, 3), track(1, 0, 100), track(2, 1, 1)],
	counters: [
		{ id: 0, group: 1, label: "memory", unit: "bytes", min: 0, max: 9 },
		{ id: 1, group: null, label: "loose", unit: "", min: 0, max: 9 },
	],
	steps: [],
	opening: null,
};

describe("the layout", () => {
	test("lays out groups, tracks and counters below each other, devices first", () => {
		const { items, height } = layOut([{ number: 0, timeline }], new Set(), []);
		expect(items.map((item) => item.key)).toEqual(["g1", "t2", "c0", "g0", "t0", "t1", "g-1", "c1"]);
		let y = 0;
		for (const item of items) {
			expect(item.y).toBe(y);
			y += item.height;
		}
		expect(height).toBe(y);
		expect(items[4]!.height).toBe(3 * LINE + GAP);
	});

	test("what is folded takes one line, a folded group only its title", () => {
		const { items } = layOut([{ number: 0, timeline }], new Set(["t1", "g1"]), []);
		expect(items.map((item) => item.key)).toEqual(["g1", "g0", "t0", "t1", "g-1", "c1"]);
		expect(items[3]!.height).toBe(FOLDED + GAP);
	});

	test("pinned tracks are also at the top, whatever is folded around them", () => {
		const { pinned, pinnedHeight, items } = layOut([{ number: 0, timeline }], new Set(["g1"]), ["c0", "t2", "t99", "nonsense"]);
		expect(pinned.map((item) => item.key)).toEqual(["c0", "t2"]);
		expect(pinnedHeight).toBe(pinned[0]!.height + pinned[1]!.height);
		expect(items.some((item) => item.key === "t2")).toBe(false);
	});

	test("names what it shows", () => {
		const { items } = layOut([{ number: 0, timeline }], new Set(), []);
		const second = items[4]!;
		expect(visibleItems(items, second.y, second.y + 1).map((item) => item.key)).toEqual(["t0"]);
		expect(visibleItems(items, 0, 1e9).length).toBe(items.length);
		expect(visibleItems(items, 1e9, 2e9)).toEqual([]);
		const deep = items[5]!;
		if (deep.type !== "track") throw new Error("t1 is a track");
		expect(visibleDepths(deep, 0, 10)).toEqual([0, 1]);
		expect(visibleDepths(deep, 5 * LINE, 7 * LINE)).toEqual([5, 7]);
		expect(visibleDepths(deep, -100, 1e9)).toEqual([0, 100]);
	});

	test("the geometry leads from time and line to a point and back", () => {
		const layout = layOut([{ number: 0, timeline }], new Set(), ["t2"]);
		const geometry = new Geometry({ from: 100, to: 300 }, 1000, 600, layout, 40, true);
		expect(geometry.x(200)).toBe(500);
		expect(geometry.time(500)).toBe(200);
		expect(geometry.nsPerPixel).toBeCloseTo(0.2, 12);
		const line = geometry.line(1, 7)!;
		expect(geometry.at(line.top + 1)).toMatchObject({ item: { key: "t1" } });
		expect(geometry.line(2, 0)).toMatchObject({ pinned: true, top: geometry.pinnedTop });
		expect(geometry.line(99, 0)).toBeUndefined();
		expect(geometry.at(5)).toBeUndefined();
	});
});

describe("names on boxes", () => {
	test.each([
		["nn.Module: Linear_0", "Linear_0"],
		["torch/nn/modules/linear.py(114): forward", "forward  linear.py:114"],
		["void at::native::(anonymous namespace)::sum_kernel<4>(int)", "sum_kernel<4>(int)"],
		["at::native::copy", "copy"],
		["<built-in function len>", "<built-in function len>"],
		["", ""],
	])("%j is shown as %j", (name, shown) => {
		expect(shortName(name)).toBe(shown);
	});

	test("are cut to the width of the box, or left out", () => {
		const fitter = new Fitter((text) => text.length * 6);
		expect(fitter.fit("aten::linear", 72)).toBe("aten::linear");
		expect(fitter.fit("aten::linear", 71)).toBe("aten::line…");
		expect(fitter.fit("aten::linear", 24)).toBe("ate…");
		expect(fitter.fit("aten::linear", 23)).toBe("");
		expect(fitter.fitName("aten::linear", 72)).toBe("aten::linear");
		expect(fitter.fitName("aten::linear", 71)).toBe("linear");
		expect(fitter.fitName("aten::linear", 30)).toBe("line…");
		expect(fitter.fitName("plain name", 30)).toBe("plai…");
		expect(fitter.fit("", 0)).toBe("");
	});
});

describe("colours", () => {
	/** The variables of a theme, from the style sheet itself. */
	function variables(theme: "light" | "dark"): (name: string) => string {
		const sheet = readFileSync(new URL("../../src/style/theme.css", import.meta.url), "utf8");
		const [light, dark] = sheet.split(':root[data-theme="dark"]') as [string, string];
		return (name) => /#[0-9a-f]{6}/.exec(new RegExp(`${name}: (.*);`).exec(theme === "dark" ? dark : light)![1]!)![0];
	}

	test.each(["light", "dark"] as const)("text on a box has a contrast of 4.5 or more (%s)", (theme) => {
		const variable = variables(theme);
		const palette = new Palette(variable, theme);
		const text = parseColor(palette.text);
		for (let i = 0; i < 400; i++) {
			for (const of of CLASSES) {
				for (const mode of ["kind", "name"] as const) {
					expect(contrast(palette.color(of, `name ${i}`, mode), text)).toBeGreaterThanOrEqual(4.5);
				}
			}
		}
	});

	test.each(["light", "dark"] as const)("text beside the boxes as well (%s)", (theme) => {
		const variable = variables(theme);
		for (const surface of ["--page", "--surface", "--surface-raised", "--surface-hover"]) {
			for (const text of ["--text", "--text-soft", "--accent", "--bad"]) {
				expect([surface, text, contrast(parseColor(variable(surface)), parseColor(variable(text))) >= 4.5]).toEqual([
					surface,
					text,
					true,
				]);
			}
		}
	});

	test("distinguish kinds, modules and communication", () => {
		expect(classOf("cpu_op", "aten::mm")).toBe("operator");
		expect(classOf("python_function", "nn.Module: Linear_0")).toBe("module");
		expect(classOf("python_function", "train.py(1): main")).toBe("python");
		expect(classOf("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")).toBe("communication");
		expect(classOf("user_annotation", "gloo:all_reduce")).toBe("communication");
		expect(classOf("something new", "x")).toBe("other");
	});
});
