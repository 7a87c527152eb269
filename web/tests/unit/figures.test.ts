// SPDX-License-Identifier: Apache-2.0
// The commands' formatter reads the same examples (tests/analyze/test_format.c).
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatBytes, formatChange, formatMoment, formatNs, formatNumber, formatPercent, formatScaled } from "../../src/format/units";

const FORMATS: Record<string, (figure: number) => string> = {
	duration: formatNs,
	moment: formatMoment,
	bytes: formatBytes,
	percent: formatPercent,
	change: formatChange,
	number: formatNumber,
	count: formatScaled,
};
const kinds = JSON.parse(readFileSync(new URL("../../../tests/analyze/figures.json", import.meta.url), "utf8")) as Record<string, [number, string][]>;

test("figures read as in the output of commands", () => {
	expect(Object.keys(kinds).sort()).toEqual(Object.keys(FORMATS).sort());
	for (const [kind, examples] of Object.entries(kinds)) {
		for (const [figure, text] of examples) expect(FORMATS[kind]!(figure), `${kind} ${figure}`).toBe(text);
	}
});
