// SPDX-License-Identifier: Apache-2.0
//
// The model as a drawing: nested modules, in the order of their first calls, coloured by their costs.
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { useParam } from "../app/params";
import { routeHref } from "../app/route";
import { cssColor, theme } from "../app/theme";
import type { ViewProps } from "../app/views";
import type { Module, ModulesReply } from "../data/replies";
import type { DataSource } from "../data/source";
import { TABLES } from "../data/tables";
import { moduleName } from "../format/module_name";
import { figureText as kindText } from "../format/scale";
import { formatBytes, formatCount, formatScaled, formatShare, formatUs } from "../format/units";
import { Calls } from "../widgets/calls";
import { Select } from "../widgets/choice";
import { timelineHref } from "../widgets/links";
import { StepView, useSameSteps } from "../widgets/step_choice";
import { Pairs } from "../widgets/tooltip";
import { HEATS, type Heat, lastName, modelParts, openDepth, type Part, selfOf, totalOf } from "./model_parts";
import { NoModules } from "./modules";

const BOXES_AT_FIRST = 40;

export function Model({ source, trace }: ViewProps) {
	return (
		<StepView<ModulesReply> source={source} trace={trace} path="modules" what="the modules">
			{({ modules }) => (modules.every((module) => module.first_call === null) ? <NoModules /> : <Drawing source={source} trace={trace.id} modules={modules} />)}
		</StepView>
	);
}

interface Shown {
	part: Part;
	depth: number;
	open: boolean;
	parent: Part | undefined;
}

function Drawing({ source, trace, modules }: { source: DataSource; trace: string; modules: readonly Module[] }) {
	const offered = HEATS.filter((heat) => modules.some((module) => heat.of(module) > 0));
	const [wanted, setHeat] = useParam("heat", offered[0]?.id ?? "cpu");
	const heat = offered.find((each) => each.id === wanted) ?? offered[0] ?? HEATS[0]!;
	const [folding, setFolding] = useParam("fold", "1");
	const [chosen, setChosen] = useParam("part");
	const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
	const [flipped, setFlipped] = useState<ReadonlySet<string>>(new Set());
	const [depthWanted, setDepth] = useState<number>();
	const [active, setActive] = useState<string>();
	const tree = useRef<HTMLDivElement>(null);
	const fold = folding === "1";

	const roots = useMemo(() => modelParts(modules, fold, unfolded), [modules, fold, unfolded]);
	const depth = depthWanted ?? openDepth(roots, BOXES_AT_FIRST);
	const isOpen = (part: Part, level: number) => part.children.length > 0 && level < depth !== flipped.has(part.key);
	const shown: Shown[] = [];
	const visit = (parts: readonly Part[], level: number, parent: Part | undefined) => {
		for (const part of parts) {
			const open = isOpen(part, level);
			shown.push({ part, depth: level, open, parent });
			if (open) visit(part.children, level + 1, part);
		}
	};
	visit(roots, 0, undefined);
	const whole = roots.reduce((sum, part) => sum + totalOf(part, heat), 0);
	const figures = new Map(shown.map(({ part, open }) => [part.key, open ? selfOf(part, heat) : totalOf(part, heat)]));
	const most = Math.max(...figures.values());
	const at = Math.max(0, shown.findIndex(({ part }) => part.key === (active ?? chosen)));
	const chosenPart = shown.find(({ part }) => part.key === chosen)?.part;

	const flip = (part: Part) => {
		const next = new Set(flipped);
		if (!next.delete(part.key)) next.add(part.key);
		setFlipped(next);
	};
	const focus = (part: Part | undefined) => {
		if (!part) return;
		setActive(part.key);
		tree.current?.querySelector<HTMLElement>(`[data-part="${part.key}"]`)?.focus();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const { part, open, parent } = shown[at]!;
		if (event.key === "ArrowDown") focus(shown[at + 1]?.part);
		else if (event.key === "ArrowUp") focus(shown[at - 1]?.part);
		else if (event.key === "Home") focus(shown[0]!.part);
		else if (event.key === "End") focus(shown[shown.length - 1]!.part);
		else if (event.key === "ArrowRight" && open) focus(part.children[0]);
		else if (event.key === "ArrowRight" && part.children.length > 0) flip(part);
		else if (event.key === "ArrowLeft" && open) flip(part);
		else if (event.key === "ArrowLeft") focus(parent);
		else if (event.key === "Enter" || event.key === " ") setChosen(part.key);
		else if (event.key === "Escape") setChosen(undefined);
		else return;
		event.preventDefault();
	};
	const openTo = (levels: number | undefined) => {
		setDepth(levels);
		setFlipped(new Set());
	};
	const color = useMemo(heatColors, [theme.value]);
	const drawing: DrawingState = {
		heat,
		whole,
		most,
		figures,
		isOpen,
		flip,
		tabbed: shown[at]!.part.key,
		chosen,
		choose: (part) => {
			setActive(part.key);
			setChosen(part.key);
		},
		color,
	};
	return (
		<>
			<div class="tools">
				<Select label="Heat" options={offered} value={heat.id} onChange={setHeat} />
				<label>
					<input type="checkbox" checked={fold} onChange={(event) => setFolding(event.currentTarget.checked ? "1" : "0")} /> Fold equal blocks
				</label>
				<button type="button" onClick={() => openTo(Infinity)}>
					Open all
				</button>
				<button type="button" onClick={() => openTo(0)}>
					Close all
				</button>
				<span class="tools-space" />
				<Legend heat={heat} most={most} whole={whole} color={drawing.color} />
			</div>
			<div class={chosenPart ? "model beside" : "model"}>
				<div ref={tree} class="model-tree" role="tree" aria-label={`Modules by ${heat.title}`} onKeyDown={onKeyDown}>
					<Boxes parts={roots} level={0} drawing={drawing} />
				</div>
				{chosenPart && (
					<aside class="detail" aria-label="The chosen module">
						<button type="button" class="plain close" aria-label="Close" onClick={() => setChosen(undefined)}>
							✕
						</button>
						<Details source={source} trace={trace} part={chosenPart} heat={heat} whole={whole}>
							{chosenPart.modules.length > 1 && !unfolded.has(chosenPart.key) && (
								<button type="button" onClick={() => setUnfolded(new Set([...unfolded, chosenPart.key]))}>
									{`Show the ${chosenPart.modules.length} blocks`}
								</button>
							)}
						</Details>
					</aside>
				)}
			</div>
			<p class="soft">
				Each module is drawn in the one that contains it. Arrows follow the order of the first calls. The color of an open module is its cost without its parts, so the colors add up to the model.
			</p>
		</>
	);
}

