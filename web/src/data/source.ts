// SPDX-License-Identifier: Apache-2.0
// Where the viewer's figures come from. There are two sources with one face: the server of `opstrobe serve`, and the
// replies that a one-file report carries. docs/http-api.md describes paths and replies; paths here are those below
// /api/v1/.

export type Query = Record<string, string | number | boolean | undefined>;

export interface DataSource {
	readonly kind: "http" | "embedded";
	/** The JSON reply of a path. Rejects with a SourceError. */
	json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
	/** The bytes of a binary reply. */
	binary(path: string, query?: Query, signal?: AbortSignal): Promise<ArrayBuffer>;
}

export class SourceError extends Error {
	/** HTTP status, or 0 where no reply came. */
	readonly status: number;
	constructor(message: string, status: number) {
		super(message);
		this.name = "SourceError";
		this.status = status;
	}
}

/** A path with its query in one form: members in order of their names, undefined ones left out. */
export function address(path: string, query: Query = {}): string {
	const parts = Object.entries(query)
		.filter((entry): entry is [string, string | number | boolean] => entry[1] !== undefined)
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
	return parts.length > 0 ? `${path}?${parts.join("&")}` : path;
}

export function isAbort(error: unknown): boolean {
	return error instanceof DOMException && error.name === "AbortError";
}
