// SPDX-License-Identifier: Apache-2.0

import { signal } from "@preact/signals";

const MARK = "nn.Module: ";

/** Of the current trace: paths in the model ("blocks.0.attn") by the names of events. */
export const modulePaths = signal<ReadonlyMap<string, string>>(new Map());

export function isModule(name: string): boolean {
	return name.startsWith(MARK);
}

/** Returns the path of a module in the model; if unknown, the name given by torch.profiler: "Conv2d_0" for "nn.Module:
 * Conv2d_0". */
export function moduleName(name: string): string {
	return modulePaths.value.get(name) ?? (isModule(name) ? name.slice(MARK.length) : name);
}

/** Returns the last parts of a dotted path that fit, since the boxes around one have the first: "mlp.0" for "blocks.11.mlp.0". */
export function lastParts(path: string, room: number): string {
	if (!/^\w+(\.\w+)+$/.test(path)) return path;
	const parts = path.split(".");
	while (parts.length > 1 && parts.join(".").length > room) parts.shift();
	return parts.join(".");
}
