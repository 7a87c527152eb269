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

/** Advice for the ranks of a run reads them again, so only this much is read without a request of the user. */
const BYTES_MOST = 256 * 1024 * 1024;
const RANKS_MOST = 64;

export function isSmallRun(run: readonly TraceEntry[]): boolean {
	return run.length <= RANKS_MOST && run.reduce((sum, trace) => sum + trace.bytes, 0) <= BYTES_MOST;
}

/** Returns the two traces to compare: those of the address; by default the first one of the list, as in `opstrobe serve BASE NEW`,
 * and the open one. */
export function sidesOf<T extends { id: string }>(open: T, traces: readonly T[], base: string, to: string): { base?: T | undefined; now?: T | undefined } {
	const from = traces.find((each) => each.id === base) ?? traces[0];
	const others = traces.filter((each) => each !== from);
	return { base: from, now: others.find((each) => each.id === to) ?? others.find((each) => each === open) ?? others[0] };
}
