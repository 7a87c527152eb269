// SPDX-License-Identifier: Apache-2.0
//
// The source of a one-file report. Replies of the server are elements of the page, compressed and in base64, each with
// the path that it answers, as formatted by address():
//   <script type="application/gzip" data-reply="traces/4f0c/info">H4sI…</script>
// They are unpacked on request. Tiles, counters and texts are stored in lists of any size, from which requested lists
// are assembled.
import type { TraceList } from "./api";
import { address, type DataSource, type Query, SourceError } from "./source";

const NOT_HERE = "This is not in the report. `opstrobe serve TRACE` shows everything.";

export class EmbeddedSource implements DataSource {
	readonly kind = "embedded";
	private readonly elements = new Map<string, Element>();
	private readonly lists = new Map<string, Promise<Map<string, unknown>>>();

	constructor(elements: Iterable<Element>) {
		for (const element of elements) this.elements.set(element.getAttribute("data-reply") ?? "", element);
	}

	/** The source of this page, if the page is a report. */
	static ofPage(page: Document): EmbeddedSource | undefined {
		const elements = page.querySelectorAll("script[data-reply]");
		return elements.length > 0 ? new EmbeddedSource(elements) : undefined;
	}

	has(path: string, query?: Query): boolean {
		return this.elements.has(address(path, query));
	}

	async json<T>(path: string, query?: Query): Promise<T> {
		if (path.endsWith("/timeline/counters")) {
			const pieces = await this.list(path, String(query?.counters), (reply) => membersOf(reply, "counters"));
			return { counters: pieces } as T;
		}
		if (path.endsWith("/strings")) {
			const texts = await this.whole(path, (reply) => membersOf(reply, "strings"));
			return { strings: Object.fromEntries(texts) } as T;
		}
		if (path === "traces") return allReady(JSON.parse(textOf(await this.reply(path))) as TraceList) as T;
		const reply = JSON.parse(textOf(await this.reply(address(path, query)))) as T;
		return path.endsWith("/timeline") ? { ...reply, level_min: this.finestLevel(path) } : reply;
	}

	async binary(path: string, query?: Query): Promise<ArrayBuffer> {
		const tiles = await this.list(path, String(query?.tiles), tilesOf);
		const whole = new Uint8Array(tiles.reduce((size, tile) => size + tile.length, 0));
		let at = 0;
		for (const tile of tiles) {
			whole.set(tile, at);
			at += tile.length;
		}
		return whole.buffer;
	}

	/** Returns the entries of a list for these ids, joined by commas. */
	private async list<T>(path: string, ids: string, partsOf: (reply: Uint8Array) => T[]): Promise<T[]> {
		const all = (await this.whole(path, partsOf)) as Map<string, T>;
		return ids.split(",").map((id) => {
			const part = all.get(id);
			if (part === undefined) throw new SourceError(NOT_HERE, 404);
			return part;
		});
	}

	/** Returns all entries of the lists of a path, by id. */
	private whole<T>(path: string, partsOf: (reply: Uint8Array) => T[]): Promise<Map<string, unknown>> {
		let whole = this.lists.get(path);
		if (!whole) {
			whole = this.gather(path, partsOf);
			this.lists.set(path, whole);
		}
		return whole;
	}

	private async gather<T>(path: string, partsOf: (reply: Uint8Array) => T[]): Promise<Map<string, unknown>> {
		const all = new Map<string, unknown>();
		for (const [key, element] of this.elements) {
			if (!key.startsWith(`${path}?`)) continue;
			const parts = partsOf(await unpack(element));
			idsOf(key).forEach((id, i) => all.set(id, parts[i]));
		}
		return all;
	}

	/** Returns the finest zoom level that has tiles. */
	private finestLevel(path: string): number {
		let finest = Infinity;
		for (const key of this.elements.keys()) {
			if (!key.startsWith(`${path}/tiles?`)) continue;
			for (const id of idsOf(key)) finest = Math.min(finest, Number(id.split(".")[1]));
		}
		return finest;
	}

	private async reply(key: string): Promise<Uint8Array> {
		const element = this.elements.get(key);
		if (!element) throw new SourceError(NOT_HERE, 404);
		return unpack(element);
	}
}

/** With many traces, `opstrobe report` may have released the first ones before it read the last. In a report all are
 * ready. */
function allReady(list: TraceList): TraceList {
	return { ...list, traces: list.traces.map((trace) => ({ ...trace, state: "ready" })) };
}

/** Returns the ids in the last parameter of a list. */
function idsOf(key: string): string[] {
	return decodeURIComponent(key.slice(key.lastIndexOf("=") + 1)).split(",");
}

function textOf(bytes: Uint8Array): string {
	return new TextDecoder().decode(bytes);
}

/** Returns the array in a JSON reply. */
function membersOf(reply: Uint8Array, name: string): unknown[] {
	return (JSON.parse(textOf(reply)) as Record<string, unknown[]>)[name] ?? [];
}

/** A tile begins with four bytes and then its size (docs/http-api.md). */
function tilesOf(reply: Uint8Array): Uint8Array[] {
	const view = new DataView(reply.buffer, reply.byteOffset, reply.byteLength);
	const tiles: Uint8Array[] = [];
	for (let at = 0; at < reply.length; at += view.getUint32(at + 4, true)) {
		tiles.push(reply.subarray(at, at + view.getUint32(at + 4, true)));
	}
	return tiles;
}

async function unpack(element: Element): Promise<Uint8Array> {
	const bytes = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
	const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(plain).arrayBuffer());
}
