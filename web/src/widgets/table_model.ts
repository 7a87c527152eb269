// SPDX-License-Identifier: Apache-2.0
// What a table shows: which rows, in which order, under which groups. No drawing here.
import type { Kind } from "../format/scale";

export type Cell = string | number | boolean | null;

export interface Column<R> {
	id: string;
	title: string;
	/** Explains the figure, in a tooltip of the header. */
	about?: string;
	kind: Kind | "text" | "flag";
	value: (row: R) => Cell;
	/** A shorter text to show; the value is in the tooltip, and is what is filtered and exported. */
	shown?: (row: R) => string;
	/** Rows may be grouped by it. */
	groups?: boolean;
	/** What a group shows: the sum of times, bytes and counts unless it says otherwise. */
	total?: "sum" | "max" | "none";
	/** Not shown until it is asked for. */
	hidden?: boolean;
	/** A bar behind the figure shows its share of the largest. */
	bar?: boolean;
	/** A difference: figures above 0 have a sign, too. */
	signed?: boolean;
	/** Where its text leads: to what the row is of. */
	link?: (row: R) => string;
	/** Text that takes the space that is left. */
	wide?: boolean;
}

export interface Order {
	column: string;
	descending: boolean;
}

/** A line of the table: a row, or the head of a group of rows, or a node of a tree. */
export interface Line<R> {
	key: string;
	depth: number;
	row: R | null;
	/** The group's title and figures. */
	group?: { title: string; count: number; cells: Map<string, Cell> };
	/** undefined: nothing below. */
	open?: boolean;
}

