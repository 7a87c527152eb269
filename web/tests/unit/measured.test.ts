// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { measuredText } from "../../src/format/measured";

const MEASURED = { fix: "gc-off", gain_ms_per_step: 1, gain_percent: 31.24, gain_lower_percent: 29, gain_upper_percent: 33.1, results: "equal" } as const;

test("a measured gain says its sign and its interval", () => {
	expect(measuredText(MEASURED)).toBe("measured: saves 31.2 % of a step (29.0 % to 33.1 %), results equal [gc-off]");
	const costs = { ...MEASURED, gain_percent: -4, gain_lower_percent: -5, gain_upper_percent: -3, results: "changed" } as const;
	expect(measuredText(costs)).toBe("measured: costs 4.00 % of a step (3.00 % to 5.00 %), results changed [gc-off]");
	expect(measuredText({ ...MEASURED, gain_lower_percent: -1 })).toContain("no difference found (");
});
