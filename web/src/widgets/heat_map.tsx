// SPDX-License-Identifier: Apache-2.0
//
// Figures of two dimensions as coloured cells, such as the steps of each rank. If there are more columns than fit, a cell
// shows the largest figure of several.
import { useRef, useState } from "preact/hooks";
import { figureText, type Kind } from "../format/scale";
import { Chart, saveOf } from "./chart";
import { useWidth } from "./size";
import { type Hover, Pairs, Tooltip } from "./tooltip";

export interface HeatCell {
	row: number;
	column: number;
	value: number;
	href?: string;
}

interface HeatMapProps {
	title: string;
	about?: string;
	/** What rows and columns represent: "rank", "step". */
	row: string;
	column: string;
	cells: readonly HeatCell[];
	kind: Kind;
	/** What the figure is. */
	figure: string;
}

const LEFT = 64;
const BOTTOM = 24;
const CELL_WIDTH = 6;
const CELL_HEIGHT = 20;

export function HeatMap({ title, about, row, column, cells, kind, figure }: HeatMapProps) {
	const svg = useRef<SVGSVGElement>(null);
	const [box, room] = useWidth<HTMLDivElement>();
	const [hover, setHover] = useState<Hover<HeatCell>>();
	const rows = numbers(cells, "row");
	const columns = numbers(cells, "column");
	const shown = Math.max(1, Math.min(columns.length, Math.floor((room - LEFT) / CELL_WIDTH)));
	const joined = Math.ceil(columns.length / shown);
	const count = Math.ceil(columns.length / joined);
	const width = (room - LEFT) / count;
	const places = { row: new Map(rows.map((each, i) => [each, i])), column: new Map(columns.map((each, i) => [each, Math.floor(i / joined)])) };
	const values = cells.map((cell) => cell.value);
	const [least, most] = [Math.min(...values), Math.max(...values)];
	const text = (value: number) => figureText(kind, value);
	const labelEvery = Math.max(1, Math.ceil(40 / width));
	const drawn = largest(cells, (cell) => places.row.get(cell.row)! * count + places.column.get(cell.column)!);
	const show = (item: HeatCell, target: Element) => {
		const place = target.getBoundingClientRect();
		setHover({ item, x: place.x + place.width / 2, y: place.y + 12 });
	};
	return (
		<Chart title={title} about={about ?? `${text(least)} (pale) to ${text(most)}`} save={saveOf(svg)}>
			<div class="chart-room" ref={box}>
				<svg ref={svg} width={Math.max(room, 1)} height={rows.length * CELL_HEIGHT + BOTTOM} role="group" aria-label={`${title}: ${rows.length} × ${columns.length}, ${text(least)} to ${text(most)}`}>
					{rows.map((each, i) => (
						<text key={each} class="axis" x={LEFT - 8} y={(i + 0.7) * CELL_HEIGHT} text-anchor="end">{`${row} ${each}`}</text>
					))}
					{drawn.map((cell) => {
						const share = most > least ? (cell.value - least) / (most - least) : 0;
						return (
							<a key={`${cell.row}.${cell.column}`} href={cell.href} aria-label={`${row} ${cell.row}, ${column} ${cell.column}: ${text(cell.value)}`} onFocus={(event) => show(cell, event.currentTarget)} onBlur={() => setHover(undefined)} onMouseEnter={(event) => show(cell, event.currentTarget)} onMouseLeave={() => setHover(undefined)}>
								<rect x={LEFT + places.column.get(cell.column)! * width} y={places.row.get(cell.row)! * CELL_HEIGHT} width={Math.max(1, width - 1)} height={CELL_HEIGHT - 1} fill="var(--kind-kernel)" fill-opacity={0.12 + 0.88 * share} />
							</a>
						);
					})}
					{Array.from({ length: count }, (_, i) => i)
						.filter((i) => i % labelEvery === 0)
						.map((i) => (
							<text key={i} class="axis" x={LEFT + (i + 0.5) * width} y={rows.length * CELL_HEIGHT + 16} text-anchor="middle">
								{columns[i * joined]}
							</text>
						))}
				</svg>
			</div>
			{hover && (
				<Tooltip x={hover.x} y={hover.y}>
					<Pairs pairs={[[row, String(hover.item.row)], [column, String(hover.item.column)], [figure, text(hover.item.value)]]} />
				</Tooltip>
			)}
		</Chart>
	);
}

function numbers(cells: readonly HeatCell[], name: "row" | "column"): number[] {
	return [...new Set(cells.map((cell) => cell[name]))].sort((a, b) => a - b);
}

/** Returns the cell with the largest figure of each place. */
function largest(cells: readonly HeatCell[], placeOf: (cell: HeatCell) => number): HeatCell[] {
	const kept = new Map<number, HeatCell>();
	for (const cell of cells) {
		const place = placeOf(cell);
		if ((kept.get(place)?.value ?? -Infinity) < cell.value) kept.set(place, cell);
	}
	return [...kept.values()];
}
