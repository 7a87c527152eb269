// SPDX-License-Identifier: Apache-2.0
//
// The toolbar above the tracks: search, what to show, and the effect of dragging.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, formatNs } from "../format/units";
import { type CommonStep, chooseStep, shortStep, stepSpan, typicalStep } from "./align";
import { fetchEvent } from "./choose";
import { hitNumber, hitsOf } from "./find";
import type { Actions } from "./input";
import { AlignChoice } from "./ranks";
import type { Stage } from "./stage";
import { CLASS_TITLES, CLASSES, type KindClass } from "./palette";
import type { TimelineState } from "./state";
import { fitSpan } from "./viewport";

interface Props {
	state: TimelineState;
	actions: Actions;
	stage: Stage | undefined;
	/** Selection of the traces. */
	ranks: ComponentChildren;
	onHelp: () => void;
}

export function Toolbar({ state, actions, stage, ranks, onHelp }: Props) {
	return (
		<div class="tl-toolbar" role="toolbar" aria-label="Timeline">
			<Search state={state} actions={actions} />
			<StepPicker state={state} stage={stage} />
			{ranks}
			<AlignChoice state={state} />
			<span class="tl-space" />
			<KindChoice state={state} />
			<Toggle on={state.dragMode.value === "range"} title="Dragging marks a range (also: Shift and drag)"
				onClick={() => (state.dragMode.value = state.dragMode.value === "range" ? "move" : "range")}>
				Select range
			</Toggle>
			<Toggle on={state.showFlows.value} title="Arrows from launches to kernels and from forward to backward"
				onClick={() => (state.showFlows.value = !state.showFlows.value)}>
				Arrows
			</Toggle>
			{state.canShowWrappers && (
				<Toggle on={!state.showWrappers.value} title="Python calls that only pass on to one other call are folded into it" onClick={() => void showWrappers(state, !state.showWrappers.value)}>
					Fold wrappers
				</Toggle>
			)}
			<Toggle on={state.showPath.value} title="The chain of events that determines the time of the first step"
				onClick={() => (state.showPath.value = !state.showPath.value)}>
				Critical path
			</Toggle>
			<label class="tl-color">
				Color{" "}
				<select
					value={state.colorMode.value}
					onChange={(event) => (state.colorMode.value = event.currentTarget.value === "name" ? "name" : "kind")}
				>
					<option value="kind">by kind</option>
					<option value="name">by name</option>
				</select>
			</label>
			<button type="button" title="Show the whole trace (0)" onClick={() => stage?.show(state.whole)}>
				Whole trace
			</button>
			<button type="button" class="plain" title="Keys (?)" aria-label="Keys" onClick={onHelp}>
				?
			</button>
		</div>
	);
}

/** Depths change, but the selected event keeps its position. */
async function showWrappers(state: TimelineState, show: boolean): Promise<void> {
	const picked = state.selected.value;
	state.showWrappers.value = show;
	if (!picked) return;
	const depth = state.depthOf(await fetchEvent(state, picked.row));
	if (depth !== null && state.selected.value === picked) state.selected.value = { ...picked, depth };
}

