// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels that fit into a table: without parameters and namespaces. Kernels that differ only in their template
// arguments are shown with these. Tooltips and details have the complete names.

interface Named {
	name: string;
	/** The name without template arguments and parameters, if the reply has it. */
	short_name?: string;
}

const NAMESPACES = /(?:(?:\b\w+|\(anonymous namespace\))::)+(?=\w)/g;
/** Templates of cutlass contain the name that describes the kernel as their only argument. */
const ONLY_ARGUMENT = /^Kernel\d?<(\w+)>$/;

/** Returns the text without the parameters at its end. */
function withoutParameters(text: string): string {
	if (!text.endsWith(")")) return text;
	let depth = 0;
	for (let i = text.length - 1; i > 0; i--) {
		if (text[i] === ")") depth++;
		else if (text[i] === "(" && --depth === 0) return text.slice(0, i);
	}
	return text;
}

const LAMBDAS = /::(?:operator\(\)\([^)]*\) const|\{lambda\([^)]*\)#\d+\})/g;

/** Returns the name with its template arguments. */
function described(name: string): string {
	const text = withoutParameters(name.replace(/^void /, "")).replace(NAMESPACES, "").replace(/ (?=>)/g, "");
	return ONLY_ARGUMENT.exec(text)?.[1] ?? text;
}

/** Returns the names to show, by complete name. Different kernels have different names. */
export function kernelNames(kernels: readonly Named[]): ReadonlyMap<string, string> {
	const shown = new Map<string, string>();
	const taken = new Set<string>();
	const forms = [({ name, short_name }: Named) => (short_name ?? described(name.replace(LAMBDAS, ""))).replace(NAMESPACES, ""), ({ name }: Named) => described(name.replace(LAMBDAS, "")), ({ name }: Named) => described(name), ({ name }: Named) => name];
	let left = [...new Map(kernels.map((kernel) => [kernel.name, kernel])).values()];
	for (const form of forms) {
		const uses = new Map<string, number>();
		for (const kernel of left) uses.set(form(kernel), (uses.get(form(kernel)) ?? 0) + 1);
		for (const kernel of left) if (uses.get(form(kernel)) === 1 && !taken.has(form(kernel))) shown.set(kernel.name, form(kernel));
		for (const text of shown.values()) taken.add(text);
		left = left.filter((kernel) => !shown.has(kernel.name));
	}
	return shown;
}
