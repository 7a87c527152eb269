// SPDX-License-Identifier: Apache-2.0
// The replies that more than one view reads, as docs/openapi.yaml describes them.

export interface TraceEntry {
	id: string;
	/** The directory; traces of one run are ranks or cycles of one program. */
	run: string;
	worker: string;
	span: number | null;
	/** Of the file. */
	name: string;
	path: string;
	bytes: number;
	state: "listed" | "reading" | "ready" | "failed";
	progress: number | null;
	events: number | null;
	rank: number | null;
	error: string | null;
}

export interface TraceList {
	generation: number;
	/** Whether new ones may appear. */
	watching: boolean;
	traces: TraceEntry[];
}
