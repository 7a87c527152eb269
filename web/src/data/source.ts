// SPDX-License-Identifier: Apache-2.0
//
// The source of the viewer's data. There are two with the same interface: the server of `opstrobe serve`, and the
// replies in a one-file report. docs/http-api.md describes paths and replies. Paths here are relative to /api/v1/.

export type Query = Record<string, string | number | boolean | undefined>;

export interface DataSource {
	readonly kind: "http" | "embedded";
	/** Returns whether there can be a reply to a path. A report has only those that are in it. */
	has(path: string, query?: Query): boolean;
	/** Returns the JSON reply of a path. Rejects with a SourceError. */
	json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
	/** Returns the bytes of a binary reply. */
	binary(path: string, query?: Query, signal?: AbortSignal): Promise<ArrayBuffer>;
}

export class SourceError extends Error {
	/** HTTP status, or 0 if there was no reply. */
	readonly status: number;
	constructor(message: string, status: number) {
		super(message);
		this.name = "SourceError";
		this.status = status;
	}
}

/** Returns a path with its query in a canonical form: parameters sorted by name, undefined ones omitted. */
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
