// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { axisScale, figureText, tickText } from "../../src/format/scale";
import { grouped, signed } from "../../src/format/units";
import { columnScales } from "../../src/widgets/cells";
import { ticks, ticksBetween } from "../../src/widgets/chart";
import type { Column } from "../../src/widgets/table_model";

test("an axis has one unit, which follows the largest figure", () => {
	expect(axisScale("us", 999)).toMatchObject({ unit: "µs" });
	expect(axisScale("us", 12_345).text(12_345.678)).toBe("12.346");
	expect(axisScale("us", 5e7).unit).toBe("s");
	expect(axisScale("bytes", 1023).text(1023)).toBe("1,023");
	expect(axisScale("bytes", 5 * 1024 ** 3)).toMatchObject({ unit: "GiB" });
	expect(axisScale("share", 1).text(0.12345)).toBe("12.35");
});

test("numbers keep their sign and separate thousands, and other values show", () => {
	expect(grouped(-1234567.891, 2)).toBe("-1,234,567.89");
	expect(grouped(-0.0001, 2)).toBe("0.00");
	expect(grouped(Infinity, 2)).toBe("–");
	expect(grouped(NaN, 2)).toBe("–");
	expect(signed(3, String)).toBe("+3");
	expect(signed(0, String)).toBe("0");
	expect(figureText("flops", 4.2e9)).toBe("4.20 G");
	expect(figureText("share", 0.12345)).toBe("12.3 %");
});

test("ticks are round, and round in powers of two for bytes", () => {
	expect(ticks("us", 190, 4)).toEqual([0, 50, 100, 150, 200]);
	expect(ticks("bytes", 3000, 4)).toEqual([0, 1024, 2048, 3072]);
	expect(ticks("us", 0, 4)).toEqual([0]);
	expect(ticks("us", Infinity, 4)).toEqual([0]);
	expect(tickText(axisScale("us", 2000), 500)).toBe("0.5 ms");
	expect(tickText(axisScale("us", 2000), 0)).toBe("0 ms");
});

test("ticks between two figures begin below the smaller one", () => {
	expect(ticksBetween("us", 985, 1075, 4)).toEqual([975, 1000, 1025, 1050, 1075]);
	expect(ticksBetween("us", 0, 190, 4)).toEqual([0, 50, 100, 150, 200]);
	expect(ticksBetween("us", 0, 0, 4)).toEqual([0]);
});

test("each figure of a column has its own unit", () => {
	const column: Column<number> = { id: "total", title: "Total", kind: "us", value: (row) => row };
	const scale = columnScales([column, { ...column, id: "change", signed: true }], [80_000, 600.4]);
	expect([80_000, 600.4].map(scale.get("total")!.text)).toEqual(["80.0 ms", "600 µs"]);
	expect(scale.get("change")!.text(600.4)).toBe("+600 µs");
	expect(scale.get("total")!.text(null)).toBe("–");
});
