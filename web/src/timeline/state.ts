// SPDX-License-Identifier: Apache-2.0
//
// The state of the timeline: everything that its components read and change, and that is kept in the address.
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { DataSource } from "../data/source";
import { TileStore } from "../data/tile_store";
import type { Tile } from "../data/tiles";
import { type Align, alignAtFirst, type CommonStep, commonSteps, shiftsOf } from "./align";
import type { CriticalPathReply, Flow, HitsReply, Place, TimelineReply } from "./api";
import { LINE } from "./layout";
import { type CounterPiece, counterLoader, tileLoader } from "./load";
import type { ColorMode, KindClass } from "./palette";
import { ownNumber, type Part, partOf, Translator } from "./parts";
import type { Span } from "./viewport";

/** A box, or an event, with its position. */
export interface Picked {
	row: number;
	name: number;
	track: number;
	depth: number;
	start: number;
	end: number;
	/** Number of events that the box represents; 1 is a single event. */
	count: number;
}

/** What parts are called. */
export type Noun = "Rank" | "Trace";

export type DragMode = "move" | "range";

export class TimelineState {
	/** Whether several traces are shown. */
	readonly several: boolean;
	/** Steps that all parts have. */
	readonly steps: readonly CommonStep[];
	readonly align: Signal<Align>;
	/** The step that was selected last: parts that are aligned by a step begin it together. */
	readonly step: Signal<CommonStep | undefined> = signal(undefined);
	/** The traces have nothing in common by which they could be aligned. */
	readonly alignFailed = signal(false);
	/** By part: the shift relative to its own times. The first part is not shifted. */
	readonly shifts: Signal<readonly number[]>;
	/** The names of the parts, if there are several. */
	readonly labels: Signal<readonly string[]> = signal([]);
	readonly noun: Signal<Noun> = signal("Trace");
	readonly span: Signal<Span>;
	readonly scrollTop = signal(0);
	readonly folded: Signal<ReadonlySet<string>>;
	readonly pinned: Signal<readonly string[]> = signal([]);
	readonly selected: Signal<Picked | undefined> = signal(undefined);
	/** The places of the selected collective operation in all parts. */
	readonly together: Signal<readonly Place[]> = signal([]);
	/** The arrows of the selected event. */
	readonly links: Signal<readonly Flow[]> = signal([]);
	readonly hover: Signal<Picked | undefined> = signal(undefined);
	readonly range: Signal<Span | undefined> = signal(undefined);
	readonly marks: Signal<readonly number[]> = signal([]);
	readonly query = signal("");
	/** By part. */
	readonly hits: Signal<readonly HitsReply[] | undefined> = signal(undefined);
	readonly colorMode: Signal<ColorMode> = signal("kind");
	/** Hidden kinds. */
	readonly hidden: Signal<ReadonlySet<KindClass>> = signal(new Set<KindClass>());
	/** The tracks that the range covers; undefined: all. */
	readonly rangeTracks: Signal<readonly number[] | undefined> = signal(undefined);
	/** The search includes arguments. */
	readonly inArguments = signal(false);
	/** Texts of marks, by time. */
	readonly notes: Signal<ReadonlyMap<number, string>> = signal(new Map<number, string>());
	/** Wrappers are drawn instead of folded into their callees. */
	readonly showWrappers = signal(false);
	readonly dragMode: Signal<DragMode> = signal("move");
	readonly showFlows = signal(false);
	readonly flows: Signal<readonly Flow[]> = signal([]);
	readonly showPath = signal(false);
	/** The path of each part that has one. */
	readonly paths: Signal<readonly CriticalPathReply[]> = signal([]);
	/** Counts arrivals from the source, so that pictures are redrawn. */
	readonly arrived = signal(0);

	private readonly sets: Record<"all" | "folded", { parts: readonly Part[]; timeline: TimelineReply; tiles: TileStore<Tile> }>;
	private readonly extent: ReadonlySignal<Span>;
	readonly counters: TileStore<CounterPiece>;

	constructor(
		readonly source: DataSource,
		/** With the depths of all calls. */
		parts: readonly Part[],
	) {
		const timelines = parts.map((each) => each.timeline);
		this.several = parts.length > 1;
		this.steps = commonSteps(timelines);
		this.align = signal(alignAtFirst(timelines));
		this.shifts = signal(shiftsOf(timelines, this.align.value, undefined) ?? timelines.map(() => 0));
		this.extent = computed(() => {
			const shifts = this.shifts.value;
			const to = Math.max(...timelines.map((each, i) => shifts[i]! + each.duration_ns));
			const from = Math.min(...shifts);
			return { from, to: Math.max(to, from + 1) };
		});
		this.span = signal(this.whole);
		const folded = parts.map((part) => ({ ...part, timeline: withWrappersFolded(part.timeline) }));
		this.folded = signal(new Set(foldedAtFirst(folded)));
		// A report has its tiles one by one, and missing ones will never arrive.
		const more = source.kind === "embedded" ? { batch: 1, retryMs: Infinity } : {};
		const onTiles = (): void => {
			this.arrived.value = this.arrived.peek() + 1;
		};
		const set = (fold: boolean, of: readonly Part[]) => ({
			parts: of,
			timeline: joined(of.map((each) => each.timeline)),
			tiles: new TileStore({ load: tileLoader(source, parts, fold), onTiles, ...more }),
		});
		this.sets = { all: set(false, parts), folded: set(true, folded) };
		this.span.value = this.opening;
		this.counters = new TileStore({
			load: counterLoader(source, parts),
			onTiles,
			maxRequests: 1,
			maxBytes: 16 << 20,
			...more,
		});
	}

