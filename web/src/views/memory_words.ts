// SPDX-License-Identifier: Apache-2.0
//
// Definitions shared by the components of the memory view.

/** A time range in ns since the origin, or that of some steps; if empty, the complete trace. In the form of the API. */
export interface Stretch {
	steps?: string | undefined;
	from?: number;
	to?: number;
}

/** Returns "the CPU" for "cpu"; other devices have the name that torch gives them, "cuda:0". */
export function deviceTitle(device: string): string {
	return device === "cpu" ? "the CPU" : device;
}

/** Returns "Optimizer state" for "OPTIMIZER_STATE". */
export function categoryTitle(name: string): string {
	const text = name.toLowerCase().replaceAll("_", " ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}
