// SPDX-License-Identifier: Apache-2.0
//
// Selection of events: by row, or from the selected event to its neighbours.
import { fetchReply } from "../data/reply";
import { BAND_DEPTHS, firstBox, levelFor } from "../data/tiles";
import type { EventReply, Place } from "./api";
import type { Stage } from "./stage";
import { ownNumber, partOf } from "./parts";
import type { Picked, TimelineState } from "./state";
import { fitSpan, revealSpan } from "./viewport";

export type Way = "previous" | "next" | "parent" | "child";

export function eventPath(state: TimelineState, row: number): string {
	return `${state.part(row).address}/timeline/events/${ownNumber(row)}`;
}

export async function fetchEvent(state: TimelineState, row: number): Promise<EventReply> {
	const event = await fetchReply<EventReply>(state.source, eventPath(state, row));
	return state.translator(state.part(row)).event(event);
}

export function pickedOf(state: TimelineState, place: Place): Picked | undefined {
	const { row, name, track, start_ns, end_ns } = place;
	const depth = state.depthOf(place);
	if (track === null || depth === null) return undefined;
	return { row, name, track, depth, start: start_ns, end: end_ns, count: 1 };
}

/** Selects a place and moves there. */
export function goTo(state: TimelineState, stage: Stage, picked: Picked, close = false): void {
	unfold(state, picked.track);
	state.selected.value = picked;
	const event = { from: picked.start, to: picked.end };
	const { target } = stage;
	const span = close ? fitSpan(event, state.whole) : revealSpan(target, event, state.whole);
	if (span !== target) stage.show(span);
	// The layout has changed with the fold; it is applied in the next frame.
	requestAnimationFrame(() => stage.reveal(picked.track, picked.depth));
}

export async function goToRow(state: TimelineState, stage: Stage, row: number, close = false): Promise<void> {
	const event = await fetchEvent(state, row);
	const picked = pickedOf(state, { ...event, name: -1, end_ns: event.start_ns + event.duration_ns });
	if (picked) goTo(state, stage, picked, close);
}

function unfold(state: TimelineState, track: number): void {
	const group = state.timeline.tracks.find((each) => each.id === track)?.group;
	const keys = [`t${track}`, `g${group ?? ""}`, `p${partOf(track)}`];
	if (keys.some((key) => state.folded.value.has(key))) {
		state.folded.value = new Set([...state.folded.value].filter((key) => !keys.includes(key)));
	}
}

export async function goToNeighbour(state: TimelineState, stage: Stage, way: Way): Promise<void> {
	const from = state.selected.value;
	if (!from) return;
	if (way === "parent") {
		let { parent } = await fetchEvent(state, from.row);
		// A folded call cannot be selected.
		while (parent !== null && !state.showWrappers.value) {
			const outer = await fetchEvent(state, parent);
			if (outer.folds_into === null) break;
			parent = outer.parent;
		}
		if (parent !== null) await goToRow(state, stage, parent);
		return;
	}
	const row = await neighbourBox(state, stage, from, way);
	if (row !== undefined) await goToRow(state, stage, row);
}

/**
 * Returns the row of the box next to, above or below another, at the zoom level that the window moves to. Boxes of many
 * events represent the first one. Missing tiles are loaded, since the coarser ones painted meanwhile have other
 * neighbours.
 */
async function neighbourBox(state: TimelineState, stage: Stage, from: Picked, way: Exclude<Way, "parent">): Promise<number | undefined> {
	const { level_min, level_max } = state.part(from.track).timeline;
	const { target, size } = stage;
	const shift = state.shiftOf(from.track);
	const [fromStart, fromEnd] = [from.start - shift, from.end - shift];
	const level = levelFor((target.to - target.from) / Math.max(size.value.width, 1), level_min, level_max);
	const depth = way === "child" ? from.depth + 1 : from.depth;
	const band = Math.floor(depth / BAND_DEPTHS);
	const step = way === "previous" ? -1 : 1;
	const begin = way === "next" ? fromEnd : fromStart;
	const index = Math.floor(begin / 2 ** level);
	// Boxes that are more than a few tiles away are found by zooming out.
	for (let i = 0; i < 16; i++) {
		const at = index + i * step;
		if (at < 0) return undefined;
		// A report only contains the coarser tiles.
		const tile = await state.tiles
			.exact({ track: from.track, level, index: at, band })
			.catch(() => state.tiles.covering(from.track, level, at, band, level_max));
		if (!tile) return undefined;
		const line = depth % BAND_DEPTHS;
		const end = tile.depthStart[line + 1]!;
		let box = firstBox(tile, line, fromStart);
		if (way === "previous") {
			box = Math.min(box, end);
			while (box > tile.depthStart[line]! && (box >= end || tile.start[box]! >= fromStart)) box--;
			if (box < end && tile.start[box]! < fromStart) return tile.first + tile.row[box]!;
		} else {
			while (box < end && (from.row === tile.first + tile.row[box]! || tile.start[box]! < begin)) box++;
			if (box < end && (way === "next" || tile.start[box]! < fromEnd)) return tile.first + tile.row[box]!;
			if (way === "child") return undefined;
		}
	}
	return undefined;
}
