// SPDX-License-Identifier: Apache-2.0
// The timeline in the page's address: what someone else must see who opens the link. Times are ns since the origin.
import type { Params } from "../app/route";
import { foldedAtFirst, type TimelineState } from "./state";
import { clampSpan, type Span } from "./viewport";

const NAMES = ["from", "to", "event", "range", "q", "pin", "fold", "marks", "color", "arrows", "path"] as const;

/** What of an address is the timeline's: the rest belongs to the tables below it. */
export function ownText(params: ReadonlyMap<string, string>): string {
	return JSON.stringify(NAMES.map((name) => params.get(name) ?? null));
}

/** What a link to the timeline says. Links of other views (widgets/links.tsx) set the first three, or `q`. */
export function paramsOf(state: TimelineState): Record<(typeof NAMES)[number], Params[string]> {
	const { from, to } = state.span.value;
	const all = from <= state.whole.from && to >= state.whole.to;
	const range = state.range.value;
	const first = foldedAtFirst(state.timeline).sort().join(",");
	const folded = [...state.folded.value].sort().join(",");
	return {
		from: all ? undefined : Math.round(from),
		to: all ? undefined : Math.round(to),
		event: state.selected.value?.row,
		range: range && `${Math.round(range.from)}-${Math.round(range.to)}`,
		q: state.query.value || undefined,
		pin: state.pinned.value.join(",") || undefined,
		fold: folded === first ? undefined : folded || "none",
		marks: state.marks.value.map(Math.round).join(",") || undefined,
		color: state.colorMode.value === "name" ? "name" : undefined,
		arrows: state.showFlows.value ? 1 : undefined,
		path: state.showPath.value ? 1 : undefined,
	};
}

export interface Wish {
	span: Span | undefined;
	row: number | undefined;
}

/** Sets what an address says. The window and the event are left to the caller, who moves there. */
export function readParams(state: TimelineState, params: ReadonlyMap<string, string>): Wish {
	const list = (name: string): string[] => (params.get(name) ?? "").split(",").filter((each) => each !== "");
	const fold = params.get("fold");
	state.folded.value = new Set(fold === undefined ? foldedAtFirst(state.timeline) : fold === "none" ? [] : list("fold"));
	state.pinned.value = list("pin");
	state.marks.value = list("marks").map(Number).filter(Number.isFinite);
	state.query.value = params.get("q") ?? "";
	state.colorMode.value = params.get("color") === "name" ? "name" : "kind";
	state.showFlows.value = params.get("arrows") === "1";
	state.showPath.value = params.get("path") === "1";
	const [from, to] = (params.get("range") ?? "").split("-").map(Number);
	state.range.value = from !== undefined && to !== undefined && to > from ? { from, to } : undefined;
	const row = Number(params.get("event") ?? NaN);
	const span = { from: Number(params.get("from") ?? NaN), to: Number(params.get("to") ?? NaN) };
	return {
		span: span.to > span.from ? clampSpan(span, state.whole) : undefined,
		row: Number.isInteger(row) && row >= 0 ? row : undefined,
	};
}
