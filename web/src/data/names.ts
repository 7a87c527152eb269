// SPDX-License-Identifier: Apache-2.0
//
// The texts of a trace by number. A report contains all texts that its tiles use in one reply, `traces/ID/strings`, an
// object from number to text.
import { signal } from "@preact/signals";
import { isModule } from "../format/module_name";
import { type DataSource } from "./source";

const MOST = 4096; // limit on the numbers in one request
const URL_BYTES = 12_000;

export class Names {
	private readonly texts = new Map<number, string>();
	private readonly source: DataSource;
	private readonly path: string;
	private whole: Promise<void> | undefined;
	/** Whether any loaded text is the name of a module. */
	readonly hasModules = signal(false);

	constructor(source: DataSource, path: string) {
		this.source = source;
		this.path = path;
	}

	/** Returns the text if it is loaded. */
	get(id: number): string | undefined {
		return this.texts.get(id);
	}

	/** All loaded texts. */
	entries(): Iterable<[number, string]> {
		return this.texts.entries();
	}

	/** Waits until the texts of these numbers are loaded. */
	async load(ids: Iterable<number>, signal?: AbortSignal): Promise<void> {
		const missing: number[] = [];
		for (const id of new Set(ids)) if (!this.texts.has(id)) missing.push(id);
		if (missing.length === 0) return;
		if (this.source.kind === "embedded") {
			await (this.whole ??= this.loadWhole());
			return;
		}
		for (const part of parts(missing)) {
			const reply = await this.source.json<{ strings: string[] }>(this.path, { ids: part.join(",") }, signal);
			part.forEach((id, i) => this.add(id, reply.strings[i] ?? ""));
		}
	}

	private async loadWhole(): Promise<void> {
		const reply = await this.source.json<{ strings: Record<string, string> }>(this.path);
		for (const [id, text] of Object.entries(reply.strings)) this.add(Number(id), text);
	}

	private add(id: number, text: string): void {
		this.texts.set(id, text);
		if (isModule(text)) this.hasModules.value = true;
	}
}

/** Splits a list of numbers so that each part fits into a request. Commas take three bytes each. */
function* parts(ids: number[]): Iterable<number[]> {
	let part: number[] = [];
	let bytes = 0;
	for (const id of ids) {
		const size = String(id).length + 3;
		if (part.length === MOST || bytes + size > URL_BYTES) {
			yield part;
			part = [];
			bytes = 0;
		}
		part.push(id);
		bytes += size;
	}
	if (part.length > 0) yield part;
}
