// SPDX-License-Identifier: Apache-2.0
import type { TraceEntry } from "../data/api";

/** The traces that ran together with this one, itself too: those of its job. */
export function runOf(trace: TraceEntry, traces: readonly TraceEntry[]): TraceEntry[] {
	return traces.filter((each) => each === trace || (trace.job !== null && each.job === trace.job && each.state !== "failed"));
}

/** Whether all traces in its directory were read: only then it is known which of them ran together. */
export function isRunKnown(trace: TraceEntry, traces: readonly TraceEntry[]): boolean {
	return traces.every((each) => each.run !== trace.run || each.job !== null || each.state === "failed");
}
