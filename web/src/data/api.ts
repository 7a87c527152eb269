// SPDX-License-Identifier: Apache-2.0
// The replies that more than one view reads, as docs/http-api.md describes them.

export interface TraceEntry {
	id: string;
	name: string;
	path: string;
	bytes: number;
	events: number;
	ranks: number[];
	/** Whether it is read yet: loading, ready or failed (with `error`). */
	state: "loading" | "ready" | "failed";
	error?: string;
}

export interface TraceList {
	traces: TraceEntry[];
}
