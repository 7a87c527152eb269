// SPDX-License-Identifier: Apache-2.0
// A cache of what is asked for piece by piece, boxes of tracks or values of counters: it asks for what is missing, drops
// requests for what is no longer looked at, and forgets what was not looked at for longest.
import { isAbort } from "./source";
import type { TileId } from "./tiles";

export interface TileStoreOptions<T> {
	/** Gets tiles, in the order of the ids. */
	load: (ids: TileId[], signal: AbortSignal) => Promise<T[]>;
	/** Called when there is something new to draw. */
	onTiles: () => void;
	/** Tiles that were not looked at for longest are forgotten beyond this. */
	maxBytes?: number;
	maxRequests?: number;
	/** Tiles in one request: few, so that the first ones show soon; many, so that requests do not cost more than tiles. */
	batch?: number;
	/** When to ask again for what could not be had. */
	retryMs?: number;
}

interface Batch {
	ids: TileId[];
	keys: string[];
	abort: AbortController;
	since: number;
}

/** What is nearly there is let come, for while one zooms each picture wants other tiles. */
const GRACE_MS = 100;

const keyOf = (track: number, level: number, index: number, band: number): string => `${track}.${level}.${index}.${band}`;

export class TileStore<T extends { readonly bytes: number }> {
	private readonly tiles = new Map<string, T>(); // in order of their last use
	private readonly failed = new Map<string, number>(); // when to ask again
	private readonly batches = new Set<Batch>();
	private wanted = new Map<string, TileId>();
	private bytes = 0;
	private closed = false;
	private readonly leaving = new AbortController();
	private readonly options: Required<TileStoreOptions<T>>;

	constructor(options: TileStoreOptions<T>) {
		this.options = { maxBytes: 96 << 20, maxRequests: 4, batch: 12, retryMs: 2000, ...options };
	}

	get(track: number, level: number, index: number, band: number): T | undefined {
		const key = keyOf(track, level, index, band);
		const tile = this.tiles.get(key);
		if (tile) {
			this.tiles.delete(key);
			this.tiles.set(key, tile);
		}
		return tile;
	}

	/** The tile, or the shortest one there is that covers its time. */
	covering(track: number, level: number, index: number, band: number, levelMax: number): T | undefined {
		for (let up = level, at = index; up <= levelMax; up++, at = Math.floor(at / 2)) {
			const tile = this.get(track, up, at, band);
			if (tile) return tile;
		}
		return undefined;
	}

	/** The very tile, got when it is not there: for what must not depend on what has come so far. */
	async exact(id: TileId): Promise<T> {
		const there = this.get(id.track, id.level, id.index, id.band);
		if (there) return there;
		const [tile] = await this.options.load([id], this.leaving.signal);
		this.keep(keyOf(id.track, id.level, id.index, id.band), tile!);
		return tile!;
	}

	/** Says which tiles are looked at and not there, most urgent first. What is under way and not among them is dropped. */
	want(ids: readonly TileId[]): void {
		const now = performance.now();
		this.wanted = new Map();
		for (const id of ids) {
			const key = keyOf(id.track, id.level, id.index, id.band);
			if (!this.tiles.has(key) && (this.failed.get(key) ?? 0) <= now) this.wanted.set(key, id);
		}
		for (const batch of this.batches) {
			if (now - batch.since > GRACE_MS && !batch.keys.some((key) => this.wanted.has(key))) batch.abort.abort();
		}
		this.ask();
	}

	/** Whether anything that is looked at has yet to come. */
	get waiting(): boolean {
		return this.wanted.size > 0 || this.batches.size > 0;
	}

	close(): void {
		this.closed = true;
		this.leaving.abort();
		this.wanted.clear();
		for (const batch of this.batches) batch.abort.abort();
	}

	private ask(): void {
		const asked = new Set<string>();
		for (const batch of this.batches) for (const key of batch.keys) asked.add(key);
		const rest = [...this.wanted].filter(([key]) => !asked.has(key));
		const { batch, maxRequests } = this.options;
		for (let i = 0; i < rest.length && this.batches.size < maxRequests; i += batch) {
			const part = rest.slice(i, i + batch);
			void this.fetch({
				ids: part.map(([, id]) => id),
				keys: part.map(([key]) => key),
				abort: new AbortController(),
				since: performance.now(),
			});
		}
	}

	private async fetch(batch: Batch): Promise<void> {
		this.batches.add(batch);
		try {
			const tiles = await this.options.load(batch.ids, batch.abort.signal);
			tiles.forEach((tile, i) => this.keep(batch.keys[i]!, tile));
		} catch (error) {
			if (!isAbort(error)) {
				for (const key of batch.keys) this.failed.set(key, performance.now() + this.options.retryMs);
			}
		}
		this.batches.delete(batch);
		for (const key of batch.keys) if (this.tiles.has(key) || this.failed.has(key)) this.wanted.delete(key);
		if (this.closed) return;
		this.ask();
		this.options.onTiles();
	}

	private keep(key: string, tile: T): void {
		if (this.tiles.has(key)) return;
		this.tiles.set(key, tile);
		this.bytes += tile.bytes;
		for (const [oldest, old] of this.tiles) {
			if (this.bytes <= this.options.maxBytes || old === tile) break;
			this.tiles.delete(oldest);
			this.bytes -= old.bytes;
		}
	}
}