interface DrawingState {
	heat: Heat;
	/** Sum over the model. */
	whole: number;
	/** Maximum of all boxes. */
	most: number;
	/** By key: for an open part without its contents. */
	figures: ReadonlyMap<string, number>;
	isOpen: (part: Part, level: number) => boolean;
	flip: (part: Part) => void;
	tabbed: string;
	chosen: string;
	choose: (part: Part) => void;
	color: (share: number) => string;
}

function Boxes({ parts, level, drawing }: { parts: readonly Part[]; level: number; drawing: DrawingState }) {
	return (
		<div class="model-row" role="presentation">
			{parts.map((part, i) => (
				<div key={part.key} class="model-place" role="presentation">
					{i > 0 && (
						<span class="model-arrow" aria-hidden="true">
							→
						</span>
					)}
					<Box part={part} level={level} drawing={drawing} />
				</div>
			))}
		</div>
	);
}

function Box({ part, level, drawing }: { part: Part; level: number; drawing: DrawingState }) {
	const { heat, whole, most } = drawing;
	const open = drawing.isOpen(part, level);
	const figure = drawing.figures.get(part.key) ?? 0;
	return (
		<div class={`model-box${open ? " open" : ""}${part.modules.length > 1 ? " folded" : ""}`} role="presentation">
			<div
				class="model-head"
				role="treeitem"
				aria-level={level + 1}
				aria-expanded={part.children.length > 0 ? open : undefined}
				aria-selected={part.key === drawing.chosen}
				tabIndex={part.key === drawing.tabbed ? 0 : -1}
				data-part={part.key}
				data-figure={figure}
				style={{ background: drawing.color(most > 0 ? figure / most : 0) }}
				title={part.modules.length > 1 ? `${pathOf(part.modules[0]!)} … ${pathOf(part.modules[part.modules.length - 1]!)}` : pathOf(part.modules[0]!)}
				onClick={() => drawing.choose(part)}
				onDblClick={() => drawing.flip(part)}
			>
				{part.children.length > 0 && (
					<span
						class="model-twig"
						aria-hidden="true"
						onClick={(event) => {
							event.stopPropagation();
							drawing.flip(part);
						}}
					>
						{open ? "▾" : "▸"}
					</span>
				)}
				<span class="model-name">{nameOf(part)}</span> {part.modules.length > 1 && <strong>{`×${part.modules.length} `}</strong>}
				<span class="model-class">{classOf(part.modules[0]!)}</span> <span class="model-figure">{`${figureText(heat, figure)}${whole > 0 ? `, ${percent(figure / whole)}` : ""}`}</span>
			</div>
			{open && <Boxes parts={part.children} level={level + 1} drawing={drawing} />}
		</div>
	);
}

function Legend({ heat, most, whole, color }: { heat: Heat; most: number; whole: number; color: (share: number) => string }) {
	return (
		<span class="model-legend">
			<span>0</span>
			<span class="model-scale" aria-hidden="true" style={{ background: `linear-gradient(to right, ${color(0)}, ${color(1)})` }} />
			<span>{`${figureText(heat, most)}${whole > 0 ? `, ${percent(most / whole)} of the model` : ""}`}</span>
		</span>
	);
}

