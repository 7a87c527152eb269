// SPDX-License-Identifier: Apache-2.0
//
// Operators below the roof: speed by intensity, both in powers of ten. The slope of the roof is memory bandwidth, its
// flat top the processor's compute rate. The arrow keys move between points; Enter follows a point's link.
import { useRef, useState } from "preact/hooks";
import { addTo } from "../data/groups";
import type { Roof } from "../data/replies";
import { formatBytes, formatNumber, formatPercent, formatSpeed, formatUs } from "../format/units";
import type { RooflineRow } from "../data/tables";
import { Chart, Legend, saveOf, type Series } from "./chart";
import { useWidth } from "./size";
import { type Hover, Pairs, Tooltip } from "./tooltip";

interface RooflineChartProps {
	title: string;
	roof: Roof;
	rows: readonly RooflineRow[];
	hrefOf: (row: RooflineRow) => string;
}

const HEIGHT = 360;
const LEFT = 84;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 40;
/** Fraction of a power of ten. */
const MARGIN = 0.12;
/** Of the text of labels, and from a line to the baselines of the labels above and below it. */
const LABEL_HEIGHT = 15;
const LABEL_ABOVE = 5;
const LABEL_BELOW = 14;
const RADIUS_MIN = 4;
const RADIUS_MAX = 22;
/** Further points, which take the least time, would only hide others. */
export const POINTS_MAX = 60;

const BOUNDS: Series[] = [
	{ id: "compute", title: "bound by compute", color: "var(--kind-kernel)" },
	{ id: "memory", title: "bound by memory", color: "var(--kind-operator)" },
	{ id: "overhead", title: "bound by overhead", color: "var(--kind-memcpy)" },
	{ id: "", title: "roof unknown", color: "var(--kind-other)" },
];

interface Ceiling {
	title: string;
	flops: number;
}

/** Returns whether a row can be drawn: it must have FLOPs. */
export function hasPlace(row: RooflineRow): boolean {
	return row.flops > 0 && row.bytes > 0 && row.time_us > 0;
}

/** Returns the flat tops for the types in the chart, and the slopes of memory and of the fastest cache. */
function ceilingsOf(roof: Roof, rows: readonly RooflineRow[]): { tops: Ceiling[]; slopes: { title: string; perSecond: number }[] } {
	const byFlops = new Map<number, string[]>();
	for (const [type, flops] of Object.entries(roof.flops)) {
		if (rows.some((row) => row.dtype === type)) addTo(byFlops, flops, type);
	}
	const tops = [...byFlops].map(([flops, types]) => ({ title: types.join(", "), flops }));
	const memory = roof.bandwidth.at(-1)?.[1];
	const cache = Math.max(0, ...roof.bandwidth.map(([, perSecond]) => perSecond));
	const slopes = memory === undefined ? [] : [{ title: "memory", perSecond: memory }];
	if (memory !== undefined && cache > memory) slopes.push({ title: "cache", perSecond: cache });
	return { tops, slopes };
}

function ceilingText({ title, flops }: Ceiling): string {
	return `${title}, ${formatSpeed(flops, "FLOP/s")}`;
}

/** Returns the labels of ceilings at their baselines: each above its line, or below it if a label or a line is there. Where neither is
 * free, there is none. */
export function placeLabels<C extends Ceiling>(ceilings: readonly C[], y: (flops: number) => number): { ceiling: C; at: number }[] {
	const placed: { ceiling: C; at: number }[] = [];
	for (const ceiling of [...ceilings].sort((a, b) => b.flops - a.flops)) {
		const line = y(ceiling.flops);
		const isFree = (baseline: number) =>
			placed.every((other) => Math.abs(other.at - baseline) >= LABEL_HEIGHT) &&
			ceilings.every((other) => y(other.flops) <= baseline - LABEL_HEIGHT + LABEL_ABOVE || y(other.flops) >= baseline + LABEL_ABOVE);
		const at = [line - LABEL_ABOVE, line + LABEL_BELOW].find(isFree);
		if (at !== undefined) placed.push({ ceiling, at });
	}
	return placed;
}

