// SPDX-License-Identifier: Apache-2.0
//
// The contents of a table: which rows, in which order, in which groups. Independent of drawing.
import type { Kind } from "../format/scale";

export type Cell = string | number | boolean | null;

export interface Column<R> {
	id: string;
	title: string;
	/** Explains the figure, in a tooltip of the header. */
	about?: string;
	kind: Kind | "text" | "flag";
	value: (row: R) => Cell;
	/** A shorter text to display; the tooltip, filters and exports use the value. */
	shown?: (row: R) => string;
	/** Rows may be grouped by it. */
	groups?: boolean;
	/** The figure of a group; by default the sum for times, bytes and counts. */
	total?: "sum" | "max" | "none";
	/** Hidden until the user selects it. */
	hidden?: boolean;
	/** Draws a bar for the ratio to the largest figure. */
	bar?: boolean;
	/** A difference: positive figures have a sign, too. */
	signed?: boolean;
	/** The link of its text. */
	link?: (row: R) => string;
	/** Text that takes the remaining width. */
	wide?: boolean;
	/** In a window where texts could not be read, it is hidden; columns with smaller numbers first. */
	yields?: number;
}

export interface Order {
	column: string;
	descending: boolean;
}

/** A line of the table: a row, the head of a group of rows, or a node of a tree. */
export interface Line<R> {
	key: string;
	depth: number;
	row: R | null;
	/** The group's title and figures. */
	group?: { title: string; count: number; cells: Map<string, Cell> };
	/** undefined: no children. */
	open?: boolean;
}

/** "-calls" sorts by calls, the largest first. */
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

/** Returns the rows in order; the sort is stable. Rows without a figure come last in either direction. */
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

/** Returns whether a row matches. */
export type Test<R> = (row: R) => boolean;

const UNITS: Record<string, Partial<Record<string, number>>> = {
	us: { ns: 1e-3, us: 1, µs: 1, ms: 1e3, s: 1e6 },
	bytes: { b: 1, kb: 1024, kib: 1024, k: 1024, mb: 1024 ** 2, mib: 1024 ** 2, m: 1024 ** 2, gb: 1024 ** 3, gib: 1024 ** 3, g: 1024 ** 3 },
	flops: { k: 1e3, m: 1e6, g: 1e9, t: 1e12 },
	share: { "%": 0.01 },
	pct: { "%": 1 },
};

/** A word: text in quotes, a comparison, which may have spaces around its sign, or any other. */
const WORD = /(-?)(?:"([^"]*)"?|([\p{L}_]+\s*(?:<=|>=|=|<|>)\s*-?\d\S*|[\p{L}_]+\s+(?:<=|>=|=|<|>)\s*$|\S+))/gu;

function unspaced(word: string): string {
	return word.replace(/\s+/g, "");
}

/**
 * Parses a filter: words that the row must contain, ignoring case; `-word` for rows without it; `calls>10`,
 * `self>=1.5ms`, `size<2MB` for figures, by the beginning of a column's id or title, or of a word of its title. "Words in quotes" stay together.
 */
export function parseFilter<R>(text: string, columns: readonly Column<R>[]): Test<R> {
	const tests: Test<R>[] = [];
	for (const match of text.matchAll(WORD)) {
		const word = match[2] ?? match[3] ?? "";
		if (word === "") continue;
		const test = (match[2] === undefined ? comparison(unspaced(word), columns) : undefined) ?? holds(word, columns);
		tests.push(match[1] ? (row) => !test(row) : test);
	}
	return (row) => tests.every((test) => test(row));
}

const COMPARISON = /^([\p{L}_ ]+)(<=|>=|=|<|>)(.*)$/u;

/** Returns why a comparison in a filter is invalid, in a sentence; undefined if there is no error. */
export function filterProblem<R>(text: string, columns: readonly Column<R>[]): string | undefined {
	const figures = columns.filter((column) => column.kind !== "text" && column.kind !== "flag");
	for (const match of text.matchAll(WORD)) {
		const word = unspaced(match[3] ?? "");
		const [, name = "", , right = ""] = COMPARISON.exec(word) ?? [];
		if (name === "" || comparison(word, columns)) continue;
		const column = named(figures, name);
		const [, number, unit = ""] = /^(-?\d+(?:\.\d+)?)(.*)$/.exec(right) ?? [];
		const choices = Object.keys((column && UNITS[column.kind]) ?? {});
		if (!column) {
			if (number === undefined || !/^[\p{L}%]*$/u.test(unit)) continue; // "kernel<4,": part of a name
			return `No column '${name}' with figures (choose from ${titles(figures)}). Put text that contains < or > in quotes.`;
		}
		if (number === undefined) {
			const example = `${column.title.replaceAll(" ", "_")}>${column.kind === "us" ? "1ms" : "10"}`;
			return `${right ? `'${right}' is not a number` : `'${word}' has no number`}: write for example ${example}.`;
		}
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
	const column = named(
		columns.filter((each) => each.kind !== "text"),
		name,
	);
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

/** Returns the first column whose id or title, with its words in either order, begins with this name; else the first with such a word in its title. */
function named<R>(columns: readonly Column<R>[], name: string): Column<R> | undefined {
	const plain = (text: string) => text.toLowerCase().replace(/[_ ]/g, "");
	const wanted = plain(name);
	const has = (texts: string[]) => texts.some((text) => plain(text).startsWith(wanted));
	return (
		columns.find(({ id, title }) => has([id, title, title.split(" ").reverse().join("")])) ??
		columns.find(({ title }) => has(title.split(" ").map((_, i, words) => words.slice(i).join(""))))
	);
}

/** Returns the titles as a filter takes them. */
function titles<R>(columns: readonly Column<R>[]): string {
	return columns.map(({ title }) => title.replaceAll(" ", "_")).join(", ");
}

/** Returns the figure of a group in a column. */
export function totalOf<R>(column: Column<R>, rows: readonly R[]): Cell {
	const way = column.total ?? (column.kind === "us" || column.kind === "bytes" || column.kind === "count" || column.kind === "flops" ? "sum" : "none");
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

/** Returns the lines of a flat table, grouped by the values of a column if one is selected. Groups are in the order of
 * the table. */
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

/** Returns the lines of a tree. With a filter: matching nodes and their ancestors, all open. Trees may be deep, so this
 * does not use recursion. */
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

/** Returns the nodes that match, and their ancestors. */
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

/** Returns the rows as CSV, in the order of the table, with exact figures. */
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

/** Text that a spreadsheet would interpret as a formula gets an apostrophe, since names in a trace are not trusted. */
function csvField(cell: Cell): string {
	let text = cellText(cell);
	if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
