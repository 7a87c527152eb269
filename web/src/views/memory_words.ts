// SPDX-License-Identifier: Apache-2.0
// What the parts of the view of memory share.

/** A stretch of time, ns since the origin, or that of some steps; all of it without. As the API takes it. */
export interface Stretch {
	steps?: string | undefined;
	from?: number;
	to?: number;
}

/** "Optimizer state" for "OPTIMIZER_STATE". */
export function categoryTitle(name: string): string {
	const text = name.toLowerCase().replaceAll("_", " ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}
