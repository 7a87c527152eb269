// SPDX-License-Identifier: Apache-2.0
//
// The replies that several views read; docs/openapi.yaml describes them.
import type { Finding } from "./replies";

export interface TraceEntry {
	id: string;
	/** The directory. */
	run: string;
	worker: string;
	span: number | null;
	/** Name of the file. */
	name: string;
	path: string;
	bytes: number;
	/** When the file was written; null if it is not a regular file. */
	changed_ns: number | null;
	state: "listed" | "reading" | "ready" | "failed";
	/** Set while it is read. */
	progress: ReadProgress | null;
	events: number | null;
	rank: number | null;
	/** The same for all traces of a job; null until the trace has been read. */
	job: string | null;
	/** Set if requested and known. */
	summary: TraceSummary | null;
	/** Reasons why its figures are inaccurate, known once it has been read. */
	diagnostics: Diagnostic[];
	error: string | null;
}

/** The summary of a trace in a list of traces. */
export interface TraceSummary {
	/** Reason why the other members are missing. */
	error?: string;
	start_ns: number;
	duration_us: number;
	/** The median in microseconds. */
	steps: { from: string; count: number; median: number | null };
	/** Devices that ran kernels. */
	devices: string[];
	rank: number | null;
	world_size: number | null;
	host: string | null;
	command: string | null;
	top_finding: TopFinding | null;
}

export type TopFinding = Pick<Finding, "id" | "title" | "severity" | "confidence" | "where" | "predicted_gain_ms_per_step" | "predicted_gain_percent" | "predicted_gain_lower_percent" | "predicted_gain_upper_percent" | "predicted_gain_bound" | "predicted_gain_interval" | "predicted_gain_warning">;

export interface Diagnostic {
	kind: string;
	message: string;
	count: number;
	/** Position of the first in the text; null for lost records. */
	byte: number | null;
}

export interface ReadProgress {
	/** Share of the file from 0 to 1; null if its size is unknown. At 1 the events are being sorted. */
	share: number | null;
	bytes: number;
	events: number;
	/** Number of irregularities. */
	notes: number;
}

export interface TraceList {
	generation: number;
	/** Whether new traces may appear. */
	watching: boolean;
	traces: TraceEntry[];
}
