// SPDX-License-Identifier: Apache-2.0
//
// The lines of a table on the screen: visible lines are elements, the rest is empty height. It has the role of a grid,
// with one active line that keys move. The lines' links and buttons can also be reached with Tab.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type CellScale, exactText } from "./cells";
import type { Cell, Column, Line, Order } from "./table_model";

export const LINE_HEIGHT = 28;
const SPARE = 6; // lines drawn beyond either edge

interface LinesProps<R> {
	label: string;
	lines: Line<R>[];
	columns: Column<R>[];
	scales: Map<string, CellScale>;
	order: Order | undefined;
	onOrder: (order: Order) => void;
	onFlip: (line: Line<R>) => void;
	/** Lines may be opened and closed. */
	tree: boolean;
	chosen: R | undefined;
	onChoose: ((row: R | undefined) => void) | undefined;
	href: ((row: R) => string | undefined) | undefined;
	height: number;
	/** Identifies the arrangement of the lines: when it changes, scrolls to the first line. */
	arrangement: string;
}

export function Lines<R>(props: LinesProps<R>) {
	const { lines, columns, scales, tree, onFlip, onChoose, href } = props;
	const id = useId();
	const scroller = useRef<HTMLDivElement>(null);
	const [top, setTop] = useState(0);
	const [height, setHeight] = useState(props.height * LINE_HEIGHT);
	const [active, setActive] = useState(0);
	const at = Math.min(active, lines.length - 1);

	useEffect(() => {
		const element = scroller.current;
		if (!element) return;
		const watch = new ResizeObserver(() => setHeight(element.clientHeight));
		watch.observe(element);
		return () => watch.disconnect();
	}, []);
	useLayoutEffect(() => {
		setActive(0);
		setTop(0);
		if (scroller.current) scroller.current.scrollTop = 0;
	}, [props.arrangement]);
	useLayoutEffect(() => {
		const element = scroller.current;
		if (element && element.scrollTop !== top) setTop(element.scrollTop); // the list has become shorter
	}, [lines.length]);

	const move = (to: number) => {
		const next = Math.max(0, Math.min(lines.length - 1, to));
		setActive(next);
		const element = scroller.current;
		if (!element) return;
		const y = next * LINE_HEIGHT;
		const seen = element.clientHeight - LINE_HEIGHT; // height below the header
		if (y < element.scrollTop) element.scrollTop = y;
		else if (y + LINE_HEIGHT > element.scrollTop + seen) element.scrollTop = y + LINE_HEIGHT - seen;
	};
	const act = (line: Line<R>) => {
		if (line.row !== null && onChoose) onChoose(line.row === props.chosen ? undefined : line.row);
		else if (line.open !== undefined) onFlip(line);
		else if (line.row !== null) {
			const place = href?.(line.row) ?? columns[0]?.link?.(line.row);
			if (place) location.hash = place;
		}
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const line = lines[at];
		if (!line || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
		const page = Math.max(1, Math.floor(height / LINE_HEIGHT) - 2);
		const opened = line.open;
		if (event.key === "ArrowDown") move(at + 1);
		else if (event.key === "ArrowUp") move(at - 1);
		else if (event.key === "PageDown") move(at + page);
		else if (event.key === "PageUp") move(at - page);
		else if (event.key === "Home") move(0);
		else if (event.key === "End") move(lines.length - 1);
		else if (event.key === "ArrowRight" && opened === false) onFlip(line);
		else if (event.key === "ArrowLeft" && opened === true) onFlip(line);
		else if (event.key === "ArrowLeft" && line.depth > 0) move(parentOf(lines, at));
		else if (event.key === "Enter" || event.key === " ") act(line);
		else if (event.key === "Escape" && props.chosen !== undefined) onChoose?.(undefined);
		else return;
		event.preventDefault();
	};

	const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - SPARE);
	const last = Math.min(lines.length, Math.ceil((top + height) / LINE_HEIGHT) + SPARE);
	const least = columns.reduce((sum, column) => sum + (scales.get(column.id)?.least ?? 10), 5);
	const template = columns.map((column) => scales.get(column.id)?.width ?? "10ch").join(" ") + (href ? " 34px" : "");
	return (
		<div
			class="grid"
			ref={scroller}
			role={tree ? "treegrid" : "grid"}
			aria-label={props.label}
			aria-rowcount={lines.length + 1}
			aria-activedescendant={lines.length > 0 ? `${id}-${at}` : undefined}
			tabIndex={0}
			style={{ "--columns": template, "--least": `${least}ch`, maxHeight: `${(props.height + 1) * LINE_HEIGHT + 2}px` }}
			onScroll={(event) => setTop(event.currentTarget.scrollTop)}
			onKeyDown={onKeyDown}
		>
			<Header columns={columns} scales={scales} order={props.order} onOrder={props.onOrder} place={href !== undefined} />
			<div class="grid-body" role="rowgroup" style={{ height: `${lines.length * LINE_HEIGHT}px` }}>
				{lines.slice(first, last).map((line, i) => (
					<LineRow
						key={line.key}
						id={`${id}-${first + i}`}
						line={line}
						index={first + i}
						columns={columns}
						scales={scales}
						active={first + i === at}
						chosen={line.row !== null && line.row === props.chosen}
						tree={tree}
						onClick={() => {
							setActive(first + i);
							act(line);
						}}
						onFlip={() => onFlip(line)}
						href={href && (line.row === null ? undefined : href(line.row))}
						place={href !== undefined}
					/>
				))}
			</div>
		</div>
	);
}

