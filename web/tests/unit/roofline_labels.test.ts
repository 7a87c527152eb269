// SPDX-License-Identifier: Apache-2.0
// Labels of ceilings that are close together.
import { expect, test } from "vitest";
import { placeLabels } from "../../src/widgets/roofline_chart";

/** Places ceilings by the height of their lines. */
function placed(...lines: number[]): [number, number][] {
	const ceilings = lines.map((line) => ({ title: String(line), flops: 1000 - line }));
	return placeLabels(ceilings, (flops) => 1000 - flops).map(({ ceiling, at }) => [1000 - ceiling.flops, at]);
}

test("labels of ceilings are above their lines", () => {
	expect(placed(200, 100)).toEqual([[100, 95], [200, 195]]);
});

test("of two ceilings close together, the lower has its label below", () => {
	expect(placed(100, 103)).toEqual([[100, 95], [103, 117]]);
});

test("a label that would be on another one or on a line is left out", () => {
	expect(placed(100, 101, 102, 116)).toEqual([[100, 95], [116, 130]]);
	expect(placed(100, 100.5, 101, 300)).toEqual([[100, 95], [100.5, 114.5], [300, 295]]);
});
