// SPDX-License-Identifier: Apache-2.0
//
// Values in order, such as those of commits, with a line for each level between changes. The axis begins at 0 only if the values are
// that far apart, so that changes of a few percent can be seen. The arrow keys move between points.
import { useRef, useState } from "preact/hooks";
import { axisScale, figureText, type Kind } from "../format/scale";
import { formatChange } from "../format/units";
import { Chart, Legend, moveFocus, saveOf, type Series, ticksBetween, ValueAxis } from "./chart";
import { useWidth } from "./size";
import { type Hover, Pairs, Tooltip } from "./tooltip";

export interface TrendPoint {
	name: string;
	value: number;
	/** The level between two changes that the point belongs to. */
	level: number;
	traces: number;
	/** Whether the level changes at this point, in percent; null: from 0. */
	change: number | null | undefined;
}

interface TrendChartProps {
	title: string;
	/** What a point represents: "commit". */
	item: string;
	points: readonly TrendPoint[];
	kind: Kind;
	height?: number;
}

const LEFT = 80;
const RIGHT = 24;
const BOTTOM = 24;
const TOP = 24;
const SLOT_MIN = 8;
const VALUE: Series = { id: "value", title: "Value", color: "var(--kind-kernel)" };
const LEVEL: Series = { id: "level", title: "Level", color: "var(--text-soft)" };
const CHANGED: Series = { id: "changed", title: "First value of a new level", color: "var(--kind-memcpy)" };

function percent(change: number | null): string {
	return change === null ? "from 0" : formatChange(change);
}

/** Returns the figures of the axis. */
function marksOf(points: readonly TrendPoint[], kind: Kind): number[] {
	const values = points.flatMap((point) => [point.value, point.level]);
	const [least, largest] = [Math.min(...values), Math.max(...values)];
	// A series of equal values gets a range, too.
	const margin = Math.max(largest - least, 0.05 * Math.abs(largest)) * 0.25;
	return ticksBetween(kind, least - margin < 0.5 * largest ? 0 : least - margin, largest + margin, 4);
}

export function TrendChart({ title, item, points, kind, height = 240 }: TrendChartProps) {
	const svg = useRef<SVGSVGElement>(null);
	const [box, room] = useWidth<HTMLDivElement>();
	const [hover, setHover] = useState<Hover<number>>();
	const [active, setActive] = useState(0);
	const marks = marksOf(points, kind);
	const [least, most] = [marks[0]!, marks[marks.length - 1]!];
	const scale = axisScale(kind, most);
	const slot = Math.max(SLOT_MIN, (room - LEFT - RIGHT) / Math.max(1, points.length));
	const width = Math.max(room, LEFT + slot * points.length + RIGHT);
	const x = (i: number) => LEFT + slot * (i + 0.5);
	const y = (value: number) => TOP + (height - TOP - BOTTOM) * (1 - (value - least) / Math.max(most - least, 1e-9));
	const labelEvery = Math.ceil((points.reduce((longest, point) => Math.max(longest, point.name.length), 0) * 8 + 12) / slot);
	const starts = points.flatMap((point, i) => (i === 0 || point.change !== undefined ? [i] : []));
	const show = (i: number, target: Element) => {
		const place = target.getBoundingClientRect();
		setActive(i);
		setHover({ item: i, x: place.x + place.width / 2, y: place.y + 12 });
	};
	const shown = hover && points[hover.item];
	return (
		<Chart title={title} save={saveOf(svg)}>
			<Legend series={starts.length > 1 ? [VALUE, LEVEL, CHANGED] : [VALUE, LEVEL]} />
			<div class="chart-room" ref={box}>
				<svg
					ref={svg}
					width={width}
					height={height}
					viewBox={`0 0 ${width} ${height}`}
					role="group"
					aria-label={title}
					onKeyDown={(event) => moveFocus(event, svg.current?.querySelectorAll<SVGElement>("[data-point]"), active)}
				>
					<ValueAxis marks={marks} scale={scale} y={y} left={LEFT} width={width} />
					{starts.map((start, k) => (
						<line
							key={start}
							style={{ stroke: LEVEL.color, strokeWidth: 2, strokeDasharray: "6 4" }}
							x1={x(start) - slot * 0.45}
							x2={x((starts[k + 1] ?? points.length) - 1) + slot * 0.45}
							y1={y(points[start]!.level)}
							y2={y(points[start]!.level)}
						/>
					))}
					<polyline
						style={{ fill: "none", stroke: VALUE.color, strokeWidth: 2 }}
						points={points.map((point, i) => `${x(i)},${y(point.value)}`).join(" ")}
					/>
					{points.map((point, i) => (
						<g
							key={i}
							data-point={i}
							role="img"
							tabindex={i === active ? 0 : -1}
							aria-label={`${item} ${point.name}: ${scale.text(point.value)} ${scale.unit}${point.change === undefined ? "" : `, level changes: ${percent(point.change)}`}`}
							onMouseMove={(event) => setHover({ item: i, x: event.clientX, y: event.clientY })}
							onMouseLeave={() => setHover(undefined)}
							onFocus={(event) => show(i, event.currentTarget)}
							onBlur={() => setHover(undefined)}
						>
							<rect class="hit" x={LEFT + slot * i} y={TOP} width={slot} height={height - TOP - BOTTOM} />
							<circle style={{ fill: point.change === undefined ? VALUE.color : CHANGED.color }} cx={x(i)} cy={y(point.value)} r={point.change === undefined ? 4 : 6} />
							{point.change !== undefined && (
								<text class="axis" x={x(i)} y={y(point.value) - 12} text-anchor="middle">
									{percent(point.change)}
								</text>
							)}
							{i % labelEvery === 0 && (
								<text class="axis" x={x(i)} y={height - 8} text-anchor="middle">
									{point.name}
								</text>
							)}
						</g>
					))}
				</svg>
			</div>
			{shown && (
				<Tooltip x={hover.x} y={hover.y}>
					<strong>{`${item} ${shown.name}`}</strong>
					<Pairs pairs={pairsOf(shown, kind)} />
				</Tooltip>
			)}
		</Chart>
	);
}

function pairsOf(point: TrendPoint, kind: Kind): [string, string][] {
	const text = (value: number) => figureText(kind, value);
	return [
		["value", text(point.value)],
		["level", `${text(point.level)}${point.change === undefined ? "" : ` (${percent(point.change)})`}`],
		["traces", String(point.traces)],
	];
}
