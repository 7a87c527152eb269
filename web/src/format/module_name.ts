// SPDX-License-Identifier: Apache-2.0

import { signal } from "@preact/signals";

const MARK = "nn.Module: ";

/** Of the trace on the screen: paths in the model ("blocks.0.attn") by the names that events have. */
export const modulePaths = signal<ReadonlyMap<string, string>>(new Map());

export function isModule(name: string): boolean {
	return name.startsWith(MARK);
}

/** The path of a module in the model; "Conv2d_0" of "nn.Module: Conv2d_0", as torch.profiler names it, where that is unknown. */
export function moduleName(name: string): string {
	return modulePaths.value.get(name) ?? (isModule(name) ? name.slice(MARK.length) : name);
}
