// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank of a run that the others wait for.
import type { Distributed } from "../data/replies";

/** A rank is late if the others wait for more than this share of their communication. */
const LATE_SHARE = 0.1;

type Wait = Distributed["wait"][string];

export interface Late {
	worker: string;
	/** How much longer the others wait than it does, on average, in µs. */
	wait: number;
}

function found(wait: Wait, workers: readonly string[]) {
	return workers.flatMap((worker) => (wait[worker] ? [{ worker, ...wait[worker] }] : []));
}

/** Returns the rank that waits least, since the others wait for it. Undefined if all wait about equally long. */
export function lateRank(wait: Wait, workers: readonly string[], least = LATE_SHARE): Late | undefined {
	const all = found(wait, workers);
	const late = all.reduce<(typeof all)[number] | undefined>((min, each) => (min && min.synchronizing <= each.synchronizing ? min : each), undefined);
	if (!late || all.length < 2) return undefined;
	const others = all.filter((each) => each !== late);
	const mean = (of: (each: (typeof all)[number]) => number): number => others.reduce((sum, each) => sum + of(each), 0) / others.length;
	const longer = mean((each) => each.synchronizing) - late.synchronizing;
	return longer > least * mean((each) => each.synchronizing + each.data_transfer) ? { worker: late.worker, wait: longer } : undefined;
}

/** Returns the rank that waits longest. */
export function earlyRank(wait: Wait, workers: readonly string[]): string | undefined {
	const all = found(wait, workers);
	return all.reduce<(typeof all)[number] | undefined>((max, each) => (max && max.synchronizing >= each.synchronizing ? max : each), undefined)?.worker;
}
