// SPDX-License-Identifier: Apache-2.0
//
// The frame of a chart: its title, its legend, and the buttons that save it.
import type { ComponentChildren, RefObject } from "preact";
import { type Kind, type Scale, tickText } from "../format/scale";
import { fileName, saveSvgAsPng, saveText, svgText } from "./download";

export interface Series {
	id: string;
	title: string;
	/** In the form of CSS: "var(--kind-kernel)", "#8db4ec". */
	color: string;
}

interface ChartProps {
	title: string;
	/** Additional information after the title. */
	about?: ComponentChildren;
	children: ComponentChildren;
	tools?: ComponentChildren;
	/** Returns the chart as SVG text with its size. */
	save: () => { text: string; width: number; height: number } | undefined;
}

export function Chart({ title, about, children, tools, save }: ChartProps) {
	const name = fileName(title, "opstrobe");
	const saveSvg = () => {
		const svg = save();
		if (svg) saveText(svg.text, `${name}.svg`, "image/svg+xml");
	};
	const savePng = () => {
		const svg = save();
		if (svg) void saveSvgAsPng(svg.text, svg.width, svg.height, `${name}.png`);
	};
	return (
		<figure class="chart">
			<figcaption>
				<h2>{title}</h2>
				{about && <span class="soft">{about}</span>}
				<span class="tools-space" />
				{tools}
				<button type="button" class="small" title="Save the chart as a drawing (SVG)" aria-label={`Save ${title} as SVG`} onClick={saveSvg}>
					SVG
				</button>
				<button type="button" class="small" title="Save the chart as a picture (PNG)" aria-label={`Save ${title} as PNG`} onClick={savePng}>
					PNG
				</button>
			</figcaption>
			{children}
		</figure>
	);
}

/** For charts that are an SVG of the page. */
export function saveOf(ref: RefObject<SVGSVGElement>): ChartProps["save"] {
	return () => {
		const svg = ref.current;
		if (!svg) return undefined;
		const { width, height } = svg.getBoundingClientRect();
		return { text: svgText(svg), width: Math.round(width), height: Math.round(height) };
	};
}

export function Legend({ series }: { series: readonly Series[] }) {
	return (
		<ul class="legend">
			{series.map((each) => (
				<li key={each.id}>
					<Swatch color={each.color} /> {each.title}
				</li>
			))}
		</ul>
	);
}

export function Swatch({ color }: { color: string }) {
	return <span class="swatch" aria-hidden="true" style={{ background: color }} />;
}

/** Returns about `about` round figures from 0 up to `largest` or slightly more. Bytes are round in powers of two. */
export function ticks(kind: Kind, largest: number, about: number): number[] {
	if (!(largest > 0) || !Number.isFinite(largest)) return [0];
	const rough = largest / about;
	const base = kind === "bytes" ? 2 : 10;
	const power = base ** Math.floor(Math.log(rough) / Math.log(base) + 1e-9);
	const step = (kind === "bytes" ? [1, 2] : [1, 2, 2.5, 5, 10]).map((each) => each * power).find((each) => each >= rough) ?? rough;
	const count = Math.ceil(largest / step - 1e-9);
	return Array.from({ length: count + 1 }, (_, i) => i * step);
}

/** Returns about `about` round figures from `least` or slightly less up to `largest` or slightly more. */
export function ticksBetween(kind: Kind, least: number, largest: number, about: number): number[] {
	const step = ticks(kind, largest - least, about)[1];
	if (step === undefined) return ticks(kind, largest, about);
	const [first, last] = [Math.floor(least / step + 1e-9), Math.ceil(largest / step - 1e-9)];
	return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

interface ValueAxisProps {
	marks: readonly number[];
	scale: Scale;
	y: (value: number) => number;
	left: number;
	width: number;
}

/** Horizontal lines with their figures on the left. */
export function ValueAxis({ marks, scale, y, left, width }: ValueAxisProps) {
	return (
		<>
			{marks.map((mark) => (
				<g key={mark} aria-hidden="true">
					<line class="rule" x1={left} x2={width} y1={y(mark)} y2={y(mark)} />
					<text class="axis" x={left - 8} y={y(mark) + 4} text-anchor="end">
						{tickText(scale, mark)}
					</text>
				</g>
			))}
		</>
	);
}

/** Moves the focus between items of a chart: arrow keys, Home and End. */
export function moveFocus(event: KeyboardEvent, items: NodeListOf<SVGElement> | undefined, active: number): void {
	if (!items) return;
	const to = { ArrowRight: active + 1, ArrowLeft: active - 1, Home: 0, End: items.length - 1 }[event.key];
	if (to === undefined) return;
	event.preventDefault();
	items[Math.max(0, Math.min(items.length - 1, to))]?.focus();
}
