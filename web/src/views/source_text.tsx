// SPDX-License-Identifier: Apache-2.0
//
// The lines of a file, preceded by their figures. Only visible lines are elements.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { setParams } from "../app/route";
import type { SourceLine } from "../data/replies";
import { TABLES } from "../data/tables";
import { figureText, type Kind } from "../format/scale";
import { formatPercent } from "../format/units";
import { timelineHref } from "../widgets/links";
import { pythonLines } from "./python_code";

const HEIGHT = 20;
const SPARE = 20;

interface SourceTextProps {
	trace: string;
	lines: readonly SourceLine[];
	/** undefined: the text is unavailable. */
	text: string | undefined;
	chosen: number | undefined;
	/** The sum over the trace, for shares. */
	all_us: number;
}

interface Shown {
	number: number;
	text: string;
	cost: SourceLine | undefined;
}

export function SourceText({ trace, lines, text, chosen, all_us }: SourceTextProps) {
	const box = useRef<HTMLDivElement>(null);
	const [top, setTop] = useState(0);
	const [height, setHeight] = useState(800);
	const shown = useMemo(() => shownLines(lines, text), [lines, text]);
	const most = lines.reduce((max, line) => Math.max(max, line.self_us), 0);
	const at = chosen === undefined ? -1 : shown.findIndex((line) => line.number === chosen);
	const columns = useMemo(() => columnsOf(lines), [lines]);
	const pieces = useMemo(() => (text === undefined ? undefined : pythonLines(text)), [text]);

	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const watch = new ResizeObserver(() => setHeight(element.clientHeight));
		watch.observe(element);
		return () => watch.disconnect();
	}, []);
	useEffect(() => {
		const element = box.current;
		if (element && at >= 0) element.scrollTop = Math.max(0, at * HEIGHT - element.clientHeight / 3);
	}, [at, shown]);
	const onKeyDown = (event: KeyboardEvent) => {
		const next = event.key === "n" ? nextHot(shown, at, 1, most) : event.key === "p" ? nextHot(shown, at, -1, most) : undefined;
		if (next === undefined) return;
		event.preventDefault();
		setParams({ line: shown[next]!.number });
	};
	const first = Math.max(0, Math.floor(top / HEIGHT) - SPARE);
	const last = Math.min(shown.length, Math.ceil((top + height) / HEIGHT) + SPARE);
	return (
		<div
			class="source"
			ref={box}
			role="table"
			aria-label="Lines with their time; n and p go to the next and the previous hot line"
			aria-rowcount={shown.length}
			tabIndex={0}
			onKeyDown={onKeyDown}
			onScroll={(event) => setTop(event.currentTarget.scrollTop)}
		>
			<div class="source-head" role="row">
				{columns.map((column) => (
					<span key={column.id} role="columnheader" class="figure" title={column.about}>
						{column.title}
					</span>
				))}
				<span role="columnheader" class="number">
					Line
				</span>
				<span role="columnheader">Source</span>
			</div>
			<div class="source-body" role="rowgroup" style={{ height: `${shown.length * HEIGHT}px` }}>
				{shown.slice(first, last).map((line, i) => (
					<div
						key={line.number}
						role="row"
						aria-rowindex={first + i + 1}
						class={`source-line${line.number === chosen ? " chosen" : ""}`}
						style={{ top: `${(first + i) * HEIGHT}px` }}
					>
						{columns.map((column) => (
							<span key={column.id} role="cell" class="figure">
								{line.cost && column.id === "self" && <span class="cell-bar" style={{ width: `${(line.cost.self_us / most) * 100}%` }} />}
								{line.cost && column.value(line.cost) > 0 ? figureText(column.kind, column.value(line.cost)) : ""}
							</span>
						))}
						<span role="cell" class="number">
							{line.cost && line.cost.row !== null ? (
								<a href={timelineHref(trace, { row: line.cost.row })} title={costTitle(line.cost, all_us)} aria-label={`Line ${line.number} in the timeline`}>
									{line.number}
								</a>
							) : (
								line.number
							)}
						</span>
						<code role="cell" title={line.cost && isDefinition(line.text) ? DEFINITION : undefined}>
							{pieces?.[line.number - 1]?.map((piece, j) => (piece.kind ? <span key={j} class={`code-${piece.kind}`}>{piece.text}</span> : piece.text)) ?? line.text}
						</code>
					</div>
				))}
			</div>
		</div>
	);
}

/** Explains what the figures of a line with a definition include, if there is such a line. */
export function DefinitionNote({ lines, text }: { lines: readonly SourceLine[]; text: string }) {
	const texts = useMemo(() => text.split("\n"), [text]);
	return lines.some((line) => isDefinition(texts[line.line - 1] ?? "")) ? <p class="soft source-note">{DEFINITION}</p> : null;
}

const DEFINITION = "A def or class line counts what no line inside explains: time in the function before, between and after its recorded calls, and calls whose line is unknown.";

function isDefinition(text: string): boolean {
	return /^\s*(?:async\s+def|def|class|@|lambda)\b/.test(text) || /^\s*@/.test(text);
}

interface FigureColumn {
	id: string;
	title: string;
	about: string;
	kind: Kind;
	value: (line: SourceLine) => number;
}

function columnsOf(lines: readonly SourceLine[]): FigureColumn[] {
	const columns = [
		{ ...TABLES.lines.self, id: "self", value: (line: SourceLine) => line.self_us },
		{ ...TABLES.lines.with_calls, id: "host", value: (line: SourceLine) => line.host_us },
		{ ...TABLES.lines.device, id: "device", value: (line: SourceLine) => line.device_us },
		{ ...TABLES.lines.allocated, id: "memory", value: (line: SourceLine) => line.allocated_bytes },
		{ ...TABLES.lines.calls, id: "calls", value: (line: SourceLine) => line.calls },
	];
	return columns.flatMap((column) => {
		const most = lines.reduce((max, line) => Math.max(max, column.value(line)), 0);
		return most > 0 ? [column] : [];
	});
}

function shownLines(lines: readonly SourceLine[], text: string | undefined): Shown[] {
	const costs = new Map(lines.map((line) => [line.line, line]));
	if (text === undefined) {
		return [...lines].sort((a, b) => a.line - b.line).map((line) => ({ number: line.line, text: line.function ?? "", cost: line }));
	}
	return text.split(/\r?\n/).map((each, i) => ({ number: i + 1, text: each, cost: costs.get(i + 1) }));
}

/** Returns the next line that takes at least a twentieth of the longest. */
function nextHot(shown: readonly Shown[], from: number, step: number, most: number): number | undefined {
	for (let i = from + step; i >= 0 && i < shown.length; i += step) {
		if ((shown[i]!.cost?.self_us ?? 0) >= most / 20 && most > 0) return i;
	}
	return undefined;
}

function costTitle(line: SourceLine, all_us: number): string {
	const share = all_us > 0 ? ` (${formatPercent((line.self_us / all_us) * 100)} of the trace)` : "";
	return `${line.function ?? "this line"}: ${line.self_us} µs self${share}; show its longest event in the timeline`;
}
