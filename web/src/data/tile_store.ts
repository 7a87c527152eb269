// SPDX-License-Identifier: Apache-2.0
//
// A cache of data that is requested in pieces, boxes of tracks or values of counters. It requests missing pieces,
// cancels requests that are no longer required, and evicts the least recently used pieces.
import { isAbort } from "./source";
import type { TileId } from "./tiles";

export interface TileStoreOptions<T> {
	/** Loads tiles, in the order of the ids. */
	load: (ids: TileId[], signal: AbortSignal) => Promise<T[]>;
	/** Called when there are new tiles to draw. */
	onTiles: () => void;
	/** Size above which the least recently used tiles are evicted. */
	maxBytes?: number;
	maxRequests?: number;
	/** Tiles per request: few, so that the first ones appear soon; many, so that requests do not cost more than
	 * tiles. */
	batch?: number;
	/** Delay before a failed request is repeated. */
	retryMs?: number;
}

interface Batch {
	ids: TileId[];
	keys: string[];
	abort: AbortController;
	since: number;
}

/** Requests are cancelled only after this time, since each picture during a zoom requires other tiles, and some are
 * almost loaded. */
const GRACE_MS = 100;

const keyOf = (track: number, level: number, index: number, band: number): string => `${track}.${level}.${index}.${band}`;

export class TileStore<T extends { readonly bytes: number }> {
	private readonly tiles = new Map<string, T>(); // in order of last use
	private readonly failed = new Map<string, number>(); // when to request again
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

	/** Returns the tile, or the shortest available one that covers its time. */
	covering(track: number, level: number, index: number, band: number, levelMax: number): T | undefined {
		for (let up = level, at = index; up <= levelMax; up++, at = Math.floor(at / 2)) {
			const tile = this.get(track, up, at, band);
			if (tile) return tile;
		}
		return undefined;
	}

	/** Returns exactly this tile, and loads it if necessary. For results that must not depend on what is already
	 * loaded. */
	async exact(id: TileId): Promise<T> {
		const there = this.get(id.track, id.level, id.index, id.band);
		if (there) return there;
		const [tile] = await this.options.load([id], this.leaving.signal);
		this.keep(keyOf(id.track, id.level, id.index, id.band), tile!);
		return tile!;
	}

	/** Sets the required tiles that are not loaded, most urgent first. Cancels all other requests. */
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

	/** Whether any required tile is not loaded yet. */
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
