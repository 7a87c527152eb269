// SPDX-License-Identifier: Apache-2.0
//
// Renders any JSON: a list of objects, or a table, as a table; an object as names and figures.
import { useMemo } from "preact/hooks";
import type { JsonValue, TableReply } from "../data/replies";
import { TABLES } from "../data/tables";
import type { Kind } from "../format/scale";
import { formatNumber } from "../format/units";
import { Table } from "./table";
import { type Cell, cellText, type Column } from "./table_model";

type Row = (Cell | JsonValue)[];

interface AnswerProps {
	id: string;
	label: string;
	value: JsonValue;
	lines?: number;
	depth?: number;
	/** The meaning of the names of the outermost object if they are numbers: "rank". */
	numbered?: string;
	/** The reason for an empty value: "no results: …". */
	empty?: string | undefined;
}

const DEPTH_MAX = 8;

export function Answer({ id, label, value, lines = 18, depth = 0, numbered = "", empty }: AnswerProps) {
	const table = asTable(value);
	if (table) return <DataTable id={id} label={label} columns={table.columns} rows={table.rows} lines={lines} empty={empty} />;
	if (value === null && empty) return <div class="empty">{emptyText(empty)}</div>;
	if (value === null || typeof value !== "object") return <p class="figure-line">{scalarText(value)}</p>;
	if (depth >= DEPTH_MAX) return <p class="mono long">{JSON.stringify(value).slice(0, 500)}</p>;
	const entries: [string, JsonValue][] = Array.isArray(value) ? value.map((each, i) => [String(i), each]) : Object.entries(value);
	if (entries.length === 0) return <div class="empty">{emptyText(empty)}</div>;
	const flat = entries.filter(([, each]) => isFlat(each));
	const nested = together(entries.filter(([, each]) => !isFlat(each)));
	return (
		<div class="answer">
			{flat.length > 0 && (
				<dl class="pairs wide">
					{flat.map(([name, each]) => (
						<div key={name}>
							<dt>{name}</dt>
							<dd>{flatText(each)}</dd>
						</div>
					))}
				</dl>
			)}
			{nested.slice(0, 64).map(([name, each]) => (
				<section key={name} class="answer-part" aria-label={name}>
					{name !== "" && <h3>{/^\d+$/.test(name) ? `${numbered} ${name}` : name}</h3>}
					<Answer id={`${id}.${name}`} label={`${label} ${name}`} value={each} lines={12} depth={depth + 1} />
				</section>
			))}
		</div>
	);
}

/** Returns the sentence for an answer without results: the reason, if it is known. */
export function emptyText(why: string | undefined): string {
	return why ? `${why.charAt(0).toUpperCase()}${why.slice(1)}.` : "No results.";
}

function isFlat(value: JsonValue): boolean {
	if (value === null || typeof value !== "object") return true;
	return Array.isArray(value) && value.length <= 16 && value.every((each) => each === null || typeof each !== "object");
}

function flatText(value: JsonValue): string {
	return Array.isArray(value) ? value.map(scalarText).join(", ") || "none" : scalarText(value);
}

function scalarText(value: JsonValue): string {
	if (value === null) return "–";
	if (typeof value === "number") return formatNumber(value);
	if (typeof value === "boolean") return value ? "yes" : "no";
	return typeof value === "string" ? value : JSON.stringify(value);
}

/** Objects with the same members are easier to read as one table. */
function together(entries: [string, JsonValue][]): [string, JsonValue][] {
	const tables = new Map<string, Record<string, JsonValue>>();
	const rest: [string, JsonValue][] = [];
	for (const [name, each] of entries) {
		const form = each !== null && typeof each === "object" && !Array.isArray(each) && Object.values(each).every(isFlat) ? Object.keys(each).join("\n") : undefined;
		if (form === undefined) rest.push([name, each]);
		else tables.set(form, { ...tables.get(form), [name]: each });
	}
	const parts = [...tables.values()].map<[string, JsonValue]>((table) => {
		const names = Object.keys(table);
		return names.length > 1 ? ["", table] : [names[0]!, table[names[0]!]!];
	});
	return [...parts, ...rest];
}

/** Returns a table if the value is one: with columns and rows, a list of objects, or equally structured objects by
 * name. */
