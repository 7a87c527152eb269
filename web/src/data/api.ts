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
	/** While it is read. */
	progress: ReadProgress | null;
	events: number | null;
	rank: number | null;
	error: string | null;
}

export interface ReadProgress {
	/** Of the file, 0 to 1; null where its size is not known. At 1 the events are put in order. */
	share: number | null;
	bytes: number;
	events: number;
	/** What is not as it should be. */
	notes: number;
}

export interface TraceList {
	generation: number;
	/** Whether new ones may appear. */
	watching: boolean;
	traces: TraceEntry[];
}
