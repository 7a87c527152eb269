// SPDX-License-Identifier: Apache-2.0
import type { TraceEntry } from "../data/api";

/** Returns the traces of the same job, including this one. */
export function runOf(trace: TraceEntry, traces: readonly TraceEntry[]): TraceEntry[] {
	return traces.filter((each) => each === trace || (trace.job !== null && each.job === trace.job && each.state !== "failed"));
}

/** Returns whether all traces in its directory have been read. Before that, the traces of its job are not known. */
export function isRunKnown(trace: TraceEntry, traces: readonly TraceEntry[]): boolean {
	return traces.every((each) => each.run !== trace.run || each.job !== null || each.state === "failed");
}
