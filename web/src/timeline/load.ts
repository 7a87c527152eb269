// SPDX-License-Identifier: Apache-2.0
// How boxes and values of counters come from the source.
import type { Names } from "../data/names";
import type { DataSource } from "../data/source";
import { decodeTiles, type Tile, type TileId } from "../data/tiles";
import type { CounterTile } from "./api";

export interface CounterPiece extends CounterTile {
	readonly bytes: number;
}

/** Tiles with the names of all their boxes at hand. */
export function tileLoader(source: DataSource, path: string, names: Names, fold: boolean) {
	return async (ids: TileId[], signal: AbortSignal): Promise<Tile[]> => {
		const list = ids.map((id) => `${id.track}.${id.level}.${id.index}${id.band > 0 ? `.${id.band}` : ""}`);
		const tiles = decodeTiles(await source.binary(`${path}/timeline/tiles`, { ...(fold ? { fold } : {}), tiles: list.join(",") }, signal));
		if (tiles.length !== ids.length) throw new Error("not the tiles that were asked for");
		const used = new Set<number>();
		for (const tile of tiles) for (const name of tile.name) used.add(name);
		await names.load(used, signal);
		return tiles;
	};
}

export function counterLoader(source: DataSource, path: string) {
	return async (ids: TileId[], signal: AbortSignal): Promise<CounterPiece[]> => {
		const list = ids.map((id) => `${id.track}.${id.level}.${id.index}`);
		const query = { counters: list.join(",") };
		const reply = await source.json<{ counters: CounterTile[] }>(`${path}/timeline/counters`, query, signal);
		return reply.counters.map((piece) => ({ ...piece, bytes: 64 + piece.time_ns.length * 32 }));
	};
}
