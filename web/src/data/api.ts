// SPDX-License-Identifier: Apache-2.0
// The replies that more than one view reads, as docs/openapi.yaml describes them.
import type { Finding } from "./replies";

export interface TraceEntry {
	id: string;
	/** The directory. */
	run: string;
	worker: string;
	span: number | null;
	/** Of the file. */
	name: string;
	path: string;
	bytes: number;
	/** When the file was written; null: it is not a regular file. */
	changed_ns: number | null;
	state: "listed" | "reading" | "ready" | "failed";
	/** While it is read. */
	progress: ReadProgress | null;
	events: number | null;
	rank: number | null;
	/** The same for all traces of a job; null until it was read. */
	job: string | null;
	/** If requested, and known. */
	summary: TraceSummary | null;
	/** Why its figures differ from what happened, once it was read. */
	diagnostics: Diagnostic[];
	error: string | null;
}

/** What a list of traces shows of one. */
export interface TraceSummary {
	/** Why the rest is not there. */
	error?: string;
	start_ns: number;
	duration_us: number;
	/** The median in microseconds. */
	steps: { from: string; count: number; median: number | null };
	/** Those that ran kernels. */
	devices: string[];
	rank: number | null;
	world_size: number | null;
	host: string | null;
	command: string | null;
	top_finding: TopFinding | null;
}

export type TopFinding = Pick<Finding, "id" | "title" | "severity" | "confidence" | "where" | "predicted_gain_ms_per_step" | "predicted_gain_percent" | "predicted_gain_bound">;

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