export function asTable(value: JsonValue): { columns: string[]; rows: Row[] } | undefined {
	if (value === null || typeof value !== "object") return undefined;
	if (!Array.isArray(value) && Array.isArray(value.columns) && Array.isArray(value.rows)) {
		const rows = value.rows.filter((row): row is JsonValue[] => Array.isArray(row));
		return { columns: value.columns.map(String), rows };
	}
	const named: [string | null, JsonValue][] = Array.isArray(value) ? value.map((each) => [null, each]) : Object.entries(value);
	if (named.length < 2) return undefined;
	const columns: string[] = [];
	for (const [, each] of named) {
		if (each === null || typeof each !== "object" || Array.isArray(each)) return undefined;
		for (const [name, cell] of Object.entries(each)) {
			if (!isFlat(cell)) return undefined;
			if (!columns.includes(name)) columns.push(name);
		}
		if (columns.length > 40) return undefined;
	}
	const cells = (each: JsonValue) => columns.map((name) => (each as Record<string, JsonValue>)[name] ?? null);
	if (Array.isArray(value)) return { columns, rows: named.map(([, each]) => cells(each)) };
	return { columns: ["", ...columns], rows: named.map(([name, each]) => [name, ...cells(each)]) };
}

const KINDS: [Kind, RegExp][] = [
	["pct", /pct|percent/],
	["share", /(^|_)ratio/],
	["bytes", /bytes/],
	["us", /\(us\)|_us$|_time$|^time$|duration|delay/],
	["count", /count|^calls$|^num_/],
];

/** Returns the kind of a column's figures, by its name. */
export function kindOf(name: string, values: readonly (Cell | JsonValue)[]): Column<Row>["kind"] {
	const known = values.filter((value) => value !== null);
	if (known.some((value) => typeof value === "boolean") && known.every((value) => typeof value === "boolean")) return "flag";
	if (known.length === 0 || known.some((value) => typeof value !== "number")) return "text";
	const text = name.toLowerCase();
	return KINDS.find(([, form]) => form.test(text))?.[0] ?? "number";
}

interface DataTableProps {
	id: string;
	label: string;
	columns: readonly string[];
	rows: readonly Row[];
	lines: number;
	empty?: string | undefined;
}

export function DataTable({ id, label, columns, rows, lines, empty }: DataTableProps) {
	const described = useMemo(
		() => columns.map((name, k) => withoutZeros({ ...describe(name, k, rows), ...declared(label, name) }, rows)),
		[label, columns, rows],
	);
	return <Table id={id} label={label} columns={described} rows={rows} lines={lines} empty={emptyText(empty)} plain={rows.length < 4} />;
}

/** Hides a column of times or sizes that are all zero, such as those of a device in a recording without one. The menu shows it. */
function withoutZeros(column: Column<Row>, rows: readonly Row[]): Column<Row> {
	const isSum = column.kind === "us" || column.kind === "bytes";
	return isSum && rows.length > 3 && rows.every((row) => !column.value(row)) ? { ...column, hidden: true } : column;
}

interface ColumnTexts {
	title: string;
	kind: Column<Row>["kind"];
	about?: string;
	unit?: string;
}

/** Returns the analysis's own declaration of a column. Labels begin with the analysis's name; the name of a table inside
 * the result follows. */
function declared(label: string, name: string): Partial<Column<Row>> {
	const words = label.split(" ");
	const tables: Record<string, Record<string, ColumnTexts>> = TABLES;
	const table = tables[`${words[0]}.${words.at(-1)}`] ?? tables[words[0] ?? ""];
	const texts = table && Object.hasOwn(table, name) ? table[name] : undefined;
	if (!texts) return {};
	const { unit, ...column } = texts;
	if (unit === "us" && column.kind === "number") return { ...column, kind: "us" };
	return unit ? { ...column, title: `${column.title} (${unit})` } : column;
}

function describe(name: string, k: number, rows: readonly Row[]): Column<Row> {
	const values = rows.slice(0, 1000).map((row) => row[k] ?? null);
	const kind = kindOf(name, values);
	const distinct = new Set(values.map((value) => cellText(asCell(value)))).size;
	return {
		id: `${k}`,
		title: name.replace(/\s*\(us\)$/, "").replaceAll("_", " ") || "name",
		kind,
		total: kind === "number" ? "none" : "sum",
		wide: kind === "text" && values.some((value) => cellText(asCell(value)).length > 30),
		groups: kind === "text" && rows.length > 3 && distinct < rows.length,
		value: (row) => asCell(row[k] ?? null),
	};
}

function asCell(value: Cell | JsonValue): Cell {
	return value !== null && typeof value === "object" ? flatText(value) : value;
}

export function isTable(answer: TableReply | { value: JsonValue }): answer is TableReply {
	return "table" in answer;
}