/** "-calls" is the calls, the largest first. */
export function parseOrder(text: string | undefined): Order | undefined {
	if (!text) return undefined;
	return text.startsWith("-") ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

export function orderText(order: Order): string {
	return (order.descending ? "-" : "") + order.column;
}

function compareCells(a: Cell, b: Cell): number {
	if (typeof a === "number" && typeof b === "number") return a - b;
	return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** The rows in order. What has no figure comes last either way; equal rows stay as they were. */
export function sortRows<R>(rows: readonly R[], columns: readonly Column<R>[], order: Order | undefined): R[] {
	const column = columns.find((each) => each.id === order?.column);
	if (!column || !order) return [...rows];
	const keyed = rows.map((row) => ({ row, cell: column.value(row) }));
	const sign = order.descending ? -1 : 1;
	keyed.sort((a, b) => {
		if (a.cell === null || b.cell === null) return Number(a.cell === null) - Number(b.cell === null);
		return sign * compareCells(a.cell, b.cell);
	});
	return keyed.map((each) => each.row);
}

/** Whether a row is wanted. */
export type Test<R> = (row: R) => boolean;

const UNITS: Record<string, Partial<Record<string, number>>> = {
	us: { ns: 1e-3, us: 1, µs: 1, ms: 1e3, s: 1e6 },
	bytes: { b: 1, kb: 1024, kib: 1024, k: 1024, mb: 1024 ** 2, mib: 1024 ** 2, m: 1024 ** 2, gb: 1024 ** 3, gib: 1024 ** 3, g: 1024 ** 3 },
	share: { "%": 0.01 },
	pct: { "%": 1 },
};

/**
 * Reads what was typed into the filter: words that a text of the row holds, all of them, in any case; `-word` for rows
 * without it; `calls>10`, `self>=1.5ms`, `size<2MB` for figures, by the beginning of a column's id or title.
 * "Words in quotes" stay together.
 */
export function parseFilter<R>(text: string, columns: readonly Column<R>[]): Test<R> {
	const tests: Test<R>[] = [];
	for (const match of text.matchAll(/(-?)(?:"([^"]*)"?|(\S+))/g)) {
		const word = match[2] ?? match[3] ?? "";
		if (word === "") continue;
		const test = (match[2] === undefined ? comparison(word, columns) : undefined) ?? holds(word, columns);
		tests.push(match[1] ? (row) => !test(row) : test);
	}
	return (row) => tests.every((test) => test(row));
}

const COMPARISON = /^([\p{L}_ ]+)(<=|>=|=|<|>)(.*)$/u;

/** Why a comparison in a filter is not one, in a sentence; undefined if there is nothing wrong. */
export function filterProblem<R>(text: string, columns: readonly Column<R>[]): string | undefined {
	const figures = columns.filter((column) => column.kind !== "text" && column.kind !== "flag");
	for (const match of text.matchAll(/(-?)(?:"([^"]*)"?|(\S+))/g)) {
		const word = match[3] ?? "";
		const [, name = "", , right = ""] = COMPARISON.exec(word) ?? [];
		if (name === "" || comparison(word, columns)) continue;
		const column = figures.find((each) => named(each, name));
		const [, number, unit = ""] = /^(-?\d+(?:\.\d+)?)(.*)$/.exec(right) ?? [];
		const choices = Object.keys((column && UNITS[column.kind]) ?? {});
		if (!column) {
			if (number === undefined || !/^[\p{L}%]*$/u.test(unit)) continue; // "kernel<4,": part of a name
			return `No column '${name}' with figures (choose from ${figures.map((each) => each.id).join(", ")}). Put text that contains < or > in quotes.`;
		}
		if (number === undefined) return `'${right}' is not a number: write for example ${column.id}>${column.kind === "us" ? "1ms" : "10"}.`;
		return choices.length > 0 ? `Invalid unit '${unit}' (choose from ${choices.join(", ")}).` : `'${column.title}' has no unit, but '${right}' has one.`;
	}
	return undefined;
}

function holds<R>(word: string, columns: readonly Column<R>[]): Test<R> {
	const wanted = word.toLowerCase();
	const texts = columns.filter((column) => column.kind === "text");
	return (row) => texts.some((column) => String(column.value(row) ?? "").toLowerCase().includes(wanted));
}

function comparison<R>(word: string, columns: readonly Column<R>[]): Test<R> | undefined {
	const match = /^([\p{L}_ ]+)(<=|>=|=|<|>)(-?\d+(?:\.\d+)?)([\p{L}%]*)$/u.exec(word);
	if (!match) return undefined;
	const [, name = "", operator, number, unit = ""] = match;
	const column = columns.find((each) => each.kind !== "text" && named(each, name));
	if (!column) return undefined;
	const factor = unit === "" ? 1 : UNITS[column.kind]?.[unit.toLowerCase()];
	if (factor === undefined) return undefined;
	const limit = Number(number) * factor;
	return (row) => {
		const value = column.value(row);
		if (typeof value !== "number") return false;
		switch (operator) {
			case "<":
				return value < limit;
			case ">":
				return value > limit;
			case "<=":
				return value <= limit;
			case ">=":
				return value >= limit;
			default:
				return value === limit;
		}
	};
}

function named<R>(column: Column<R>, name: string): boolean {
	const wanted = name.toLowerCase().replace(/[_ ]/g, "");
	return [column.id, column.title].some((text) => text.toLowerCase().replace(/[_ ]/g, "").startsWith(wanted));
}

/** What a group shows of a column. */
export function totalOf<R>(column: Column<R>, rows: readonly R[]): Cell {
	const way = column.total ?? (column.kind === "us" || column.kind === "bytes" || column.kind === "count" ? "sum" : "none");
	if (way === "none") return null;
	let total: number | null = null;
	for (const row of rows) {
		const value = column.value(row);
		if (typeof value !== "number") continue;
		if (total === null) total = value;
		else total = way === "sum" ? total + value : Math.max(total, value);
	}
	return total;
}

/** The lines of a flat table, under the values of a column if it is grouped by one. Groups come in the table's order. */
export function tableLines<R>(
	rows: readonly R[],
	columns: readonly Column<R>[],
	order: Order | undefined,
	groupBy: Column<R> | undefined,
	closed: ReadonlySet<string>,
): Line<R>[] {
	const sorted = sortRows(rows, columns, order);
	if (!groupBy) return sorted.map((row, i) => ({ key: String(i), depth: 0, row }));
	const groups = new Map<string, R[]>();
	for (const row of sorted) {
		const title = cellText(groupBy.value(row));
		const members = groups.get(title);
		if (members) members.push(row);
		else groups.set(title, [row]);
	}
	const heads = [...groups].map(([title, members]) => ({
		title,
		members,
		cells: new Map(columns.map((column) => [column.id, totalOf(column, members)])),
	}));
	const by = columns.find((column) => column.id === order?.column);
	const byTotal: Column<(typeof heads)[number]>[] = by
		? [{ id: by.id, title: by.title, kind: by.kind, value: (head) => (by.kind === "text" ? head.title : (head.cells.get(by.id) ?? null)) }]
		: [];
	const lines: Line<R>[] = [];
	for (const { title, members, cells } of sortRows(heads, byTotal, order)) {
		const open = !closed.has(title);
		lines.push({ key: `g${title}`, depth: 0, row: null, group: { title, count: members.length, cells }, open });
		if (open) members.forEach((row, i) => lines.push({ key: `${title}\n${i}`, depth: 1, row }));
	}
	return lines;
}

/** The lines of a tree. With a filter, nodes that match and those that hold them, all open. Trees may be deep: no recursion. */
export function treeLines<R>(
	roots: readonly R[],
	children: (row: R) => readonly R[],
	columns: readonly Column<R>[],
	order: Order | undefined,
	isOpen: (key: string, depth: number) => boolean,
	filter?: Test<R>,
): Line<R>[] {
	const kept = filter && matching(roots, children, filter);
	const siblings = (rows: readonly R[], depth: number, path: string): Line<R>[] => {
		const place = new Map(rows.map((row, i) => [row, i]));
		return sortRows(kept ? rows.filter((row) => kept.has(row)) : rows, columns, order)
			.map((row) => ({ key: `${path}/${place.get(row)!}`, depth, row }))
			.reverse();
	};
	const lines: Line<R>[] = [];
	const waiting = siblings(roots, 0, "");
	for (let line = waiting.pop(); line; line = waiting.pop()) {
		lines.push(line);
		const below = children(line.row!);
		if (below.length === 0) continue;
		line.open = filter !== undefined || isOpen(line.key, line.depth);
		if (line.open) for (const child of siblings(below, line.depth + 1, line.key)) waiting.push(child);
	}
	return lines;
}

/** Nodes that pass the test, and all above them. */
function matching<R>(roots: readonly R[], children: (row: R) => readonly R[], test: Test<R>): Set<R> {
	const nodes = roots.map((row) => ({ row, above: -1 }));
	for (let i = 0; i < nodes.length; i++) {
		for (const row of children(nodes[i]!.row)) nodes.push({ row, above: i });
	}
	const kept = new Set<R>();
	for (const { row, above } of nodes.reverse()) {
		if (!kept.has(row) && !test(row)) continue;
		kept.add(row);
		if (above >= 0) kept.add(nodes[nodes.length - 1 - above]!.row);
	}
	return kept;
}

export function cellText(cell: Cell): string {
	return cell === null ? "" : typeof cell === "boolean" ? (cell ? "yes" : "no") : String(cell);
}

/** The rows as CSV, as they stand in the table, with exact figures. */
export function toCsv<R>(rows: readonly R[], columns: readonly Column<R>[]): string {
	const lines = [columns.map((column) => csvField(columnLabel(column))).join(",")];
	for (const row of rows) lines.push(columns.map((column) => csvField(column.value(row))).join(","));
	return `${lines.join("\r\n")}\r\n`;
}

const CSV_UNITS: Partial<Record<Column<never>["kind"], string>> = { us: "us", bytes: "bytes", share: "ratio", pct: "pct" };

function columnLabel<R>(column: Column<R>): string {
	const unit = CSV_UNITS[column.kind];
	return unit ? `${column.title} (${unit})` : column.title;
}

/** Text that a spreadsheet would take for a formula gets an apostrophe in front: names in a trace are not to be trusted. */
function csvField(cell: Cell): string {
	let text = cellText(cell);
	if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
