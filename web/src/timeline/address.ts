// SPDX-License-Identifier: Apache-2.0
//
// The state of the timeline in the page's address: everything that another person who opens the link should see. Times
// are in ns since the origin.
import type { Params } from "../app/route";
import { alignAtFirst, ALIGNS, shiftParts, shiftsOf, stepSpan } from "./align";
import { CLASSES } from "./palette";
import { foldedAtFirst, type TimelineState } from "./state";
import { clampSpan, fitSpan, type Span } from "./viewport";

const NAMES = ["align", "step", "from", "to", "event", "range", "tracks", "q", "args", "hide", "pin", "fold", "marks", "notes", "color", "arrows", "path", "wrappers"] as const;

/** Returns the part of an address that belongs to the timeline; the rest belongs to the tables below it. */
export function ownText(params: ReadonlyMap<string, string>): string {
	return JSON.stringify(NAMES.map((name) => params.get(name) ?? null));
}

/** Returns the parameters of a link to the timeline. Links of other views (widgets/links.tsx) set the first three, or
 * `q`. */
export function paramsOf(state: TimelineState): Record<(typeof NAMES)[number], Params[string]> {
	const { from, to } = state.span.value;
	const first = state.opening;
	const opens = Math.abs(from - first.from) < 1 && Math.abs(to - first.to) < 1;
	const step = state.several && state.align.value === "step" ? state.step.value?.name : undefined;
	const range = state.range.value;
	const foldedFirst = foldedAtFirst(state.parts).sort().join(",");
	const folded = [...state.folded.value].sort().join(",");
	return {
		align: state.align.value === alignAtFirst(state.parts.map((each) => each.timeline)) ? undefined : state.align.value,
		step,
		from: opens && !step ? undefined : Math.round(from),
		to: opens && !step ? undefined : Math.round(to),
		event: state.selected.value?.row,
		range: range && `${Math.round(range.from)}-${Math.round(range.to)}`,
		tracks: range && state.rangeTracks.value ? state.rangeTracks.value.join(",") : undefined,
		q: state.query.value || undefined,
		args: state.inArguments.value ? 1 : undefined,
		hide: [...state.hidden.value].join(",") || undefined,
		pin: state.pinned.value.join(",") || undefined,
		fold: folded === foldedFirst ? undefined : folded || "none",
		marks: state.marks.value.map(Math.round).join(",") || undefined,
		notes: notesText(state) || undefined,
		color: state.colorMode.value === "name" ? "name" : undefined,
		arrows: state.showFlows.value ? 1 : undefined,
		path: state.showPath.value ? 1 : undefined,
		wrappers: state.showWrappers.value ? 1 : undefined,
	};
}

/** Returns "TIME=TEXT" for each mark that has a note. */
function notesText(state: TimelineState): string {
	const { marks, notes } = state;
	return marks.value
		.filter((time) => notes.value.get(time))
		.map((time) => `${Math.round(time)}=${encodeURIComponent(notes.value.get(time)!)}`)
		.join("&");
}

export interface Wish {
	span: Span | undefined;
	row: number | undefined;
}

/** Sets the state from an address. The caller handles the window and the event, since it moves there. */
export function readParams(state: TimelineState, params: ReadonlyMap<string, string>): Wish {
	const list = (name: string): string[] => (params.get(name) ?? "").split(",").filter((each) => each !== "");
	const timelines = state.parts.map((each) => each.timeline);
	const step = state.steps.find((each) => each.name === params.get("step"));
	const align = ALIGNS.find((each) => each === params.get("align")) ?? alignAtFirst(timelines);
	shiftParts(state, shiftsOf(timelines, align, step) ?? state.shifts.value);
	state.align.value = align;
	state.step.value = step;
	const fold = params.get("fold");
	state.folded.value = new Set(fold === undefined ? foldedAtFirst(state.parts) : fold === "none" ? [] : list("fold"));
	state.pinned.value = list("pin");
	state.marks.value = list("marks").map(Number).filter(Number.isFinite);
	state.notes.value = new Map(
		(params.get("notes") ?? "").split("&").flatMap((each) => {
			const [time, text] = each.split("=", 2);
			return time && text ? [[Number(time), decodeURIComponent(text)] as const] : [];
		}),
	);
	state.inArguments.value = params.get("args") === "1";
	state.hidden.value = new Set(CLASSES.filter((each) => list("hide").includes(each)));
	state.query.value = params.get("q") ?? "";
	state.colorMode.value = params.get("color") === "name" ? "name" : "kind";
	state.showFlows.value = params.get("arrows") === "1";
	state.showPath.value = params.get("path") === "1";
	state.showWrappers.value = params.get("wrappers") === "1";
	// Times before the first event of the first part are negative.
	const [from = NaN, to = NaN] = (/^(-?\d+)-(-?\d+)$/.exec(params.get("range") ?? "") ?? []).slice(1).map(Number);
	state.range.value = to > from ? { from, to } : undefined;
	const tracks = list("tracks").map(Number).filter((id) => state.timeline.tracks.some((each) => each.id === id));
	state.rangeTracks.value = tracks.length > 0 ? tracks : undefined;
	// A link with only a step means the time of the step.
	if (step && !params.has("from") && !params.has("range") && !params.has("event")) state.range.value = stepSpan(state, step);
	const row = Number(params.get("event") ?? NaN);
	const span = { from: Number(params.get("from") ?? NaN), to: Number(params.get("to") ?? NaN) };
	return {
		span: span.to > span.from ? clampSpan(span, state.whole) : step && state.range.value ? fitSpan(state.range.value, state.whole) : undefined,
		row: Number.isInteger(row) && row >= 0 ? row : undefined,
	};
}
