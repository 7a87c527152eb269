// SPDX-License-Identifier: Apache-2.0
//
// The modules of a trace as parts of a drawing: nested, in order of their first calls, with equal neighbours folded
// into one part.
import { addTo } from "../data/groups";
import type { Module } from "../data/replies";
import type { Kind } from "../format/scale";

export interface Part {
	/** Unique in the drawing, and unchanged when other parts are folded. */
	key: string;
	/** Its modules: one, or equal ones in order. */
	modules: Module[];
	children: Part[];
}

/** The quantity that colours a part. */
export interface Heat {
	id: string;
	title: string;
	kind: Kind;
	/** Including inner modules. */
	of: (module: Module) => number;
}

export const HEATS: readonly Heat[] = [
	{ id: "cpu", title: "CPU time", kind: "us", of: ({ total }) => (total.host_ns + total.backward_ns) / 1e3 },
	{ id: "device", title: "Device time", kind: "us", of: ({ total }) => (total.device_ns + total.backward_device_ns) / 1e3 },
	{ id: "forward", title: "Forward", kind: "us", of: ({ total }) => total.host_ns / 1e3 },
	{ id: "backward", title: "Backward", kind: "us", of: ({ total }) => total.backward_ns / 1e3 },
	{ id: "memory", title: "Allocated memory", kind: "bytes", of: ({ total }) => total.cpu_allocated_bytes + total.device_allocated_bytes },
	{ id: "flops", title: "FLOPs", kind: "flops", of: ({ total }) => total.flops },
	{ id: "parameters", title: "Parameters", kind: "count", of: (module) => module.parameter_count },
];

/** Returns the complete model, without modules that are not called and contain no called ones. Keys in `unfolded` are
 * those of parts to unfold. */
export function modelParts(modules: readonly Module[], fold: boolean, unfolded: ReadonlySet<string>): Part[] {
	const places = new Map(modules.map((module, i) => [module, i]));
	const below = new Map<number | null, Module[]>();
	for (const module of modules) {
		if (module.first_call === null) continue;
		const above = module.parent === null || modules[module.parent]?.first_call === null ? null : module.parent;
		addTo(below, above, module);
	}
	for (const children of below.values()) children.sort((a, b) => a.first_call! - b.first_call!);
	const childrenOf = (module: Module): Module[] => below.get(places.get(module)!) ?? [];
	const shapes = shapesOf(modules, childrenOf);

	/** `lists`: the children of equal modules, which are equal one by one. */
	const partsOf = (lists: readonly Module[][]): Part[] => {
		const first = lists[0] ?? [];
		const parts: Part[] = [];
		for (let i = 0, next = 0; i < first.length; i = next) {
			next = i + 1;
			while (next < first.length && shapes.get(first[next]!) === shapes.get(first[i]!)) next++;
			const key = `${places.get(first[i]!)!}`;
			if (!fold || unfolded.has(key)) {
				for (let each = i; each < next; each++) parts.push(part(`${places.get(first[each]!)!}`, lists.map((list) => list[each]!)));
			} else {
				parts.push(part(key, lists.flatMap((list) => list.slice(i, next))));
			}
		}
		return parts;
	};
	const part = (key: string, members: Module[]): Part => ({ key, modules: members, children: partsOf(members.map(childrenOf)) });
	return partsOf([below.get(null) ?? []]);
}

/** Returns equal numbers for modules of the same class with equally many parameters that contain equal modules under
 * equal names. Names are without the numbers that torch.profiler assigns to the modules of a class. */
function shapesOf(modules: readonly Module[], childrenOf: (module: Module) => Module[]): Map<Module, number> {
	const numbers = new Map<string, number>();
	const shapes = new Map<Module, number>();
	for (const module of [...modules].reverse()) {
		// A module comes after the module that contains it.
		const inside = childrenOf(module).map((child) => [lastName(child).replace(/_?\d+$/, ""), shapes.get(child)]);
		const text = JSON.stringify([module.class, module.parameter_count, inside]);
		if (!numbers.has(text)) numbers.set(text, numbers.size);
		shapes.set(module, numbers.get(text)!);
	}
	return shapes;
}

/** Returns "attn" for "layers.0.attn": the name within the module that contains it. */
export function lastName(module: Module): string {
	return module.path.slice(module.path.lastIndexOf(".") + 1);
}

/** Returns the cost of a part including its contents. */
export function totalOf(part: Part, heat: Heat): number {
	return part.modules.reduce((sum, module) => sum + heat.of(module), 0);
}

/** Returns the cost that its children do not account for. */
export function selfOf(part: Part, heat: Heat): number {
	return Math.max(0, totalOf(part, heat) - part.children.reduce((sum, child) => sum + totalOf(child, heat), 0));
}

/** Returns up to which depth parts are initially open, to show about this many boxes. */
export function openDepth(parts: readonly Part[], boxes: number): number {
	let level = [...parts];
	let count = level.length;
	let depth = 0;
	for (;;) {
		const next = level.flatMap((part) => part.children);
		if (next.length === 0 || (count + next.length > boxes && depth > 0)) return depth;
		count += next.length;
		depth++;
		level = next;
	}
}
