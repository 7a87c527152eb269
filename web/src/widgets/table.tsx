// SPDX-License-Identifier: Apache-2.0
//
// The table of every view: sorted, filtered, grouped, exported. Only visible lines are in the page, so a hundred
// thousand rows scroll like ten. The user's choices are in the address, under the table's id.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useListParam, useParam } from "../app/params";
import { formatCount } from "../format/units";
import { columnScales, fitColumns } from "./cells";
import { fileName, saveText } from "./download";
import { Lines } from "./lines";
import { useLater } from "./later";
import { useWidth } from "./size";
import {
	type Column,
	filterProblem,
	type Line,
	orderText,
	parseFilter,
	parseOrder,
	sortRows,
	tableLines,
	toCsv,
	treeLines,
} from "./table_model";

interface TableProps<R> {
	/** Its name in the address, unique in the view. */
	id: string;
	/** Its contents, for screen readers and the exported file. */
	label: string;
	columns: Column<R>[];
	rows: readonly R[];
	/** The initial order: "-time". */
	sort?: string;
	/** The children of a row; makes the table a tree. */
	children?: (row: R) => readonly R[];
	/** Number of tree levels that are initially open. */
	openDepth?: number;
	/** The place of a row in the timeline. */
	href?: (row: R) => string | undefined;
	/** Details of the selected row, below the table. */
	detail?: (row: R) => ComponentChildren;
	/** The reason why there are no rows. */
	empty?: ComponentChildren;
	/** Maximum height in lines. */
	lines?: number;
	/** Controls of the view next to the filter. */
	tools?: ComponentChildren;
	/** No filter, for a few simple rows. */
	plain?: boolean;
}

export function Table<R>(props: TableProps<R>) {
	const { id, label, rows, children, sort, plain } = props;
	const [box, width] = useWidth<HTMLElement>();
	const [order, setOrder] = useParam(`${id}.sort`, sort);
	const [query, setQuery] = useParam(`${id}.q`);
	const [group, setGroup] = useParam(`${id}.group`);
	const [toggled, setToggled] = useListParam(`${id}.columns`);
	const [chosen, setChosen] = useState<R>();
	const [flipped, setFlipped] = useState<ReadonlySet<string>>(new Set());

	const scales = useMemo(() => {
		const all = children ? allRows(rows, children) : rows;
		return columnScales(props.columns, all, children ? (all.length > rows.length ? "nested" : "flat") : "none", parseOrder(order));
	}, [props.columns, rows, children, order]);
	const columns = useMemo(() => fitColumns(props.columns, scales, (column) => !column.hidden, width), [props.columns, scales, width]);
	const shown = columns.filter((column) => Boolean(column.hidden) === toggled.has(column.id));
	const groupBy = children ? undefined : columns.find((column) => column.groups && column.id === group);
	const filter = useMemo(() => parseFilter(query, columns), [query, columns]);
	const problem = useMemo(() => filterProblem(query, columns), [query, columns]);
	const kept = useMemo(
		() => (children || query === "" ? rows : rows.filter(filter)),
		[rows, children, filter, query],
	);
	const lines = useMemo<Line<R>[]>(() => {
		const by = parseOrder(order);
		if (!children) return tableLines(kept, columns, by, groupBy, flipped);
		const isOpen = (key: string, depth: number) => depth < (props.openDepth ?? 2) !== flipped.has(key);
		return treeLines(kept, children, columns, by, isOpen, query === "" ? undefined : filter);
	}, [kept, columns, order, groupBy, flipped, children, filter, query]);

	const flip = (line: Line<R>) => {
		const next = new Set(flipped);
		const key = line.group?.title ?? line.key;
		if (!next.delete(key)) next.add(key);
		setFlipped(next);
	};
	const exportCsv = () => {
		const flat = children ? lines.flatMap((line) => line.row ?? []) : sortRows(kept, columns, parseOrder(order));
		saveText(toCsv(flat, shown), fileName(label, "opstrobe.csv"), "text/csv");
	};

	if (rows.length === 0) return <div class="empty">{props.empty ?? "No rows."}</div>;
	const chosenRow = chosen !== undefined && (children || rows.includes(chosen)) ? chosen : undefined;
	return (
		<section class="table-box" aria-label={label} ref={box}>
			<div class="tools">
				{!plain && <Filter value={query} onChange={setQuery} columns={columns} />}
				{props.tools}
				{!children && <GroupChoice columns={columns} value={groupBy?.id ?? ""} onChange={setGroup} />}
				<span class="tools-space" />
				<span class="count" role="status">
					{countText(children ? lines.length : kept.length, rows.length, children !== undefined)}
				</span>
				<ColumnChoice columns={columns} toggled={toggled} onChange={setToggled} />
				<button type="button" onClick={exportCsv} title="Save what is shown, with exact figures, as CSV">
					CSV
				</button>
			</div>
			{problem && (
				<p class="filter-problem" role="alert">
					{problem}
				</p>
			)}
			{lines.length === 0 && !problem && (
				<p class="filter-problem" role="status">
					{`No row matches '${query}'. `}
					<button type="button" class="link" onClick={() => setQuery(undefined)}>
						Clear the filter
					</button>
				</p>
			)}
			<div class={chosenRow !== undefined && props.detail ? "table-body beside" : "table-body"}>
				<Lines
					label={label}
					lines={lines}
					columns={shown}
					scales={scales}
					order={parseOrder(order)}
					onOrder={(next) => setOrder(orderText(next))}
					onFlip={flip}
					tree={children !== undefined || groupBy !== undefined}
					chosen={chosenRow}
					onChoose={props.detail ? setChosen : undefined}
					href={props.href}
					height={props.lines ?? 18}
					arrangement={`${order}\n${query}\n${group}`}
				/>
				{chosenRow !== undefined && props.detail && (
					<aside class="detail" aria-label="The chosen row">
						<button type="button" class="plain close" aria-label="Close" onClick={() => setChosen(undefined)}>
							✕
						</button>
						{props.detail(chosenRow)}
					</aside>
				)}
			</div>
		</section>
	);
}

