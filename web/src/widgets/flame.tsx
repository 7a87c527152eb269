// SPDX-License-Identifier: Apache-2.0
//
// A tree of calls as an icicle: callers above callees, as wide as their time. A click or Enter zooms to a box; the
// arrow keys walk the tree.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isModule, lastParts, moduleName } from "../format/module_name";
import { figureText, type Kind } from "../format/scale";
import { formatPercent } from "../format/units";
import { Chart, saveOf } from "./chart";
import { type Box, type CallNode, findNodes, flameBoxes, nodeAt, pathOf } from "./flame_model";
import { baseName } from "./links";
import { useWidth } from "./size";
import { type Hover, Pairs, Tooltip } from "./tooltip";

interface FlameProps {
	title: string;
	/** The root: shares are relative to its total. Times are microseconds. */
	root: CallNode;
	/** The box that fills the width: indexes of children from the root, "0.3.1". */
	zoom: string;
	onZoom: (path: string | undefined) => void;
	/** Boxes whose name contains this are highlighted. */
	find?: string;
	colorOf?: (node: CallNode) => string;
	/** Figures in the tooltip of a box; by default total and self time. */
	pairsOf?: (node: CallNode) => [string, string][];
	/** Callers are below their callees. */
	inverted?: boolean;
	/** Called with the box that the user looks at. */
	onPick?: (node: CallNode) => void;
	/** Kind of the figures; default: microseconds. */
	kind?: Kind;
	tools?: preact.ComponentChildren;
}

const ROW = 19;
const CHARACTER = 6.7;

/** Returns the colour of a frame by its kind. */
export function frameColor(node: CallNode): string {
	const { name } = node;
	if (!node.parent) return "var(--kind-other)";
	if (isModule(name)) return "var(--kind-module)";
	if (node.file !== null || name.startsWith("<built-in ") || /\(\d+\): /.test(name)) return "var(--kind-python)";
	if (/^[\w.]+::/.test(name) || /Backward\d*$/.test(name)) return "var(--kind-operator)";
	return "var(--kind-annotation)";
}

export function Flame(props: FlameProps) {
	const { root, title, find = "", colorOf = frameColor, kind = "us" } = props;
	const pairsOf =
		props.pairsOf ??
		((node: CallNode): [string, string][] => [
			[kind === "us" ? "time" : "total", figure(node.total, root.total, kind)],
			["self", figure(node.self, root.total, kind)],
		]);
	const svg = useRef<SVGSVGElement>(null);
	const [room, width] = useWidth<HTMLDivElement>();
	const [hover, setHover] = useState<Hover<CallNode>>();
	const path = props.zoom === "" ? [] : props.zoom.split(".").map(Number);
	const zoomed = nodeAt(root, path) ?? root;
	const [active, setActive] = useState<CallNode>();
	const boxes = useMemo(() => flameBoxes(zoomed, width > 0 ? 1.2 / width : 0.01), [zoomed, width]);
	const found = useMemo(() => findNodes(root, find), [root, find]);
	const deepest = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
	const height = (deepest + 1) * ROW + 2;
	const top = (box: Box) => (props.inverted ? deepest - box.depth : box.depth) * ROW + 1;
	const drawn = useMemo(() => new Set(boxes.map((box) => box.node)), [boxes]);
	const focus = active && drawn.has(active) ? active : zoomed;

	useEffect(() => setHover(undefined), [zoomed]);
	const zoomTo = (node: CallNode) => {
		setActive(node);
		props.onPick?.(node);
		props.onZoom(pathOf(node).join(".") || undefined);
	};
	const walkTo = (node: CallNode | undefined) => {
		if (!node || !drawn.has(node)) return;
		setActive(node);
		props.onPick?.(node);
		const index = boxes.findIndex((box) => box.node === node && box.merged === 0);
		svg.current?.querySelector<SVGElement>(`[data-box="${index}"]`)?.focus();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const siblings = focus.parent?.children ?? [focus];
		const at = siblings.indexOf(focus);
		const [deeper, back] = props.inverted ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
		if (event.key === deeper) walkTo(largest(focus.children));
		else if (event.key === back) walkTo(focus.parent ?? undefined);
		else if (event.key === "ArrowLeft") walkTo(siblings[at - 1]);
		else if (event.key === "ArrowRight") walkTo(siblings[at + 1]);
		else if (event.key === "Enter" || event.key === " ") zoomTo(focus);
		else if (event.key === "Escape" && zoomed.parent) zoomTo(zoomed.parent);
		else return;
		event.preventDefault();
	};
	return (
		<Chart
			title={title}
			about={find === "" ? undefined : foundText(found.nodes.size, found.total, root.total)}
			save={saveOf(svg)}
			tools={
				<>
					{props.tools}
					<button type="button" class="small" disabled={zoomed === root} onClick={() => zoomTo(root)}>
						Show all
					</button>
				</>
			}
		>
			<div class="chart-room flame" ref={room}>
				{width > 0 && (
					<svg ref={svg} width={width} height={height} role="tree" aria-label={title} onKeyDown={onKeyDown}>
						{boxes.map((box, i) => (
							<FlameBox
								key={i}
								index={i}
								box={box}
								width={width}
								text={pairsOf(box.node)[0]![1]}
								color={colorOf(box.node)}
								found={found.nodes.has(box.node)}
								dim={find !== "" && !found.nodes.has(box.node)}
								y={top(box)}
								above={box.above}
								tabbed={box.node === focus && box.merged === 0}
								onZoom={() => zoomTo(box.merged > 0 ? box.node.parent! : box.node)}
								onHover={setHover}
							/>
						))}
						{/* Not in the boxes, whose labels have the complete names. */}
						<g class="flame-texts" aria-hidden="true">
							{boxes.map((box, i) => (
								<BoxText key={i} box={box} width={width} y={top(box)} />
							))}
						</g>
					</svg>
				)}
			</div>
			{hover && (
				<Tooltip x={hover.x} y={hover.y}>
					<strong class="long">{hover.item.name}</strong>
					{hover.item.file !== null && <div class="long">{placeOf(hover.item)}</div>}
					<Pairs pairs={pairsOf(hover.item)} />
				</Tooltip>
			)}
		</Chart>
	);
}

