// SPDX-License-Identifier: Apache-2.0
//
// The findings of `opstrobe advise --format json`, in the form shown by the panels.

import type { AdviceReply, Finding, NotExplainedTime, Where } from "../../../web/src/data/replies";
import { libraryLine } from "../../../web/src/format/library_line";
import { formatPercent } from "../../../web/src/format/units";

/** Returns "saves about 12 % of a step, between 5 % and 45 %", or an empty text if there is no predicted gain. */
export function gainOf({ predicted_gain_percent: percent, predicted_gain_bound: bound, predicted_gain_interval: interval, predicted_gain_warning: warning }: Finding): string {
	return percent === null || percent <= 0 ? "" : `saves ${bound} ${formatPercent(percent)} of a step${interval ? `, ${interval}` : ""}${warning ? `; ${warning}` : ""}`;
}

/** Returns "train.py:12 in step", as far as known. */
export function placeName(place: Where): string {
	const file = place.file?.replace(/^.*[/\\]/, "");
	const at = file === undefined ? undefined : place.line === null ? file : `${file}:${place.line}`;
	const what = place.operator ?? place.module ?? place.function;
	return [at, what ?? undefined].filter((part) => part !== undefined).join("  ") || "somewhere";
}

/** A place of a finding, or a line whose time no finding explains, with its `text`. */
export interface Place {
	place: Where;
	text?: string;
}

/** Returns the roots of the tree: the findings, and the time that none of them explains. */
export function topOf({ findings, not_explained: rest }: AdviceReply): (Finding | NotExplainedTime)[] {
	return rest === null ? findings : [...findings, rest];
}

export function childrenOf(node: Finding | NotExplainedTime | Place): Place[] {
	if ("lines" in node) return node.lines.map((line) => ({ place: { ...line, through: [] }, text: line.text }));
	return "where" in node ? node.where.map((place) => (place.through.length > 0 ? { place, text: throughText(place) } : { place })) : [];
}

/** Returns the lines of libraries that a place calls. */
function throughText({ through }: Where): string {
	return through.map((line) => `through ${libraryLine(line)}`).join("\n");
}

/** Returns the text of a problem: what, how much, what to do. */
export function problemOf(finding: Finding): string {
	const gain = gainOf(finding);
	return `${finding.title}${gain ? ` (${gain})` : ""}\n${finding.advice}`;
}

/** Links come from the rules. Only web links are accepted. */
export function webLink(finding: Finding): string | undefined {
	return finding.links.find((link) => /^https?:\/\//.test(link));
}