function Details(props: { source: DataSource; trace: string; part: Part; heat: Heat; whole: number; children: ComponentChildren }) {
	const { source, trace, part } = props;
	const { modules } = part;
	const first = modules[0]!;
	const sum = (value: (module: Module) => number) => modules.reduce((all, module) => all + value(module), 0);
	const calls = sum((module) => module.calls);
	const forward = sum(({ total }) => total.host_ns);
	const backward = sum(({ total }) => total.backward_ns);
	const slowest = modules.reduce((most, module) => (props.heat.of(module) > props.heat.of(most) ? module : most));
	const us = (ns: number) => formatUs(ns / 1e3);
	const pairs: [string, string, boolean][] = [
		["Calls", formatCount(calls), true],
		[TABLES.modules.percent.title, percent(sum(({ share }) => share ?? 0)), first.share !== null],
		[TABLES.modules.step_us.title, us(sum(({ step_ns: ns }) => ns ?? 0)), first.step_ns !== null],
		["Forward", us(forward), true],
		["Forward per call", us(forward / Math.max(1, calls)), calls > 0],
		["Self forward", us(sum(({ self }) => self.host_ns)), true],
		["Backward", us(backward), backward > 0],
		["Device", us(sum(({ total }) => total.device_ns)), sum(({ total }) => total.device_ns) > 0],
		["Device backward", us(sum(({ total }) => total.backward_device_ns)), sum(({ total }) => total.backward_device_ns) > 0],
		["FLOPs", formatScaled(sum(({ total }) => total.flops)), sum(({ total }) => total.flops) > 0],
		["Parameters", `${formatCount(sum((module) => module.parameter_count))}, ${formatBytes(sum((module) => module.parameter_bytes))}`, sum((module) => module.parameter_count) > 0],
		["Allocated", formatBytes(sum(({ total }) => total.cpu_allocated_bytes)), sum(({ total }) => total.cpu_allocated_bytes) > 0],
		["Peak", formatBytes(Math.max(...modules.map((module) => module.cpu_peak_bytes))), first.cpu_peak_bytes > 0],
		["Device allocated", formatBytes(sum(({ total }) => total.device_allocated_bytes)), sum(({ total }) => total.device_allocated_bytes) > 0],
		["Device peak", formatBytes(Math.max(...modules.map((module) => module.device_peak_bytes))), first.device_peak_bytes > 0],
		["Largest block", `${pathOf(slowest)}, ${figureText(props.heat, props.heat.of(slowest))}`, modules.length > 1],
	];
	return (
		<>
			<h2 class="mono long">{modules.length > 1 ? `${pathOf(first)} … ${pathOf(modules[modules.length - 1]!)}` : pathOf(first)}</h2>
			<p class="soft">{modules.length > 1 ? `${classOf(first)}, ${modules.length} equal blocks: sums of all` : classOf(first)}</p>
			<Pairs pairs={pairs.flatMap(([name, figure, has]): [string, string][] => (has ? [[name, figure]] : []))} />
			<p class="detail-links">
				{slowest.name !== "" && <a href={timelineHref(trace, { find: slowest.name })}>Calls in the timeline</a>}
				{slowest.name !== "" && <a href={routeHref("stacks", trace, { find: pathOf(slowest), ...useSameSteps() })}>Operators in it, as stacks</a>}
				<a href={routeHref("modules", trace, { "modules.q": `"${pathOf(first)}"` })}>In the table</a>
				{props.children}
			</p>
			{slowest.name !== "" && <Calls source={source} trace={trace} of={{ name: slowest.name }} />}
		</>
	);
}

function pathOf(module: Module): string {
	return module.path !== "" ? module.path : moduleName(module.name) || module.class;
}

/** Returns "attn", or "0 … 31" for several. */
function nameOf(part: Part): string {
	const name = (module: Module) => lastName(module) || pathOf(module);
	const [first, last] = [part.modules[0]!, part.modules[part.modules.length - 1]!];
	return name(first) === name(last) ? name(first) : `${name(first)} … ${name(last)}`;
}

function classOf(module: Module): string {
	return module.class.slice(module.class.lastIndexOf(".") + 1);
}

function figureText(heat: Heat, value: number): string {
	return kindText(heat.kind, value);
}

function percent(share: number): string {
	return formatShare(share);
}

/** Returns colours from the surface to --model-heat, which needs the same text colour as elsewhere. */
function heatColors(): (share: number) => string {
	const [cold, hot] = [cssColor("--surface"), cssColor("--model-heat")].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
	return (share) => `rgb(${cold!.map((part, i) => Math.round(part + (hot![i]! - part) * Math.min(1, Math.max(0, share)))).join(", ")})`;
}
