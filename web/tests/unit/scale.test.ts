// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { axisScale, formatNumber, grouped, scaleOf, signed, tickText } from "../../src/format/scale";
import { columnScales } from "../../src/widgets/cells";
import { ticks, ticksBetween } from "../../src/widgets/chart";
import type { Column } from "../../src/widgets/table_model";

test("a scale's unit follows the largest figure", () => {
	expect(scaleOf("us", 9_999)).toMatchObject({ unit: "µs" });
	expect(scaleOf("us", 12_345).text(12_345.678)).toBe("12.346");
	expect(scaleOf("us", 5e7).unit).toBe("s");
	expect(scaleOf("bytes", 1023).text(1023)).toBe("1\u202f023");
	expect(scaleOf("bytes", 5 * 1024 ** 3)).toMatchObject({ unit: "GiB" });
	expect(scaleOf("share", 1).text(0.12345)).toBe("12.35");
});

test("numbers keep their sign and separate thousands, and other values show", () => {
	expect(grouped(-1234567.891, 2)).toBe("−1\u202f234\u202f567.89");
	expect(grouped(-0.0001, 2)).toBe("0.00");
	expect(grouped(Infinity, 2)).toBe("∞");
	expect(grouped(NaN, 2)).toBe("–");
	expect(formatNumber(0.000012)).toBe("1.200e-5");
	expect(formatNumber(12.3456)).toBe("12.35");
	expect(formatNumber(42)).toBe("42");
	expect(signed(3, String)).toBe("+3");
	expect(signed(0, String)).toBe("0");
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

test("columns about as large have one unit", () => {
	const column = (id: string): Column<Record<string, number>> => ({ id, title: id, kind: "us", value: (row) => row[id] ?? null });
	const scales = columnScales([column("mean"), column("total"), column("longest")], [{ total: 80_000, longest: 1_017, mean: 600 }]);
	expect(scales.get("total")!.unit).toBe("ms");
	expect(scales.get("longest")!.unit).toBe("µs");
	expect(scales.get("mean")!.unit).toBe("µs");
});
