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
	/** Why its figures differ from what happened, once it was read. */
	diagnostics: Diagnostic[];
	error: string | null;
}

export interface Diagnostic {
	kind: string;
	message: string;
	count: number;
	/** In the text, where the first is; null for records that were lost. */
	byte: number | null;
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
