// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { type CommonStep, typicalStep } from "../../src/timeline/align";

const step = (name: string, ...durations: number[]): CommonStep => ({
	name,
	of: durations.map((duration) => ({ name, start_ns: 5, end_ns: 5 + duration, row: null })),
});

test("the typical step is the first one nearest to the median", () => {
	expect(typicalStep([])).toBeUndefined();
	expect(typicalStep([step("0", 900), step("1", 100), step("2", 110), step("3", 110), step("4", 90)])?.name).toBe("2");
	expect(typicalStep([step("0", 10), step("1", 20)])?.name).toBe("0");
	// Of two ranks the longer one counts.
	expect(typicalStep([step("0", 10, 500), step("1", 10, 90), step("2", 80, 20)])?.name).toBe("1");
});
