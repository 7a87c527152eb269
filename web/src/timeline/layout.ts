// SPDX-License-Identifier: Apache-2.0
// Where things stand from top to bottom: of each part (with a title where there are several) groups with their tracks and
// counters, and above them, out of the scrolled part, what is pinned.
import { firstBox, type Tile } from "../data/tiles";
import type { Counter, Group, TimelineReply, Track } from "./api";
import type { Part } from "./parts";

export const LINE = 18; // pixels of one depth
export const FOLDED = 20; // of a track that is folded
export const HEADER = 24; // of a group's title
export const COUNTER = 46;
export const GAP = 5; // below a track

/** What the layout looks at. */
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

/** The group of counters of a part that belong to none. */
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
	// Devices first: what a GPU does is what most readers look for.
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
	// Folded, all depths share the height of one line, as thin as they get.
	const line = closed ? Math.max((FOLDED - 2) / track.depths, 1) : LINE;
	const height = (closed ? FOLDED : track.depths * LINE) + GAP;
	return { type: "track", key, y, height, track, folded: closed, line };
}

function counterItem(counter: Counter, y: number, folded: ReadonlySet<string>): Item {
	const key = `c${counter.id}`;
	const closed = folded.has(key);
	return { type: "counter", key, y, height: (closed ? FOLDED : COUNTER) + GAP, counter, folded: closed };
}

/** Those of a list in order of y that touch [top, bottom). */
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

/** The depths of a track that show between two heights, which count from the top of the track. */
export function visibleDepths(item: Item & { type: "track" }, top: number, bottom: number): [number, number] {
	const first = Math.min(Math.max(Math.floor(top / item.line), 0), item.track.depths);
	const last = Math.min(Math.max(Math.ceil(bottom / item.line), first), item.track.depths);
	return [first, last];
}

/** The box of a tile at a depth and time, where boxes narrower than `slack` reach a little further than they are. */
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
