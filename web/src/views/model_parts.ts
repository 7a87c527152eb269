// SPDX-License-Identifier: Apache-2.0
// The modules of a trace as parts of a drawing: nested, in order of their first calls, equal neighbours folded to one part.
import { addTo } from "../data/groups";
import type { Module } from "../data/replies";

export interface Part {
	/** Unique in the drawing, and the same when other parts are folded. */
	key: string;
	/** Its modules: one, or equal ones in order. */
	modules: Module[];
	children: Part[];
}

/** What a part is coloured by. */
export interface Heat {
	id: string;
	title: string;
	kind: "us" | "bytes" | "count";
	/** With the modules inside. */
	of: (module: Module) => number;
}

export const HEATS: readonly Heat[] = [
	{ id: "cpu", title: "CPU time", kind: "us", of: ({ total }) => (total.host_ns + total.backward_ns) / 1e3 },
	{ id: "device", title: "Device time", kind: "us", of: ({ total }) => (total.device_ns + total.backward_device_ns) / 1e3 },
	{ id: "forward", title: "Forward", kind: "us", of: ({ total }) => total.host_ns / 1e3 },
	{ id: "backward", title: "Backward", kind: "us", of: ({ total }) => total.backward_ns / 1e3 },
	{ id: "memory", title: "Allocated memory", kind: "bytes", of: ({ total }) => total.cpu_allocated_bytes + total.device_allocated_bytes },
	{ id: "flops", title: "FLOPs", kind: "count", of: ({ total }) => total.flops },
	{ id: "parameters", title: "Parameters", kind: "count", of: (module) => module.parameter_count },
];

/** The whole model, of modules that were called or hold some that were. Keys in `unfolded` are of parts that are not folded. */
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

/** Equal numbers for modules of one class, with as many parameters, that hold equal modules under equal names. Names are without their
 * numbers, which torch.profiler gives to all modules of a class. */
function shapesOf(modules: readonly Module[], childrenOf: (module: Module) => Module[]): Map<Module, number> {
	const numbers = new Map<string, number>();
	const shapes = new Map<Module, number>();
	for (const module of [...modules].reverse()) {
		// A module comes after the one that holds it.
		const inside = childrenOf(module).map((child) => [lastName(child).replace(/_?\d+$/, ""), shapes.get(child)]);
		const text = JSON.stringify([module.class, module.parameter_count, inside]);
		if (!numbers.has(text)) numbers.set(text, numbers.size);
		shapes.set(module, numbers.get(text)!);
	}
	return shapes;
}

/** "attn" of "layers.0.attn": what it is called in the module that holds it. */
export function lastName(module: Module): string {
	return module.path.slice(module.path.lastIndexOf(".") + 1);
}

/** What a part takes with all in it. */
export function totalOf(part: Part, heat: Heat): number {
	return part.modules.reduce((sum, module) => sum + heat.of(module), 0);
}

/** What its children do not account for. */
export function selfOf(part: Part, heat: Heat): number {
	return Math.max(0, totalOf(part, heat) - part.children.reduce((sum, child) => sum + totalOf(child, heat), 0));
}

/** Depths of which parts are open at first: as many as give no more than about so many boxes. */
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
