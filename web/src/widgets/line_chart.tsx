// SPDX-License-Identifier: Apache-2.0
//
// Figures over time, drawn by uPlot, stacked or not. Dragging selects a range, a click or Enter a time; the arrow keys
// move from point to point.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { cssColor, theme } from "../app/theme";
import { axisScale, figureText, type Kind, type Scale, tickText } from "../format/scale";
import { formatMoment } from "../format/units";
import { Chart, type Series, Swatch } from "./chart";
import { lineSvg } from "./line_svg";
import { useWidth } from "./size";

export interface LineSeries extends Series {
	/** The figures at the chart's times; null if there is none. */
	values: readonly (number | null)[];
	/** Part of the stack; otherwise a line above it. */
	stacked?: boolean;
}

interface LineChartProps {
	title: string;
	about?: string | undefined;
	/** Microseconds. */
	times: readonly number[];
	series: readonly LineSeries[];
	kind: Kind;
	/** Figures hold until the next one. */
	stepped?: boolean;
	height?: number;
	/** The maximum of the axis, if known. */
	most?: number;
	/** Called when the user drags over a range. */
	onRange?: ((from: number, to: number) => void) | undefined;
	/** Called with one of the times when the user clicks on it. */
	onMoment?: ((time: number) => void) | undefined;
	mark?: { time: number; label: string } | undefined;
}

export function LineChart(props: LineChartProps) {
	const { title, times, series, kind, height = 240, onRange, onMoment } = props;
	const [room, width] = useWidth<HTMLDivElement>();
	const plot = useRef<uPlot>();
	const [at, setAt] = useState<number | null>(null);
	const sums = useMemo(() => stack(series, times.length), [series, times]);
	const order = drawOrder(series);
	const most = props.most ?? greatest(sums.flat());
	const dark = theme.value;

	useEffect(() => {
		const box = room.current;
		if (!box || width === 0) return;
		const drawn = new uPlot(
			options({ ...props, width, height, most, onCursor: setAt }),
			[times as number[], ...order.map((k) => sums[k]!)],
			box,
		);
		plot.current = drawn;
		return () => drawn.destroy();
	}, [times, sums, dark, width, height, most, props.mark?.time, props.mark?.label]);

	const read = (to: number) => {
		const index = Math.max(0, Math.min(times.length - 1, to));
		const time = times[index];
		if (time === undefined || !plot.current) return;
		plot.current.setCursor({ left: plot.current.valToPos(time, "x"), top: 10 });
		setAt(index);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const far = event.shiftKey ? Math.max(1, Math.floor(times.length / 20)) : 1;
		if (event.key === "ArrowRight") read((at ?? -1) + far);
		else if (event.key === "ArrowLeft") read((at ?? times.length) - far);
		else if (event.key === "Home") read(0);
		else if (event.key === "End") read(times.length - 1);
		else if (event.key === "Enter" && onMoment && at !== null) onMoment(times[at]!);
		else return;
		event.preventDefault();
	};
	const svg = () => ({ text: lineSvg({ ...props, sums, most, width: Math.max(600, width), height }), width: Math.max(600, width), height });
	return (
		<Chart title={title} about={props.about} save={svg}>
			<Readout times={times} series={series} kind={kind} most={most} at={at} />
			<div
				class="chart-room line-chart"
				ref={room}
				role="img"
				aria-label={`${title}. Arrow keys read the figures.${onRange ? " Dragging zooms in." : ""}${onMoment ? " Click or Enter chooses a moment." : ""}`}
				tabIndex={0}
				onKeyDown={onKeyDown}
			/>
		</Chart>
	);
}

/** The legend, with the figures at the pointer. */
function Readout(props: { times: readonly number[]; series: readonly LineSeries[]; kind: Kind; most: number; at: number | null }) {
	const { times, at } = props;
	const time = at === null ? undefined : times[at];
	return (
		<ul class="legend readout" aria-live="polite">
			{props.series.map((each) => {
				const value = at === null ? null : (each.values[at] ?? null);
				return (
					<li key={each.id}>
						<Swatch color={each.color} /> {each.title}
						<span class="figure">{value === null ? "" : ` ${figureText(props.kind, value)}`}</span>
					</li>
				);
			})}
			{time !== undefined && <li class="soft figure">{`at ${formatMoment(time * 1000)}`}</li>}
		</ul>
	);
}