function largest(nodes: readonly CallNode[]): CallNode | undefined {
	return nodes.reduce<CallNode | undefined>((best, node) => (!best || node.total > best.total ? node : best), undefined);
}

function foundText(count: number, total: number, all: number): string {
	if (count === 0) return "nothing found";
	return `${count} found, ${figure(total, all, "us")}`;
}

function figure(value: number, all: number, kind: Kind): string {
	const share = all > 0 ? ` (${formatPercent((value / all) * 100)})` : "";
	return figureText(kind, value) + share;
}

interface BoxProps {
	index: number;
	box: Box;
	width: number;
	text: string;
	color: string;
	found: boolean;
	dim: boolean;
	y: number;
	above: boolean;
	tabbed: boolean;
	onZoom: () => void;
	onHover: (hover: Hover<CallNode> | undefined) => void;
}

function FlameBox(props: BoxProps) {
	const { box, width, y } = props;
	const label = box.merged > 0 ? `${box.merged} narrow frames` : moduleName(frameName(box.node));
	const kind = props.found ? " found" : props.dim ? " dim" : "";
	return (
		<g
			class={`flame-box${kind}${props.above ? " above" : ""}`}
			data-box={props.index}
			role="treeitem"
			aria-level={box.depth + 1}
			aria-label={`${label}, ${props.text}`}
			tabindex={props.tabbed ? 0 : -1}
			onClick={props.onZoom}
			onMouseMove={(event) => props.onHover({ item: box.node, x: event.clientX, y: event.clientY })}
			onMouseLeave={() => props.onHover(undefined)}
		>
			<rect x={box.from * width} y={y} width={widthOf(box, width)} height={ROW - 1} rx={1.5} style={{ fill: box.merged > 0 ? "var(--kind-other)" : props.color }} />
		</g>
	);
}

function widthOf(box: Box, width: number): number {
	return Math.max(0.5, box.width * width - 1);
}

function BoxText({ box, width, y }: { box: Box; width: number; y: number }) {
	const room = Math.floor((widthOf(box, width) - 6) / CHARACTER);
	if (room < 3 || box.merged > 0) return null;
	return (
		<text x={box.from * width + 4} y={y + 13}>
			{shorten(frameName(box.node), room)}
		</text>
	);
}

function placeOf({ file, line }: CallNode): string {
	return line === null ? `${file}` : `${file}:${line}`;
}

/** Returns the name of a frame. The code of a file outside of its functions is called "<module>" by Python in each file: its place says more. */
function frameName(node: CallNode): string {
	return node.name === "<module>" && node.file !== null ? placeOf({ ...node, file: baseName(node.file) }) : node.name;
}

/** Returns the part of a name that fits. For "path/to/train.py(12): forward" the end is most informative. */
export function shorten(name: string, room: number): string {
	if (name.length <= room && !isModule(name)) return name;
	const python = /(?:^|\/)([^/]*\(\d+\): .*)$/.exec(name);
	const text = lastParts(python?.[1] ?? moduleName(name), room);
	return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}
