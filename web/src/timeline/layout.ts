// SPDX-License-Identifier: Apache-2.0
//
// Vertical positions: for each part (with a title if there are several) the groups with their tracks and counters, and
// above them, outside of the scrolled area, the pinned tracks.
import { firstBox, type Tile } from "../data/tiles";
import type { Counter, Group, TimelineReply, Track } from "./api";
import type { Part } from "./parts";

export const LINE = 18; // height of one depth in pixels
export const FOLDED = 20; // height of a folded track
export const HEADER = 24; // height of a group's title
export const COUNTER = 46;
export const GAP = 5; // gap below a track

/** The members of a part that the layout uses. */
export type LaidPart = Pick<Part, "number" | "timeline">;

export type Item =
	| { type: "part"; key: string; y: number; height: number; part: LaidPart; folded: boolean }
	| { type: "group"; key: string; y: number; height: number; group: Group; folded: boolean; inside: number }
	| { type: "track"; key: string; y: number; height: number; track: Track; folded: boolean; line: number }
	| { type: "counter"; key: string; y: number; height: number; counter: Counter; folded: boolean };

export interface Layout {
	pinned: Item[];
	pinnedHeight: number;
	items: Item[];
	height: number;
}

/** The group of those counters of a part that belong to no group. */
function looseGroup(part: LaidPart): Group {
	return { id: -1 - part.number, kind: "other", label: "Counters" };
}

export function layOut(parts: readonly LaidPart[], folded: ReadonlySet<string>, pinned: readonly string[]): Layout {
	const items: Item[] = [];
	let y = 0;
	const place = (item: Item): void => {
		items.push(item);
		y += item.height;
	};
	for (const part of parts) {
		const key = `p${part.number}`;
		const closed = folded.has(key);
		if (parts.length > 1) place({ type: "part", key, y, height: HEADER, part, folded: closed });
		if (!closed || parts.length === 1) placeGroups(part, folded, () => y, place);
	}
	const above: Item[] = [];
	let pinnedHeight = 0;
	for (const key of pinned) {
		const item = parts.map((part) => itemOf(part.timeline, key, pinnedHeight, folded)).find((each) => each);
		if (!item) continue;
		above.push(item);
		pinnedHeight += item.height;
	}
	return { pinned: above, pinnedHeight, items, height: y };
}

function placeGroups(part: LaidPart, folded: ReadonlySet<string>, y: () => number, place: (item: Item) => void): void {
	const { counters, groups, tracks } = part.timeline;
	const loose = looseGroup(part);
	const hasLoose = counters.some((counter) => counter.group === null);
	// Devices come first, since most readers look for GPU activity.
	const ordered = [...groups.filter((each) => each.kind === "device"), ...groups.filter((each) => each.kind !== "device")];
	for (const group of hasLoose ? [...ordered, loose] : ordered) {
		const itsCounters = counters.filter((counter) => (counter.group ?? loose.id) === group.id);
		const itsTracks = tracks.filter((track) => track.group === group.id);
		const inside = itsCounters.length + itsTracks.length;
		if (inside === 0) continue;
		const key = `g${group.id}`;
		const closed = folded.has(key);
		place({ type: "group", key, y: y(), height: HEADER, group, folded: closed, inside });
		if (closed) continue;
		for (const track of itsTracks) place(trackItem(track, y(), folded));
		for (const counter of itsCounters) place(counterItem(counter, y(), folded));
	}
}

function itemOf(timeline: TimelineReply, key: string, y: number, folded: ReadonlySet<string>): Item | undefined {
	const track = timeline.tracks.find((each) => `t${each.id}` === key);
	if (track) return trackItem(track, y, folded);
	const counter = timeline.counters.find((each) => `c${each.id}` === key);
	return counter && counterItem(counter, y, folded);
}

function trackItem(track: Track, y: number, folded: ReadonlySet<string>): Item {
	const key = `t${track.id}`;
	const closed = folded.has(key);
	// If folded, all depths share the height of one line, however thin.
	const line = closed ? Math.max((FOLDED - 2) / track.depths, 1) : LINE;
	const height = (closed ? FOLDED : track.depths * LINE) + GAP;
	return { type: "track", key, y, height, track, folded: closed, line };
}

function counterItem(counter: Counter, y: number, folded: ReadonlySet<string>): Item {
	const key = `c${counter.id}`;
	const closed = folded.has(key);
	return { type: "counter", key, y, height: (closed ? FOLDED : COUNTER) + GAP, counter, folded: closed };
}

/** Returns the items of a list sorted by y that touch [top, bottom). */
export function visibleItems(items: readonly Item[], top: number, bottom: number): Item[] {
	let low = 0;
	let high = items.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		const item = items[middle]!;
		if (item.y + item.height <= top) low = middle + 1;
		else high = middle;
	}
	let end = low;
	while (end < items.length && items[end]!.y < bottom) end++;
	return items.slice(low, end);
}

/** Returns the depths of a track that are visible between two heights, relative to the top of the track. */
export function visibleDepths(item: Item & { type: "track" }, top: number, bottom: number): [number, number] {
	const first = Math.min(Math.max(Math.floor(top / item.line), 0), item.track.depths);
	const last = Math.min(Math.max(Math.ceil(bottom / item.line), first), item.track.depths);
	return [first, last];
}

/** Returns the box of a tile at a depth and time. Boxes narrower than `slack` are treated as slightly wider. */
export function boxAt(tile: Tile, depth: number, time: number, slack: number): number | undefined {
	let best: number | undefined;
	let distance = slack;
	const end = tile.depthStart[depth + 1]!;
	for (let box = firstBox(tile, depth, time - slack); box < end && tile.start[box]! <= time + slack; box++) {
		const away = Math.max(tile.start[box]! - time, time - tile.end[box]!, 0);
		if (away <= distance && (best === undefined || away < distance)) {
			best = box;
			distance = away;
		}
		if (away === 0) break;
	}
	return best;
}
