// SPDX-License-Identifier: Apache-2.0
//
// Finds the ranks of a run that wait least and longest. Whether a rank is late is in the reply.
import type { Distributed } from "../data/replies";

type Wait = Distributed["wait"][string];

function byWait(wait: Wait, workers: readonly string[]): string[] {
	const found = workers.flatMap((worker) => (wait[worker] ? [{ worker, waits: wait[worker].synchronizing }] : []));
	return found.sort((a, b) => a.waits - b.waits).map((each) => each.worker);
}

/** Returns the rank that waits least, since the others wait for it. */
export function latestRank(wait: Wait, workers: readonly string[]): string | undefined {
	return byWait(wait, workers)[0];
}

/** Returns the rank that waits longest. */
export function earlyRank(wait: Wait, workers: readonly string[]): string | undefined {
	return byWait(wait, workers).at(-1);
}
