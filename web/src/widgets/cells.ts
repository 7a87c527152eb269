// SPDX-License-Identifier: Apache-2.0
// How the cells of a column are written, and how wide the column is.
import { formatCount } from "../format/units";
import { type Kind, type Scale, scaleOf, signed } from "../format/scale";
import { type Cell, cellText, type Column } from "./table_model";

export interface CellScale {
	unit: string;
	largest: number;
	/** What a cell shows. */
	text: (cell: Cell) => string;
	/** For the grid's template, and the least of it in characters. */
	width: string;
	least: number;
}

const NOTHING = "–";

/** Columns of one kind have one unit as long as the next smaller one is not less than this part of the one before. */
const ABOUT_AS_LARGE = 1 / 30;

export function columnScales<R>(columns: readonly Column<R>[], rows: readonly R[], isTree = false): Map<string, CellScale> {
	const scales = new Map<string, CellScale>();
	const figures = columns
		.filter((column) => column.kind !== "text" && column.kind !== "flag")
		.map((column) => ({ column, kind: column.kind as Kind, largest: largestOf(column, rows) }))
		.sort((a, b) => b.largest - a.largest);
	const before = new Map<Kind, { largest: number; unit: number }>();
	for (const { column, kind, largest } of figures) {
		const last = before.get(kind);
		const unit = last && largest >= last.largest * ABOUT_AS_LARGE ? last.unit : largest;
		before.set(kind, { largest, unit });
		scales.set(column.id, figureScale(column, rows, scaleOf(kind, unit), largest));
	}
	for (const column of columns) if (!scales.has(column.id)) scales.set(column.id, textScale(column, rows, isTree && column.wide ? TREE_ROOM : 0));
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

/** What lines of a tree are indented by, in characters. */
const TREE_ROOM = 10;

function textScale<R>(column: Column<R>, rows: readonly R[], indent: number): CellScale {
	let longest = titleRoom(column.title);
	for (const row of rows.slice(0, 300)) longest = Math.max(longest, (column.shown ? column.shown(row) : cellText(column.value(row))).length + 2);
	longest += indent;
	const least = Math.min(longest, column.wide ? 22 + indent : 16);
	const width = column.wide ? `minmax(${least}ch, ${Math.min(longest, 100)}fr)` : `minmax(${least}ch, ${Math.min(longest, 40)}ch)`;
	return { unit: "", largest: 0, text: cellText, width, least };
}

function figureScale<R>(column: Column<R>, rows: readonly R[], scale: Scale, largest: number): CellScale {
	const text = (cell: Cell) => {
		if (typeof cell !== "number") return cell === null ? NOTHING : cellText(cell);
		return column.signed ? signed(cell, scale.text) : scale.text(cell);
	};
	let widest = text(largest).length;
	if (column.kind === "number") for (const row of rows.slice(0, 300)) widest = Math.max(widest, text(column.value(row)).length);
	const least = Math.max(widest + 3, titleRoom(column.title + (scale.unit ? `, ${scale.unit}` : "")), 7);
	return { unit: scale.unit, largest, text, width: `${least}ch`, least };
}

/** Titles are bold, and have an arrow behind them when the table is sorted by theirs. */
function titleRoom(title: string): number {
	return title.length + 4;
}

/** The exact figure behind a rounded one, for tooltips. */
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