/** Returns the nearest line above that has a smaller depth. */
function parentOf<R>(lines: readonly Line<R>[], at: number): number {
	const depth = lines[at]!.depth;
	let i = at;
	while (i > 0 && lines[i]!.depth >= depth) i--;
	return i;
}

function Header<R>(props: {
	columns: Column<R>[];
	scales: Map<string, CellScale>;
	order: Order | undefined;
	onOrder: (order: Order) => void;
	place: boolean;
}) {
	const { order } = props;
	return (
		<div class="grid-row grid-head" role="row" aria-rowindex={1}>
			{props.columns.map((column) => {
				const by = order?.column === column.id ? order : undefined;
				const descending = by ? !by.descending : column.kind !== "text";
				return (
					<div
						key={column.id}
						role="columnheader"
						aria-sort={by ? (by.descending ? "descending" : "ascending") : "none"}
						class={isFigure(column) ? "figure" : ""}
					>
						<button
							type="button"
							title={column.about ?? `Sort by ${column.title.toLowerCase()}`}
							onClick={() => props.onOrder({ column: column.id, descending })}
						>
							{column.title}
							<span class="arrow" aria-hidden="true">
								{by ? (by.descending ? " ▾" : " ▴") : ""}
							</span>
						</button>
					</div>
				);
			})}
			{props.place && (
				<div role="columnheader">
					<span class="visually-hidden">Place in the timeline</span>
				</div>
			)}
		</div>
	);
}

interface LineRowProps<R> {
	id: string;
	line: Line<R>;
	index: number;
	columns: Column<R>[];
	scales: Map<string, CellScale>;
	active: boolean;
	chosen: boolean;
	tree: boolean;
	onClick: () => void;
	onFlip: () => void;
	href: string | undefined;
	place: boolean;
}

function LineRow<R>(props: LineRowProps<R>) {
	const { line, columns, scales } = props;
	const { row, group } = line;
	return (
		<div
			id={props.id}
			class={`grid-row${props.active ? " active" : ""}${group ? " group" : ""}`}
			role="row"
			aria-rowindex={props.index + 2}
			aria-selected={props.chosen}
			aria-level={props.tree ? line.depth + 1 : undefined}
			aria-expanded={line.open}
			style={{ top: `${props.index * LINE_HEIGHT}px` }}
			onClick={props.onClick}
		>
			{columns.map((column, i) => {
				const cell = row === null ? (group?.cells.get(column.id) ?? null) : column.value(row);
				const scale = scales.get(column.id);
				return (
					<div
						key={column.id}
						role="gridcell"
						data-column={column.id}
						class={isFigure(column) ? "figure" : column.kind === "flag" ? "flag" : "words"}
						title={row === null && i === 0 ? group?.title : exactText(cell, column.kind)}
					>
						{column.bar && row !== null && <Bar cell={cell} largest={scale?.largest ?? 0} />}
						{i === 0 && <Twig line={line} tree={props.tree} onFlip={props.onFlip} />}
						{i === 0 && group ? <GroupTitle title={group.title} count={group.count} /> : <CellText column={column} row={row} text={row !== null && column.shown ? column.shown(row) : cellShown(cell, row, scale)} split={scale?.splits} />}
					</div>
				);
			})}
			{props.place && (
				<div role="gridcell" class="place">
					{props.href && (
						<a href={props.href} title="Show in the timeline" aria-label="Show in the timeline" onClick={(event) => event.stopPropagation()}>
							⇥
						</a>
					)}
				</div>
			)}
		</div>
	);
}

function cellShown(cell: Cell, row: unknown, scale: CellScale | undefined): string {
	if (row === null && cell === null) return "";
	return scale?.text(cell) ?? "";
}

function CellText<R>({ column, row, text, split }: { column: Column<R>; row: R | null; text: string; split: ReadonlyMap<string, number> | undefined }) {
	const at = split?.get(text);
	const shown = at === undefined ? text : <SplitText text={text} at={at} />;
	if (row === null || !column.link) return <>{shown}</>;
	return (
		<a href={column.link(row)} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
			{shown}
		</a>
	);
}

/** A text whose beginning is truncated first. */
function SplitText({ text, at }: { text: string; at: number }) {
	return (
		<span class="split">
			<span class="split-start">{text.slice(0, at)}</span>
			<span class="split-end">{text.slice(at)}</span>
		</span>
	);
}

function GroupTitle({ title, count }: { title: string; count: number }) {
	return (
		<>
			{title || "(none)"} <span class="soft">({count})</span>
		</>
	);
}

function Twig({ line, tree, onFlip }: { line: Line<unknown>; tree: boolean; onFlip: () => void }) {
	if (!tree) return null;
	return (
		<span class="twig" style={{ paddingLeft: `${line.depth * 16}px` }}>
			{line.open === undefined ? (
				<span class="twig-leaf" />
			) : (
				<button
					type="button"
					tabIndex={-1}
					class="plain"
					aria-label={line.open ? "Close" : "Open"}
					onClick={(event) => {
						event.stopPropagation();
						onFlip();
					}}
				>
					{line.open ? "▾" : "▸"}
				</button>
			)}
		</span>
	);
}

function Bar({ cell, largest }: { cell: Cell; largest: number }) {
	if (typeof cell !== "number" || !(largest > 0)) return null;
	return <span class="cell-bar" style={{ width: `${Math.min(100, (Math.abs(cell) / largest) * 100)}%` }} />;
}

function isFigure<R>(column: Column<R>): boolean {
	return column.kind !== "text" && column.kind !== "flag";
}
