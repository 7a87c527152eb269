// SPDX-License-Identifier: Apache-2.0
//
// A tree of calls as boxes: their widths and rows, and which are worth drawing. Trees are large and may be deep, so
// every walk has its own stack and skips boxes that would be too narrow to see.

export interface CallNode {
	name: string;
	/** Its source position, if known. */
	file: string | null;
	line: number | null;
	/** Including everything below. */
	total: number;
	/** Excluding everything below. */
	self: number;
	children: CallNode[];
	parent: CallNode | null;
	/** The same for the trace that it is compared with. */
	other?: { total: number; self: number };
}

/** A box, in fractions of the width. */
export interface Box {
	node: CallNode;
	depth: number;
	from: number;
	width: number;
	/** Number of siblings merged here because they are too narrow to draw. */
	merged: number;
	/** It contains the node that is zoomed to. */
	above: boolean;
}

/** Returns a node of a tree. Sets the parents of its children, and adds their totals. */
export function callNode(name: string, self: number, children: CallNode[] = []): CallNode {
	const node: CallNode = { name, file: null, line: null, self, total: self, children, parent: null };
	for (const child of children) {
		child.parent = node;
		node.total += child.total;
	}
	return node;
}

/** Deeper levels become visible by zooming. */
const DEEPEST = 500;
const ABOVE_MAX = 100;

/** Returns the boxes of a node's descendants, and of its ancestors over the full width. */
export function flameBoxes(root: CallNode, least: number): Box[] {
	const boxes: Box[] = [];
	const above: CallNode[] = [];
	for (let node = root.parent; node && above.length < ABOVE_MAX; node = node.parent) above.push(node);
	above.reverse().forEach((node, depth) => boxes.push({ node, depth, from: 0, width: 1, merged: 0, above: true }));
	const waiting: Box[] = [{ node: root, depth: above.length, from: 0, width: 1, merged: 0, above: false }];
	const scale = root.total > 0 ? 1 / root.total : 0;
	for (let box = waiting.pop(); box; box = waiting.pop()) {
		boxes.push(box);
		if (box.depth >= DEEPEST) continue;
		let from = box.from;
		let hidden: Box | undefined;
		for (const node of box.node.children) {
			const width = node.total * scale;
			if (width >= least) {
				hidden = undefined;
				waiting.push({ node, depth: box.depth + 1, from, width, merged: 0, above: false });
			} else if (hidden) {
				hidden.width += width;
				hidden.merged++;
			} else {
				hidden = { node, depth: box.depth + 1, from, width, merged: 1, above: false };
				boxes.push(hidden);
			}
			from += width;
		}
	}
	return boxes.filter((box) => box.merged === 0 || box.width >= least);
}

/** Visits every node of a tree before its descendants. */
export function* walk(root: CallNode): Generator<CallNode> {
	const waiting = [root];
	for (let node = waiting.pop(); node; node = waiting.pop()) {
		yield node;
		for (let i = node.children.length - 1; i >= 0; i--) waiting.push(node.children[i]!);
	}
}

export interface Found {
	nodes: Set<CallNode>;
	/** Their time, counting nested ones once. */
	total: number;
}

/** Finds nodes whose name contains a text, ignoring case. */
export function findNodes(root: CallNode, text: string): Found {
	const wanted = text.toLowerCase();
	const found: Found = { nodes: new Set(), total: 0 };
	if (wanted === "") return found;
	const waiting: [CallNode, boolean][] = [[root, false]];
	for (let next = waiting.pop(); next; next = waiting.pop()) {
		const [node, inside] = next;
		const matches = node.name.toLowerCase().includes(wanted);
		if (matches) {
			found.nodes.add(node);
			if (!inside) found.total += node.total;
		}
		for (const child of node.children) waiting.push([child, inside || matches]);
	}
	return found;
}

export interface FunctionRow {
	name: string;
	self: number;
	total: number;
	/** Number of places in the tree where it occurs. */
	places: number;
}

/** Returns each function's time over the complete tree. Recursive calls count once. */
export function functionRows(root: CallNode): FunctionRow[] {
	const rows = new Map<string, FunctionRow>();
	const open = new Map<string, number>();
	const waiting: (CallNode | string)[] = [...root.children].reverse();
	for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
		if (typeof next === "string") {
			open.set(next, open.get(next)! - 1);
			continue;
		}
		const { name } = next;
		let row = rows.get(name);
		if (!row) rows.set(name, (row = { name, self: 0, total: 0, places: 0 }));
		const depth = open.get(name) ?? 0;
		row.self += next.self;
		row.places++;
		if (depth === 0) row.total += next.total;
		open.set(name, depth + 1);
		waiting.push(name); // closes it after everything below
		for (const child of next.children) waiting.push(child);
	}
	return [...rows.values()].sort((a, b) => b.self - a.self);
}

/** Returns both sides of a function: its callers (each box's caller is below it), and its callees. */
export function sandwich(root: CallNode, name: string): { callers: CallNode; callees: CallNode } {
	const callers = callNode(name, 0);
	const callees = callNode(name, 0);
	for (const node of walk(root)) {
		if (node.name !== name || hasAbove(node, name)) continue;
		addCallers(callers, node, root);
		addBelow(callees, node);
	}
	callers.total = callees.total;
	for (const tree of [callers, callees]) sortTree(tree);
	return { callers, callees };
}

function hasAbove(node: CallNode, name: string): boolean {
	for (let above = node.parent; above; above = above.parent) if (above.name === name) return true;
	return false;
}

function childLike(node: CallNode, like: CallNode, index: Map<CallNode, Map<string, CallNode>>): CallNode {
	let names = index.get(node);
	if (!names) {
		names = new Map<string, CallNode>();
		for (const each of node.children) names.set(each.name, each);
		index.set(node, names);
	}
	let child = names.get(like.name);
	if (!child) {
		child = { ...callNode(like.name, 0), file: like.file, line: like.line, parent: node };
		node.children.push(child);
		names.set(like.name, child);
	}
	return child;
}

const indexes = new WeakMap<CallNode, Map<CallNode, Map<string, CallNode>>>();

function indexOf(tree: CallNode): Map<CallNode, Map<string, CallNode>> {
	let index = indexes.get(tree);
	if (!index) indexes.set(tree, (index = new Map<CallNode, Map<string, CallNode>>()));
	return index;
}

function addCallers(tree: CallNode, node: CallNode, root: CallNode): void {
	const index = indexOf(tree);
	let at = tree;
	for (let above = node.parent; above && above !== root; above = above.parent) {
		at = childLike(at, above, index);
		at.total += node.total;
	}
	at.self += node.total;
}

function addBelow(tree: CallNode, node: CallNode): void {
	const index = indexOf(tree);
	const waiting: [CallNode, CallNode][] = [[tree, node]];
	for (let next = waiting.pop(); next; next = waiting.pop()) {
		const [to, from] = next;
		to.self += from.self;
		to.total += from.total;
		for (const child of from.children) waiting.push([childLike(to, child, index), child]);
	}
}

function sortTree(tree: CallNode): void {
	for (const node of walk(tree)) node.children.sort((a, b) => b.total - a.total);
}

/** Returns the child indexes from the root to a node, to find it again in another tree or after a reload. */
export function pathOf(node: CallNode): number[] {
	const path: number[] = [];
	for (let at = node; at.parent; at = at.parent) path.push(at.parent.children.indexOf(at));
	return path.reverse();
}

export function nodeAt(root: CallNode, path: readonly number[]): CallNode | undefined {
	let node: CallNode | undefined = root;
	for (const i of path) node = node?.children[i];
	return node;
}
