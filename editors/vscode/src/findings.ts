// SPDX-License-Identifier: Apache-2.0
// What `opstrobe advise --format json` finds, as the panels show it.

import type { Finding, Where } from "../../../web/src/data/replies";

/** "saves about 12 % of a step", or nothing where no gain is told. */
export function gainOf({ predicted_gain_percent: percent, predicted_gain_bound: bound }: Finding): string {
	return percent === null || percent <= 0 ? "" : `saves ${bound} ${percent.toFixed(percent < 10 ? 1 : 0)} % of a step`;
}

/** "train.py:12 in step", as much of it as is known. */
export function placeName(place: Where): string {
	const file = place.file?.replace(/^.*[/\\]/, "");
	const at = file === undefined ? undefined : place.line === null ? file : `${file}:${place.line}`;
	const what = place.operator ?? place.module ?? place.function;
	return [at, what ?? undefined].filter((part) => part !== undefined).join("  ") || "somewhere";
}

/** The text of a problem: what, how much, what to do. */
export function problemOf(finding: Finding): string {
	const gain = gainOf(finding);
	return `${finding.title}${gain ? ` (${gain})` : ""}\n${finding.advice}`;
}

/** Links come out of rules, but only what leads to the web is one. */
export function webLink(finding: Finding): string | undefined {
	return finding.links.find((link) => /^https?:\/\//.test(link));
}
