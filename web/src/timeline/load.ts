// SPDX-License-Identifier: Apache-2.0
//
// Loads boxes and values of counters from the source.
import type { DataSource } from "../data/source";
import { decodeTiles, type Tile, type TileId } from "../data/tiles";
import type { CounterTile } from "./api";
import { commonNumber, ownNumber, type Part, partOf } from "./parts";

export interface CounterPiece extends CounterTile {
	readonly bytes: number;
}

type Load<T> = (ids: TileId[], signal: AbortSignal) => Promise<T[]>;

/** Loads tiles together with the names of all their boxes. */
export function tileLoader(source: DataSource, parts: readonly Part[], fold: boolean): Load<Tile> {
	return fromParts(parts, async (part, ids, signal) => {
		const list = ids.map((id) => `${id.track}.${id.level}.${id.index}${id.band > 0 ? `.${id.band}` : ""}`);
		const bytes = await source.binary(`${part.address}/timeline/tiles`, { ...(fold ? { fold } : {}), tiles: list.join(",") }, signal);
		const tiles = decodeTiles(bytes, commonNumber(part.number, 0));
		if (tiles.length !== ids.length) throw new Error("not the tiles that were requested");
		const used = new Set<number>();
		for (const tile of tiles) for (const name of tile.name) used.add(name);
		await part.names.load(used, signal);
		return tiles;
	});
}

export function counterLoader(source: DataSource, parts: readonly Part[]): Load<CounterPiece> {
	return fromParts(parts, async (part, ids, signal) => {
		const list = ids.map((id) => `${id.track}.${id.level}.${id.index}`);
		const query = { counters: list.join(",") };
		const reply = await source.json<{ counters: CounterTile[] }>(`${part.address}/timeline/counters`, query, signal);
		return reply.counters.map((piece) => ({ ...piece, bytes: 64 + piece.time_ns.length * 32 }));
	});
}

/** Requests from each part its own ids. The results are in the order of the ids. */
function fromParts<T>(parts: readonly Part[], load: (part: Part, ids: TileId[], signal: AbortSignal) => Promise<T[]>): Load<T> {
	return async (ids, signal) => {
		const all = new Array<T>(ids.length);
		const places = parts.map((part) => ids.flatMap((id, i) => (partOf(id.track) === part.number ? [i] : [])));
		await Promise.all(
			parts.map(async (part, k) => {
				if (places[k]!.length === 0) return;
				const own = places[k]!.map((i) => ({ ...ids[i]!, track: ownNumber(ids[i]!.track) }));
				const pieces = await load(part, own, signal);
				places[k]!.forEach((i, n) => (all[i] = pieces[n]!));
			}),
		);
		return all;
	};
}
