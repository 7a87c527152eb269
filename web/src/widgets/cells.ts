// SPDX-License-Identifier: Apache-2.0
//
// The text of a column's cells, and the width of the column.
import { figureText, type Kind } from "../format/scale";
import { formatCount, NOTHING, signed } from "../format/units";
import { sharedBeginnings } from "./name_split";
import { type Cell, cellText, type Column, type Order } from "./table_model";

export interface CellScale {
	largest: number;
	/** The text of a cell. */
	text: (cell: Cell) => string;
	/** The width for the grid's template, and the minimum in characters. */
	width: string;
	least: number;
	/** The width in characters at which texts can be read, although long ones are truncated. */
	readable: number;
	/** Of wide texts: how much of them is truncated first. */
	splits?: ReadonlyMap<string, number> | undefined;
}

export function columnScales<R>(columns: readonly Column<R>[], rows: readonly R[], tree: "none" | "flat" | "nested" = "none", order?: Order): Map<string, CellScale> {
	const scales = new Map<string, CellScale>();
	const indent = { none: 0, flat: MARKER_ROOM, nested: TREE_ROOM }[tree];
	const arrowRoom = (column: Column<R>) => (column.id === order?.column ? ARROW_ROOM : 0);
	for (const [i, column] of columns.entries()) {
		const isText = column.kind === "text" || column.kind === "flag";
		scales.set(column.id, isText ? textScale(column, rows, i === 0 ? indent : 0, arrowRoom(column)) : figureScale(column, column.kind as Kind, rows, arrowRoom(column)));
	}
	return scales;
}

function largestOf<R>(column: Column<R>, rows: readonly R[]): number {
	let largest = 0;
	for (const row of rows) {
		const value = column.value(row);
		if (typeof value === "number" && Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
	}
	return largest;
}

/** Width of the indentation of tree lines, in characters, and of the marker of those that have no children. */
const TREE_ROOM = 10;
const MARKER_ROOM = 3;

/** Longer texts are truncated rather than other columns hidden. */
const READABLE_MOST = 26;

function textScale<R>(column: Column<R>, rows: readonly R[], indent: number, arrow: number): CellScale {
	let longest = titleRoom(column.title) + arrow;
	const textOf = (row: R) => (column.shown ? column.shown(row) : cellText(column.value(row)));
	for (const row of rows.slice(0, 300)) longest = Math.max(longest, textRoom(textOf(row)));
	const readable = Math.min(longest, READABLE_MOST) + indent;
	const splits = column.wide ? sharedBeginnings(rows.map(textOf)) : undefined;
	longest += indent;
	const least = Math.min(longest, (column.wide ? 20 : 16) + indent);
	const width = column.wide ? `minmax(${least}ch, ${Math.min(longest, 100)}fr)` : `minmax(${least}ch, ${Math.min(longest, 40)}ch)`;
	return { largest: 0, text: cellText, width, least, readable, splits };
}

function figureScale<R>(column: Column<R>, kind: Kind, rows: readonly R[], arrow: number): CellScale {
	const textOf = (value: number) => figureText(kind, value);
	const text = (cell: Cell) => {
		if (typeof cell !== "number") return cell === null ? NOTHING : cellText(cell);
		return column.signed ? signed(cell, textOf) : textOf(cell);
	};
	const largest = largestOf(column, rows);
	let widest = text(largest).length;
	for (const row of rows.slice(0, 300)) widest = Math.max(widest, text(column.value(row)).length);
	const least = Math.max(widest + 2, titleRoom(column.title) + arrow, 7);
	return { largest, text, width: `${least}ch`, least, readable: least };
}

/** Hides columns that give way, one after another, until the others can be read within a width in pixels. */
export function fitColumns<R>(columns: readonly Column<R>[], scales: ReadonlyMap<string, CellScale>, isShown: (column: Column<R>) => boolean, width: number): Column<R>[] {
	const digit = textWidth("0", 400);
	let need = columns.reduce((sum, column) => sum + (isShown(column) ? (scales.get(column.id)?.readable ?? 0) * digit : 0), BORDERS);
	const hidden = new Set<string>();
	const yielding = columns.filter((column) => column.yields !== undefined && isShown(column));
	for (const column of yielding.sort((a, b) => a.yields! - b.yields!)) {
		if (width === 0 || need <= width) break;
		hidden.add(column.id);
		need -= (scales.get(column.id)?.readable ?? 0) * digit;
	}
	return columns.map((column) => (hidden.has(column.id) ? { ...column, hidden: true } : column));
}

/** Width of the borders of a table, in pixels. */
const BORDERS = 2;

/** Padding of a cell on both sides, and what rounding may add to the width of a text, in pixels. */
const PADDING = 18;

/** Returns the width of a title with the padding, in widths of digits. */
function titleRoom(title: string): number {
	const digit = textWidth("0", 400);
	if (digit > 0) return Math.ceil(((textWidth(title, 600) + PADDING) / digit) * 10) / 10;
	return Math.ceil(title.length * 0.85 + (title.match(/[A-Zmw%]/g) ?? []).length * 0.45 + 2);
}

/** Returns the width of a text with the padding, in widths of digits. */
function textRoom(text: string): number {
	const digit = textWidth("0", 400);
	return digit > 0 ? Math.ceil(((measured(text, 400) + PADDING) / digit) * 10) / 10 : text.length + 2;
}

let canvas: CanvasRenderingContext2D | null | undefined;
const widths = new Map<string, number>();

/** Like `measured`, for titles, which occur again and again. */
function textWidth(text: string, weight: number): number {
	const key = `${weight}${text}`;
	let width = widths.get(key);
	if (width === undefined) {
		width = measured(text, weight);
		widths.set(key, width);
	}
	return width;
}

/** Returns the width of a text of a table in pixels; 0 outside of a browser. */
function measured(text: string, weight: number): number {
	if (typeof document === "undefined") return 0;
	canvas ??= document.createElement("canvas").getContext("2d");
	if (!canvas) return 0;
	const font = `${weight} ${bodyFont()}`;
	if (canvas.font !== font) canvas.font = font;
	return canvas.measureText(text).width;
}

let bodyFontKnown = "";

function bodyFont(): string {
	if (bodyFontKnown === "") {
		const { fontSize, fontFamily } = getComputedStyle(document.body);
		bodyFontKnown = `${fontSize} ${fontFamily}`;
	}
	return bodyFontKnown;
}

/** Width of the arrow after the title of the sort column. */
const ARROW_ROOM = 2;

/** Returns the exact figure for the tooltip of a rounded one. */
export function exactText(cell: Cell, kind: Column<never>["kind"]): string {
	if (typeof cell !== "number") return cellText(cell);
	switch (kind) {
		case "us":
			return `${cell} µs`;
		case "bytes":
			return `${formatCount(cell)} bytes`;
		case "share":
			return `${cell * 100} %`;
		case "pct":
			return `${cell} %`;
		default:
			return String(cell);
	}
}