/** Zooms to a step, and selects its time as the range. */
function StepPicker({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const { steps } = state;
	if (steps.length === 0) return null;
	const range = state.range.value;
	const at = steps.findIndex((step) => {
		const { from, to } = stepSpan(state, step);
		return from === range?.from && to === range.to;
	});
	const { from, to } = state.span.value;
	const isWhole = from <= state.whole.from && to >= state.whole.to;
	const show = (step: CommonStep | undefined) => {
		chooseStep(state, step);
		stage?.show(state.range.value ? fitSpan(state.range.value, state.whole) : state.whole);
	};
	return (
		<>
			<label class="tl-step">
				Step{" "}
				<select value={String(at)} onChange={(event) => show(steps[Number(event.currentTarget.value)])}>
					<option value="-1">{!isWhole ? "None" : state.several ? "All" : "Whole trace"}</option>
					{steps.map((step, i) => (
						<option key={i} value={String(i)}>
							{`${shortStep(step)} (${durationsText(step)})`}
						</option>
					))}
				</select>
			</label>
			<button type="button" title="Show the first step whose duration is nearest to the median" onClick={() => show(typicalStep(steps))}>
				Typical step
			</button>
		</>
	);
}

/** Returns the durations of a step on one or two ranks, or the range of those on more. */
function durationsText({ of }: CommonStep): string {
	const durations = of.map((each) => each.end_ns - each.start_ns);
	if (durations.length <= 2) return durations.map(formatNs).join(", ");
	return `${formatNs(Math.min(...durations))} to ${formatNs(Math.max(...durations))}`;
}

/** Selects the kinds of events to draw and sum. */
function KindChoice({ state }: { state: TimelineState }) {
	const hidden = state.hidden.value;
	const flip = (of: KindClass): void => {
		const next = new Set(hidden);
		if (!next.delete(of)) next.add(of);
		state.hidden.value = next;
	};
	return (
		<details class="menu">
			<summary>{hidden.size > 0 ? `Kinds: ${hidden.size} hidden` : "Kinds"}</summary>
			<div class="menu-items">
				{CLASSES.map((of) => (
					<label key={of}>
						<input type="checkbox" checked={!hidden.has(of)} onChange={() => flip(of)} /> <i class={`tl-dot kind-${of}`} /> {CLASS_TITLES[of]}
					</label>
				))}
			</div>
		</details>
	);
}

function Toggle(props: { on: boolean; title: string; onClick: () => void; children: string }) {
	return (
		<button type="button" aria-pressed={props.on} title={props.title} onClick={props.onClick}>
			{props.children}
		</button>
	);
}

function Search({ state, actions }: { state: TimelineState; actions: Actions }) {
	const box = useRef<HTMLInputElement>(null);
	const hits = state.hits.value;
	const query = state.query.value;
	const number = useHitNumber(state);
	const found = hitsOf(state);
	return (
		<search class="tl-search">
			<input
				ref={box}
				id="tl-search"
				type="search"
				placeholder={state.inArguments.value ? "Search names and arguments  ( / )" : "Search names  ( / )"}
				aria-label="Search names of events"
				value={query}
				onInput={(event) => (state.query.value = event.currentTarget.value)}
				onKeyDown={(event) => {
					if (event.key === "Enter") actions.nextHit(!event.shiftKey);
					else if (event.key === "Escape") {
						state.query.value = "";
						actions.tracks();
					} else return;
					event.preventDefault();
				}}
			/>
			<button type="button" aria-label="Previous hit" title="Previous hit (Shift+N)" disabled={found === 0} onClick={() => actions.nextHit(false)}>
				‹
			</button>
			<button type="button" aria-label="Next hit" title="Next hit (N)" disabled={found === 0} onClick={() => actions.nextHit(true)}>
				›
			</button>
			{state.source.kind === "http" && (
				<Toggle on={state.inArguments.value} title="Search arguments of events, too: shapes, types, streams" onClick={() => (state.inArguments.value = !state.inArguments.value)}>
					Arguments
				</Toggle>
			)}
			<output class="tl-hits">
				{query !== "" && hits && (number === undefined ? `${formatCount(found)} hits` : `${formatCount(number)} of ${formatCount(found)}`)}
			</output>
		</search>
	);
}

/** Returns the index of the selected event among the hits, if it is one. */
function useHitNumber(state: TimelineState): number | undefined {
	const picked = state.selected.value;
	const hits = state.hits.value;
	const [number, setNumber] = useState<number>();
	useEffect(() => {
		setNumber(undefined);
		const query = state.query.value;
		if (!picked || !hits || query === "") return;
		let wanted = true;
		const find = async (): Promise<void> => {
			const { name, start_ns } = await fetchEvent(state, picked.row);
			if (!state.inArguments.value && !name.toLowerCase().includes(query.toLowerCase())) return;
			const found = await hitNumber(state, picked.row, start_ns);
			if (wanted) setNumber(found);
		};
		find().catch(() => undefined);
		return () => {
			wanted = false;
		};
	}, [state, picked, hits]);
	return number;
}
