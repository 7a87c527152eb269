// SPDX-License-Identifier: Apache-2.0
//
// Definitions shared by the components of the memory view.

/** A time range in ns since the origin, or that of some steps; if empty, the complete trace. In the form of the API. */
export interface Stretch {
	steps?: string | undefined;
	from?: number;
	to?: number;
}

/** Returns "CPU" for torch's "cpu", and "GPU 0" for "cuda:0", "hip:0" and "xpu:0"; other devices have torch's name. */
export function deviceTitle(device: string): string {
	return device === "cpu" ? "CPU" : device.replace(/^(cuda|hip|xpu)\b:?/, "GPU ").trim();
}

/** Returns "Optimizer state" for "OPTIMIZER_STATE". */
export function categoryTitle(name: string): string {
	const text = name.toLowerCase().replaceAll("_", " ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}
