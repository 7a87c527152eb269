// SPDX-License-Identifier: Apache-2.0
//
// Stacked bars, such as the steps of a trace or the ranks of a run. The arrow keys move between bars; Enter follows a
// bar's link.
import { useRef, useState } from "preact/hooks";
import { axisScale, figureText, type Kind } from "../format/scale";
import { formatPercent } from "../format/units";
import { Chart, Legend, moveFocus, saveOf, type Series, Swatch, ticks, ValueAxis } from "./chart";
import { differingParts } from "./name_split";
import { useWidth } from "./size";
import { type Hover, Pairs, Tooltip } from "./tooltip";

export interface BarItem {
	name: string;
	/** The text below the bar; by default its name. */
	label?: string;
	/** One figure per series. */
	parts: number[];
	href?: string | undefined;
}

interface BarsProps {
	title: string;
	about?: string | undefined;
	/** What a bar represents: "step". */
	item: string;
	series: readonly Series[];
	bars: readonly BarItem[];
	kind: Kind;
	height?: number;
}

const LEFT = 64;
const BOTTOM = 24;
const TOP = 8;
const BAR_MAX = 72;
const BAR_MIN = 3;
/** Width of a character of a label, and the gap between two labels. */
const CHARACTER = 6.6;
const GAP = 5;

export function Bars(props: BarsProps) {
	const { title, item, series, bars, kind, height = 220 } = props;
	const svg = useRef<SVGSVGElement>(null);
	const [box, room] = useWidth<HTMLDivElement>();
	const [hover, setHover] = useState<Hover<number>>();
	const [active, setActive] = useState(0);
	const sums = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part, 0));
	const marks = ticks(kind, sums.reduce((most, sum) => Math.max(most, sum), 0), 4);
	const most = Math.max(marks[marks.length - 1] ?? 0, 1e-9);
	const scale = axisScale(kind, most);
	const slot = Math.max(BAR_MIN + 1, Math.min(BAR_MAX * 1.3, (room - LEFT - 8) / Math.max(1, bars.length)));
	const width = Math.max(room, LEFT + slot * bars.length + 8);
	const y = (value: number) => TOP + (height - TOP - BOTTOM) * (1 - value / most);
	const { labels, every } = labelsOf(bars, slot);

	const show = (i: number, target: Element) => {
		const place = target.getBoundingClientRect();
		setActive(i);
		setHover({ item: i, x: place.x + place.width / 2, y: place.y + 12 });
	};
	const onKeyDown = (event: KeyboardEvent) => moveFocus(event, svg.current?.querySelectorAll<SVGElement>("[data-bar]"), active);
	return (
		<Chart title={title} about={props.about} save={saveOf(svg)}>
			<Legend series={series} />
			<div class="chart-room" ref={box}>
				<svg ref={svg} width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={title} onKeyDown={onKeyDown}>
					<ValueAxis marks={marks} scale={scale} y={y} left={LEFT} width={width} />
					{bars.map((bar, i) => {
						const x = LEFT + slot * i + slot * 0.12;
						let below = 0;
						return (
							<a
								key={i}
								data-bar={i}
								role={bar.href === undefined ? "img" : undefined}
								href={bar.href}
								tabindex={i === active ? 0 : -1}
								aria-label={`${item} ${bar.name}: ${series.map((each, k) => `${each.title} ${figureText(kind, bar.parts[k] ?? 0)}`).join(", ")}`}
								onMouseMove={(event) => setHover({ item: i, x: event.clientX, y: event.clientY })}
								onMouseLeave={() => setHover(undefined)}
								onFocus={(event) => show(i, event.currentTarget)}
								onBlur={() => setHover(undefined)}
							>
								<rect class="hit" x={LEFT + slot * i} y={TOP} width={slot} height={height - TOP - BOTTOM} />
								{bar.parts.map((part, k) => {
									below += part;
									return (
										<rect
											key={k}
											style={{ fill: series[k]!.color }}
											x={x}
											y={y(below)}
											width={slot * 0.76}
											height={Math.max(0, y(below - part) - y(below))}
										/>
									);
								})}
								{i % every === 0 && (
									<text class="axis" x={x + slot * 0.38} y={height - 8} text-anchor="middle">
										{labels[i]}
									</text>
								)}
							</a>
						);
					})}
				</svg>
			</div>
			{hover && bars[hover.item] && (
				<Tooltip x={hover.x} y={hover.y}>
					<strong>{`${item} ${bars[hover.item]!.name}`}</strong>
					<BarPairs bar={bars[hover.item]!} sum={sums[hover.item] ?? 0} series={series} kind={kind} />
				</Tooltip>
			)}
		</Chart>
	);
}

/** Returns the texts below the bars, and of how many bars one has its text. If they do not fit, they are what the names differ in. */
function labelsOf(bars: readonly BarItem[], slot: number): { labels: string[]; every: number } {
	const everyOf = (texts: readonly string[]) => Math.ceil((texts.reduce((most, text) => Math.max(most, text.length), 0) * CHARACTER + GAP) / slot);
	const names = bars.map((bar) => bar.label ?? bar.name);
	if (everyOf(names) === 1) return { labels: names, every: 1 };
	const labels = differingParts(names);
	return { labels, every: everyOf(labels) };
}

function BarPairs({ bar, sum, series, kind }: { bar: BarItem; sum: number; series: readonly Series[]; kind: Kind }) {
	const share = (part: number) => (sum > 0 ? ` (${formatPercent((part / sum) * 100)})` : "");
	return (
		<Pairs
			pairs={[
				...series.flatMap<[preact.ComponentChildren, string]>((each, k) => {
					const part = bar.parts[k] ?? 0;
					const name = (
						<>
							<Swatch color={each.color} /> {each.title}
						</>
					);
					return part > 0 ? [[name, `${figureText(kind, part)}${share(part)}`]] : [];
				}),
				["total", figureText(kind, sum)],
			]}
		/>
	);
}