/** Returns the values to draw: for stacked series the sums up to each, since lower ones are painted over them. */
export function stack(series: readonly LineSeries[], length: number): (number | null)[][] {
	const below = new Array<number>(length).fill(0);
	return series.map((each) => {
		if (!each.stacked) return [...each.values];
		return below.map((sum, i) => (below[i] = sum + (each.values[i] ?? 0)));
	});
}

/** The top of the stack is painted first, lines last. */
export function drawOrder(series: readonly LineSeries[]): number[] {
	const places = series.map((_, k) => k);
	return [...places.filter((k) => series[k]!.stacked).reverse(), ...places.filter((k) => !series[k]!.stacked)];
}

export function greatest(values: readonly (number | null)[]): number {
	let most = 0;
	for (const value of values) if (value !== null && value > most) most = value;
	return most;
}

/** Converts a CSS colour to the form that a canvas accepts. */
export function resolveColor(color: string): string {
	const variable = /^var\((--[\w-]+)\)$/.exec(color)?.[1];
	return variable ? cssColor(variable) : color;
}

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, i) => 2 ** i);

interface Drawing extends LineChartProps {
	width: number;
	height: number;
	most: number;
	onCursor: (at: number | null) => void;
}

function options(drawing: Drawing): uPlot.Options {
	const { times, series, kind, most, onRange, onMoment, mark } = drawing;
	const scale = axisScale(kind, most);
	const clock = axisScale("us", times[times.length - 1] ?? 0);
	const axis = { stroke: cssColor("--text-soft"), font: `11px ${cssColor("--font")}`, grid: { stroke: cssColor("--line"), width: 1 }, ticks: { show: false } };
	const paths = drawing.stepped ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
	const short = (each: Scale) => (_: uPlot, values: number[]) => values.map((value) => tickText(each, value));
	return {
		width: drawing.width,
		height: drawing.height,
		legend: { show: false },
		padding: [8, 12, 0, 0],
		scales: { x: { time: false }, y: { range: [0, most > 0 ? most * 1.05 : 1] } },
		axes: [
			{ ...axis, size: 30, values: short(clock) },
			{ ...axis, size: 76, values: short(scale), ...(kind === "bytes" ? { incrs: POWERS_OF_TWO } : {}) },
		],
		cursor: { drag: { x: Boolean(onRange), y: false, setScale: false }, points: { size: 6 } },
		series: [{}, ...drawOrder(series).map((k) => seriesOptions(series[k]!, paths))],
		hooks: {
			setCursor: [(plot) => drawing.onCursor(plot.cursor.idx ?? null)],
			setSelect: [
				(plot) => {
					const { left, width } = plot.select;
					if (width > 2) onRange?.(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
					plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
				},
			],
			ready: onMoment
				? [
						(plot) =>
							plot.over.addEventListener("click", () => {
								const time = times[plot.cursor.idx ?? -1];
								if (time !== undefined) onMoment(time);
							}),
					]
				: [],
			draw: mark ? [(plot) => drawMark(plot, mark)] : [],
		},
	};
}

function seriesOptions(each: LineSeries, paths: uPlot.Series.PathBuilder | undefined): uPlot.Series {
	const color = resolveColor(each.color);
	return {
		label: each.title,
		stroke: color,
		width: each.stacked ? 0.5 : 1.75,
		...(each.stacked ? { fill: color } : {}),
		...(paths ? { paths } : {}),
		points: { show: false },
	};
}

function drawMark(plot: uPlot, mark: { time: number; label: string }): void {
	const { ctx, bbox } = plot;
	const x = plot.valToPos(mark.time, "x", true);
	if (x < bbox.left || x > bbox.left + bbox.width) return;
	ctx.save();
	ctx.strokeStyle = cssColor("--text");
	ctx.fillStyle = cssColor("--text");
	ctx.setLineDash([4, 3]);
	ctx.beginPath();
	ctx.moveTo(x, bbox.top);
	ctx.lineTo(x, bbox.top + bbox.height);
	ctx.stroke();
	ctx.font = `${11 * devicePixelRatio}px ${cssColor("--font")}`;
	const width = ctx.measureText(mark.label).width;
	const left = x + 6 + width > bbox.left + bbox.width;
	const y = bbox.top + 14 * devicePixelRatio;
	ctx.textAlign = left ? "right" : "left";
	ctx.fillStyle = cssColor("--surface"); // or the label cannot be read above the areas of the chart
	ctx.fillRect(left ? x - width - 9 : x + 3, y - 12 * devicePixelRatio, width + 6, 16 * devicePixelRatio);
	ctx.fillStyle = cssColor("--text");
	ctx.fillText(mark.label, x + (left ? -6 : 6), y);
	ctx.restore();
}