function allRows<R>(roots: readonly R[], children: (row: R) => readonly R[]): R[] {
	const rows = [...roots];
	for (const row of rows) for (const child of children(row)) rows.push(child); // also visits the rows that it appends
	return rows;
}

function countText(shown: number, all: number, tree: boolean): string {
	const rows = (count: number) => `${formatCount(count)} ${count === 1 ? "row" : "rows"}`;
	return tree || shown === all ? rows(shown) : `${formatCount(shown)} of ${rows(all)}`;
}

function Filter<R>(props: { value: string; onChange: (text: string | undefined) => void; columns: Column<R>[] }) {
	const [text, setText] = useLater(props.value, props.onChange, 120);
	const figure = props.columns.find((column) => column.kind === "us" || column.kind === "count");
	return (
		<input
			type="search"
			class="filter"
			placeholder="Filter"
			aria-label="Filter the rows"
			title={`Words that a row contains; -word excludes rows${figure ? `; ${figure.id}>${figure.kind === "us" ? "1ms" : "10"} compares figures` : ""}`}
			value={text}
			onInput={(event) => setText(event.currentTarget.value)}
		/>
	);
}

function GroupChoice<R>(props: { columns: Column<R>[]; value: string; onChange: (id: string | undefined) => void }) {
	const choices = props.columns.filter((column) => column.groups);
	if (choices.length === 0) return null;
	return (
		<label>
			Group by{" "}
			<select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
				<option value="">nothing</option>
				{choices.map((column) => (
					<option key={column.id} value={column.id}>
						{column.title.toLowerCase()}
					</option>
				))}
			</select>
		</label>
	);
}

function ColumnChoice<R>(props: {
	columns: Column<R>[];
	toggled: ReadonlySet<string>;
	onChange: (toggled: ReadonlySet<string>) => void;
}) {
	const { columns, toggled, onChange } = props;
	const flip = (id: string) => {
		const next = new Set(toggled);
		if (!next.delete(id)) next.add(id);
		onChange(next);
	};
	return (
		<details class="menu">
			<summary>Columns</summary>
			<div class="menu-items">
				{columns.map((column) => (
					<label key={column.id}>
						<input
							type="checkbox"
							checked={Boolean(column.hidden) === toggled.has(column.id)}
							onChange={() => flip(column.id)}
						/>{" "}
						{column.title}
					</label>
				))}
			</div>
		</details>
	);
}
