// SPDX-License-Identifier: Apache-2.0
import type { TraceEntry } from "../data/api";

/** The traces that ran together with this one, itself too: one of each worker of its run, of the same cycle. */
export function runOf(trace: TraceEntry, traces: readonly TraceEntry[]): TraceEntry[] {
	return traces.filter((each) => each === trace || (each.run === trace.run && each.span === trace.span && each.worker !== trace.worker && each.state !== "failed"));
}
