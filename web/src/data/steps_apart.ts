// SPDX-License-Identifier: Apache-2.0
//
// Whether views open on the steps of a trace instead of the complete trace.

/** Views over time open on the steps if these cover less than this share of the trace: the rest would take room. */
const SMALL_SHARE = 0.75;

interface Timed {
	start_ns: number;
	end_ns: number;
}

/** Returns the time range of the steps if they are a small part of the trace, else undefined. The rest is then imports and preparations,
 * which readers rarely look for. */
export function stepsApart({ steps, duration_ns }: { steps: readonly Timed[]; duration_ns: number }): { from: number; to: number } | undefined {
	if (steps.length === 0) return undefined;
	const from = Math.min(...steps.map((each) => each.start_ns));
	const to = Math.max(...steps.map((each) => each.end_ns));
	return to - from < SMALL_SHARE * duration_ns ? { from, to } : undefined;
}
