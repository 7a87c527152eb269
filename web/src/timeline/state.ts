// SPDX-License-Identifier: Apache-2.0
// What the timeline shows: all that its parts read and change, and that the address keeps.
import { type Signal, signal } from "@preact/signals";
import { Names } from "../data/names";
import type { DataSource } from "../data/source";
import { TileStore } from "../data/tile_store";
import type { Tile } from "../data/tiles";
import type { CriticalPathReply, Flow, HitsReply, Place, TimelineReply } from "./api";
import { type CounterPiece, counterLoader, tileLoader } from "./load";
import type { ColorMode, KindClass } from "./palette";
import type { Span } from "./viewport";

/** A box, or an event, at its place. */
export interface Picked {
	row: number;
	name: number;
	track: number;
	depth: number;
	start: number;
	end: number;
	/** How many events the box stands for; 1 is one event. */
	count: number;
}

export type DragMode = "move" | "range";

export class TimelineState {
	readonly whole: Span;
	readonly span: Signal<Span>;
	readonly scrollTop = signal(0);
	readonly folded: Signal<ReadonlySet<string>>;
	readonly pinned: Signal<readonly string[]> = signal([]);
	readonly selected: Signal<Picked | undefined> = signal(undefined);
	/** The arrows of the event that is selected. */
	readonly links: Signal<readonly Flow[]> = signal([]);
	readonly hover: Signal<Picked | undefined> = signal(undefined);
	readonly range: Signal<Span | undefined> = signal(undefined);
	readonly marks: Signal<readonly number[]> = signal([]);
	readonly query = signal("");
	readonly hits: Signal<HitsReply | undefined> = signal(undefined);
	readonly colorMode: Signal<ColorMode> = signal("kind");
	/** Kinds that are not shown. */
	readonly hidden: Signal<ReadonlySet<KindClass>> = signal(new Set<KindClass>());
	/** The tracks that the range is of; undefined: all. */
	readonly rangeTracks: Signal<readonly number[] | undefined> = signal(undefined);
	/** The search looks at arguments, too. */
	readonly inArguments = signal(false);
	/** Texts of marks, by their time. */
	readonly notes: Signal<ReadonlyMap<number, string>> = signal(new Map<number, string>());
	/** Wrappers are drawn instead of folded into what they call. */
	readonly showWrappers = signal(false);
	readonly dragMode: Signal<DragMode> = signal("move");
	readonly showFlows = signal(false);
	readonly flows: Signal<readonly Flow[]> = signal([]);
	readonly showPath = signal(false);
	readonly path: Signal<CriticalPathReply | undefined> = signal(undefined);
	/** Counts what has come from the source, so that pictures are drawn anew. */
	readonly arrived = signal(0);

	readonly names: Names;
	private readonly replies: { all: TimelineReply; folded: TimelineReply };
	private readonly stores: { all: TileStore<Tile>; folded: TileStore<Tile> };
	readonly counters: TileStore<CounterPiece>;

	constructor(
		readonly source: DataSource,
		/** Of the trace: traces/ID. */
		readonly address: string,
		timeline: TimelineReply,
	) {
		const tracks = timeline.tracks.map((track) => ({ ...track, depths: track.folded_depths }));
		this.replies = { all: timeline, folded: { ...timeline, tracks } };
		this.whole = { from: 0, to: Math.max(timeline.duration_ns, 1) };
		this.span = signal(this.whole);
		this.folded = signal(new Set(foldedAtFirst(timeline)));
		this.names = new Names(source, `${address}/strings`);
		// A report carries its tiles one by one, and what it does not carry will not come.
		const more = source.kind === "embedded" ? { batch: 1, retryMs: Infinity } : {};
		const onTiles = (): void => {
			this.arrived.value = this.arrived.peek() + 1;
		};
		const store = (fold: boolean) => new TileStore({ load: tileLoader(source, address, this.names, fold), onTiles, ...more });
		this.stores = { all: store(false), folded: store(true) };
		this.counters = new TileStore({
			load: counterLoader(source, address),
			onTiles,
			maxRequests: 1,
			maxBytes: 16 << 20,
			...more,
		});
	}

	/** A report carries tiles with wrappers folded alone. */
	get canShowWrappers(): boolean {
		return this.replies.all.wrappers > 0 && this.source.kind === "http";
	}

	/** Which of the two sets of depths is shown. */
	private get which(): "all" | "folded" {
		return this.showWrappers.value && this.canShowWrappers ? "all" : "folded";
	}

	/** With the depths that are shown. */
	get timeline(): TimelineReply {
		return this.replies[this.which];
	}

	get tiles(): TileStore<Tile> {
		return this.stores[this.which];
	}

	depthOf(place: Pick<Place, "depth" | "folded_depth">): number | null {
		return this.which === "all" ? place.depth : place.folded_depth;
	}

	close(): void {
		this.stores.all.close();
		this.stores.folded.close();
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

/** With many tracks, those with few events are folded until they are looked at. */
export function foldedAtFirst(timeline: TimelineReply): string[] {
	const MOST = 12;
	if (timeline.tracks.length <= MOST) return [];
	const busiest = [...timeline.tracks].sort((a, b) => b.events - a.events).slice(0, MOST);
	return timeline.tracks.filter((track) => !busiest.includes(track)).map((track) => `t${track.id}`);
}