	/** A report only has tiles with wrappers folded. */
	get canShowWrappers(): boolean {
		return this.sets.all.parts.some((each) => each.timeline.wrappers > 0) && this.source.kind === "http";
	}

	/** Which of the two sets of depths is shown. */
	private get which(): "all" | "folded" {
		return this.showWrappers.value && this.canShowWrappers ? "all" : "folded";
	}

	/** With the displayed depths. */
	get parts(): readonly Part[] {
		return this.sets[this.which].parts;
	}

	/** All parts together: groups, tracks, counters. Its times are those of the first part. */
	get timeline(): TimelineReply {
		return this.sets[this.which].timeline;
	}

	get tiles(): TileStore<Tile> {
		return this.sets[this.which].tiles;
	}

	depthOf(place: Pick<Place, "depth" | "folded_depth">): number | null {
		return this.which === "all" ? place.depth : place.folded_depth;
	}

	/** The time range of all parts. */
	get whole(): Span {
		return this.extent.value;
	}

	/** The time range that is shown first. */
	get opening(): Span {
		const opening = this.several ? null : this.sets.all.timeline.opening;
		return opening ? { from: opening.from_ns, to: opening.to_ns } : this.whole;
	}

	/** Returns the part that a row, track, counter or name belongs to. */
	part(common: number): Part {
		return this.parts[partOf(common)]!;
	}

	shiftOf(common: number): number {
		return this.shifts.value[partOf(common)]!;
	}

	/** Returns the translator for replies about a part. */
	translator(part: Part): Translator {
		return new Translator(part.number, this.shifts.value[part.number]!);
	}

	/** Returns the text of a name if it is loaded. */
	nameOf(common: number): string | undefined {
		return this.parts[partOf(common)]?.names.get(ownNumber(common));
	}

	close(): void {
		this.sets.all.tiles.close();
		this.sets.folded.tiles.close();
		this.counters.close();
	}

	toggleFolded(key: string): void {
		const folded = new Set(this.folded.value);
		if (!folded.delete(key)) folded.add(key);
		this.folded.value = folded;
	}

	togglePinned(key: string): void {
		const pinned = this.pinned.value;
		this.pinned.value = pinned.includes(key) ? pinned.filter((each) => each !== key) : [...pinned, key];
	}
}

function withWrappersFolded(timeline: TimelineReply): TimelineReply {
	return { ...timeline, tracks: timeline.tracks.map((track) => ({ ...track, depths: track.folded_depths })) };
}

/** Steps have a line below the ruler; with several parts they are next to the names of the parts. */
export function hasStepLine(state: TimelineState): boolean {
	return !state.several && state.timeline.steps.length > 0;
}

/** Joins the lists of all parts; other members are those of the first. */
function joined(timelines: readonly TimelineReply[]): TimelineReply {
	const sum = (of: (each: TimelineReply) => number): number => timelines.reduce((all, each) => all + of(each), 0);
	return {
		...timelines[0]!,
		events: sum((each) => each.events),
		lost: sum((each) => each.lost),
		groups: timelines.flatMap((each) => each.groups),
		tracks: timelines.flatMap((each) => each.tracks),
		counters: timelines.flatMap((each) => each.counters),
	};
}

/** Height in pixels of what is around the tracks: bars, overview, ruler, titles of parts and groups, and the panel below. */
const AROUND = 440;

/** Lines of all parts together that fit on the screen, within limits. */
const LINES = Math.max(12, Math.min(36, Math.floor(((globalThis.innerHeight || 1080) - AROUND) / LINE)));

/** With many tracks, those with few events are initially folded; with several parts, most tracks are. */
export function foldedAtFirst(parts: readonly Part[]): string[] {
	if (parts.length > 1) return parts.flatMap((part) => foldedOf(part, LINES / parts.length));
	const MOST = 12;
	const { tracks } = parts[0]!.timeline;
	if (tracks.length <= MOST) return [];
	const busiest = [...tracks].sort((a, b) => b.events - a.events).slice(0, MOST);
	return tracks.filter((track) => !busiest.includes(track)).map((track) => `t${track.id}`);
}

/**
 * Returns the initially folded tracks of a part. Streams of devices stay open, or without devices the busiest threads
 * that fit into these lines: readers compare tracks that are adjacent in all parts.
 */
function foldedOf({ timeline }: Part, lines: number): string[] {
	const { counters, groups, tracks } = timeline;
	const streams = tracks.some((each) => each.kind === "stream");
	const folded = groups.filter((each) => each.kind === "other").map((each) => `g${each.id}`);
	let left = lines;
	for (const track of [...tracks].sort((a, b) => b.events - a.events)) {
		if (streams ? track.kind !== "stream" : track.depths > left) folded.push(`t${track.id}`);
		else left -= track.depths;
	}
	return [...folded, ...counters.map((each) => `c${each.id}`)];
}
