// SPDX-License-Identifier: Apache-2.0

const MARK = "nn.Module: ";

export function isModule(name: string): boolean {
	return name.startsWith(MARK);
}

/** "Conv2d_0" of "nn.Module: Conv2d_0", as torch.profiler names a module; those that Opstrobe names are as in the model. */
export function moduleName(name: string): string {
	return isModule(name) ? name.slice(MARK.length) : name;
}
