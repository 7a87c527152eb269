// SPDX-License-Identifier: Apache-2.0
//
// The traces that a timeline shows: one, or several below one another. Each has rows, tracks, groups, counters and
// texts that count from 0, and times since its own first event. Outside of this file, numbers are common: those of part
// 2 begin at 2 * PART. Times of all parts are those of the first, `shift` ns later than the part's own.
import { Names } from "../data/names";
import type { DataSource } from "../data/source";
import type { CriticalPathReply, EventReply, Flow, HitsReply, Place, RangeRow, TimelineReply } from "./api";

/** Larger than any number in a trace (2^32), and easy to read in an address. */
const PART = 1e10;

export interface Part {
	readonly number: number;
	/** Address of the trace: traces/ID. */
	readonly address: string;
	/** The contents of the trace, with common numbers and its own times. */
	readonly timeline: TimelineReply;
	readonly names: Names;
}

export function partOf(common: number): number {
	return Math.floor(common / PART);
}

export function ownNumber(common: number): number {
	return common % PART;
}

export function commonNumber(part: number, own: number): number {
	return part * PART + own;
}

export function makePart(source: DataSource, number: number, id: string, timeline: TimelineReply): Part {
	const address = `traces/${id}`;
	return { number, address, timeline: number === 0 ? timeline : renumbered(number, timeline), names: new Names(source, `${address}/strings`) };
}

/** Returns the id of a part's trace. */
export function traceOf(part: Part): string {
	return part.address.replace(/^traces\//, "");
}

function renumbered(part: number, timeline: TimelineReply): TimelineReply {
	const common = (own: number): number => commonNumber(part, own);
	return {
		...timeline,
		groups: timeline.groups.map((each) => ({ ...each, id: common(each.id) })),
		tracks: timeline.tracks.map((each) => ({ ...each, id: common(each.id), group: common(each.group) })),
		counters: timeline.counters.map((each) => ({ ...each, id: common(each.id), group: each.group === null ? null : common(each.group) })),
		steps: timeline.steps.map((each) => ({ ...each, row: each.row === null ? null : common(each.row) })),
	};
}

/** Converts numbers and times in replies about one part to the common ones. */
export class Translator {
	constructor(
		private readonly part: number,
		private readonly shift: number,
	) {}

	place = (place: Place): Place => ({
		row: this.number(place.row),
		name: this.number(place.name),
		track: this.maybe(place.track),
		depth: place.depth,
		folded_depth: place.folded_depth,
		start_ns: place.start_ns + this.shift,
		end_ns: place.end_ns + this.shift,
	});

	flow = (flow: Flow): Flow => ({ kind: flow.kind, from: this.place(flow.from), to: this.place(flow.to) });

	event(event: EventReply): EventReply {
		return {
			...event,
			row: this.number(event.row),
			track: this.maybe(event.track),
			parent: this.maybe(event.parent),
			folds_into: this.maybe(event.folds_into),
			start_ns: event.start_ns + this.shift,
			links: event.links.map(this.flow),
		};
	}

	path(path: CriticalPathReply): CriticalPathReply {
		return {
			...path,
			start_ns: path.start_ns + this.shift,
			end_ns: path.end_ns + this.shift,
			segments: path.segments.map((each) => ({
				...each,
				start_ns: each.start_ns + this.shift,
				end_ns: each.end_ns + this.shift,
				row: this.maybe(each.row),
				track: this.maybe(each.track),
			})),
		};
	}

	hits(hits: HitsReply): HitsReply {
		return { ...hits, names: hits.names.map((each) => this.number(each)), hits: hits.hits.map(this.place) };
	}

	rangeRow(row: RangeRow): RangeRow {
		return { ...row, longest: this.number(row.longest) };
	}

	private number(own: number): number {
		return commonNumber(this.part, own);
	}

	private maybe(own: number | null): number | null {
		return own === null ? null : this.number(own);
	}
}