/** Returns whole powers of ten around the figures, with a margin for points at either end. */
function decades(figures: readonly number[]): [number, number] {
	const logs = figures.map((figure) => Math.log10(figure)).filter(Number.isFinite);
	if (logs.length === 0) return [0, 1];
	return [Math.floor(Math.min(...logs) - MARGIN), Math.ceil(Math.max(...logs) + MARGIN)];
}

export function RooflineChart({ title, roof, rows, hrefOf }: RooflineChartProps) {
	const svg = useRef<SVGSVGElement>(null);
	const [box, room] = useWidth<HTMLDivElement>();
	const [hover, setHover] = useState<Hover<number>>();
	const [active, setActive] = useState(0);
	const points = rows.filter(hasPlace).slice(0, POINTS_MAX);
	const { tops, slopes } = ceilingsOf(roof, points);
	const speedOf = (row: RooflineRow) => (row.flops / row.time_us) * 1e6;
	const intensityOf = (row: RooflineRow) => row.flops / row.bytes;
	const top = Math.max(0, ...tops.map((each) => each.flops));
	const slope = slopes[0]?.perSecond;
	const ridge = slope && top > 0 ? [top / slope] : [];
	const [xLow, xHigh] = decades([...points.map(intensityOf), ...ridge]);
	const [yLow, yHigh] = decades([...points.map(speedOf), ...tops.map((each) => each.flops)]);
	const width = Math.max(room, 420);
	const x = (intensity: number) => LEFT + ((Math.log10(intensity) - xLow) / (xHigh - xLow)) * (width - LEFT - RIGHT);
	const y = (flops: number) => HEIGHT - BOTTOM - ((Math.log10(flops) - yLow) / (yHigh - yLow)) * (HEIGHT - TOP - BOTTOM);
	const labels = placeLabels(tops, y);
	const unlabelled = tops.filter((top) => !labels.some(({ ceiling }) => ceiling === top));
	const most = Math.max(...points.map((row) => row.time_us), 1e-9);
	const radius = (row: RooflineRow) => RADIUS_MIN + (RADIUS_MAX - RADIUS_MIN) * Math.sqrt(row.time_us / most);
	const colorOf = (row: RooflineRow) => (BOUNDS.find((each) => each.id === (row.bound ?? "")) ?? BOUNDS[3]!).color;
	/** From where the slope enters the chart up to the top, then to the right edge. */
	const roofPath = (perSecond: number, flops: number | undefined) => {
		const begin = Math.max(10 ** xLow, 10 ** yLow / perSecond);
		const end = Math.min(10 ** xHigh, (flops ?? 10 ** yHigh) / perSecond);
		const path = `M${x(begin)} ${y(begin * perSecond)}L${x(end)} ${y(end * perSecond)}`;
		return flops === undefined ? path : `${path}H${width - RIGHT}`;
	};
	const show = (i: number, target: Element) => {
		const place = target.getBoundingClientRect();
		setActive(i);
		setHover({ item: i, x: place.x + place.width / 2, y: place.y + place.height / 2 });
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const to = { ArrowRight: active + 1, ArrowLeft: active - 1, Home: 0, End: points.length - 1 }[event.key];
		if (to === undefined) return;
		event.preventDefault();
		svg.current?.querySelectorAll<SVGElement>("[data-point]")[Math.max(0, Math.min(points.length - 1, to))]?.focus();
	};
	const range = (low: number, high: number) => Array.from({ length: high - low + 1 }, (_, i) => low + i);
	const every = Math.ceil((xHigh - xLow) / Math.max(2, Math.floor((width - LEFT) / 70)));
	const hovered = hover && points[hover.item];
	return (
		<Chart title={title} about="the larger a point, the more time it takes" save={saveOf(svg)}>
			<Legend series={BOUNDS.filter((each) => points.some((row) => (row.bound ?? "") === each.id))} />
			<div class="chart-room" ref={box}>
				<svg ref={svg} width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="group" aria-label={title} onKeyDown={onKeyDown}>
					<g aria-hidden="true">
						{range(yLow, yHigh).map((power) => (
							<g key={power}>
								<line class="rule" x1={LEFT} x2={width - RIGHT} y1={y(10 ** power)} y2={y(10 ** power)} />
								<text class="axis" x={LEFT - 8} y={y(10 ** power) + 4} text-anchor="end">
									{formatSpeed(10 ** power, "FLOP/s")}
								</text>
							</g>
						))}
						{range(xLow, xHigh)
							.filter((power) => (power - xLow) % every === 0)
							.map((power) => (
								<g key={power}>
									<line class="rule" y1={TOP} y2={HEIGHT - BOTTOM} x1={x(10 ** power)} x2={x(10 ** power)} />
									<text class="axis" x={x(10 ** power)} y={HEIGHT - BOTTOM + 15} text-anchor={power === xHigh ? "end" : "middle"}>
										{power < -3 || power > 5 ? `1e${power}` : formatNumber(10 ** power)}
									</text>
								</g>
							))}
						<text class="axis" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">
							Intensity, FLOP for each byte
						</text>
						{slopes.map((each, i) => (
							<g key={each.title}>
								{(tops.length > 0 ? tops.map((one) => one.flops) : [undefined]).map((flops) => (
									<path key={flops} class={i === 0 ? "roof" : "roof roof-cache"} d={roofPath(each.perSecond, flops)} />
								))}
							</g>
						))}
					</g>
					{points.map((row, i) => (
						<a
							key={i}
							data-point={i}
							href={hrefOf(row)}
							tabindex={i === active ? 0 : -1}
							aria-label={`${row.name}, ${row.dtype}: ${formatUs(row.time_us)}, ${formatSpeed(speedOf(row), "FLOP/s")}, ${row.percent_of_roof === null ? "roof unknown" : `${formatPercent(row.percent_of_roof)} of the roof`}`}
							onMouseMove={(event) => setHover({ item: i, x: event.clientX, y: event.clientY })}
							onMouseLeave={() => setHover(undefined)}
							onFocus={(event) => show(i, event.currentTarget)}
							onBlur={() => setHover(undefined)}
						>
							<circle class="point" style={{ fill: colorOf(row) }} cx={x(intensityOf(row))} cy={y(speedOf(row))} r={radius(row)} />
						</a>
					))}
					<g aria-hidden="true">
						{labels.map(({ ceiling, at }) => (
							<text key={ceiling.title} class="axis roof-label" x={width - RIGHT - 4} y={at} text-anchor="end">
								{ceilingText(ceiling)}
							</text>
						))}
					</g>
				</svg>
			</div>
			{slopes.length > 0 && (
				<p class="soft">
					{slopes.map((each) => `${each.title} ${formatSpeed(each.perSecond, "B/s")}`).join(" (line), ") + (slopes.length > 1 ? " (dashed)" : "")}
					{unlabelled.length > 0 && `; without a label: ${unlabelled.map(ceilingText).join("; ")}`}
				</p>
			)}
			{hovered && (
				<Tooltip x={hover.x} y={hover.y}>
					<strong>{hovered.name}</strong>
					{hovered.input_shapes !== null && <p class="mono long">{hovered.input_shapes}</p>}
					<Pairs
						pairs={[
							["type", hovered.dtype],
							["time", formatUs(hovered.time_us)],
							["speed", formatSpeed(speedOf(hovered), "FLOP/s")],
							["traffic", formatBytes(hovered.bytes)],
							...(hovered.percent_of_roof === null || hovered.roof_us === null || hovered.avoidable_us === null
								? []
								: ([
										["of the roof", formatPercent(hovered.percent_of_roof)],
										["bound by", hovered.bound ?? ""],
										["at the roof", formatUs(hovered.roof_us)],
										["avoidable", formatUs(hovered.avoidable_us)],
									] satisfies [string, string][])),
						]}
					/>
				</Tooltip>
			)}
		</Chart>
	);
}
