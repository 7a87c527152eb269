// SPDX-License-Identifier: Apache-2.0
//
// The timeline: toolbar, tracks, and the panel below with details of an event or a time range.
import { effect, untracked } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useParam } from "../app/params";
import { route, setParams } from "../app/route";
import { askForTraces } from "../app/traces";
import type { ViewProps } from "../app/views";
import { useReplies } from "../data/reply";
import type { DataSource } from "../data/source";
import { Failure, Loading } from "../widgets/status";
import { ownText, paramsOf, readParams } from "./address";
import type { TimelineReply } from "./api";
import { goTo, goToNeighbour, goToRow, pickedOf } from "./choose";
import { neighbourHit } from "./find";
import { Gutter } from "./gutter";
import { Help } from "./help";
import { type Actions, Input } from "./input";
import { Minimap, MINIMAP } from "./minimap";
import { PathSummary } from "./path_summary";
import { Panel } from "./panel";
import { makePart, type Part, traceOf } from "./parts";
import { nounOf, partsOf, RankChoice, rankTitle } from "./ranks";
import { Stage } from "./stage";
import { type Noun, TimelineState } from "./state";
import { Tip } from "./tip";
import { Toolbar } from "./toolbar";
import { useBackground } from "./background";
import { fitSpan } from "./viewport";
import { useModulePaths } from "../views/module_paths";
import { runOf } from "../views/runs";
import "./timeline.css";

export function Timeline({ source, trace, traces }: ViewProps) {
	const [others] = useParam("with");
	const shown = partsOf(trace, traces, others);
	const ids = shown.map((each) => each.id).join(",");
	const reply = useReplies<TimelineReply>(source, shown.map((each) => ({ path: `traces/${each.id}/timeline` })));
	const timelines = reply.state === "ready" ? reply.data : undefined;
	const parts = useMemo(() => timelines?.map((each, i) => makePart(source, i, ids.split(",")[i]!, each)), [source, ids, timelines]);
	if (reply.state === "failed") return <Failure error={reply.error} />;
	if (!parts) return <Loading what={shown.length > 1 ? `${shown.length} timelines` : "the timeline"} />;
	if (parts.every(({ timeline }) => timeline.tracks.length + timeline.counters.length === 0)) {
		return <p class="note">The trace has no events.</p>;
	}
	const run = [...new Set([...shown, ...runOf(trace, traces)])].sort((a, b) => traces.indexOf(a) - traces.indexOf(b));
	const labels = shown.map((each) => rankTitle(each, shown));
	return <Tracks key={ids} source={source} parts={parts} labels={labels} noun={nounOf(shown)} ranks={<RankChoice source={source} run={run} shown={shown} />} />;
}

interface TracksProps {
	source: DataSource;
	parts: readonly Part[];
	labels: readonly string[];
	noun: Noun;
	ranks: ComponentChildren;
}

function Tracks({ source, parts, labels, noun, ranks }: TracksProps) {
	const state = useMemo(() => new TimelineState(source, parts), [source, parts]);
	const canvas = useRef<HTMLCanvasElement>(null);
	const strip = useRef<HTMLCanvasElement>(null);
	const [stage, setStage] = useState<Stage>();
	const [help, setHelp] = useState(false);
	useModulePaths(source, useMemo(() => parts.map(traceOf), [parts]), parts.some((each) => each.names.hasModules.value));
	// A rank is known once its trace has been read.
	const known = labels.join("\n");
	useEffect(() => {
		if (parts.length > 1) state.labels.value = known.split("\n");
		state.noun.value = noun;
	}, [state, known, noun]);
	useEffect(() => {
		if (parts.length > 1) askForTraces();
	}, [parts]);
	const actions = useMemo(() => actionsOf(state, () => stage, setHelp), [state, stage]);

	useEffect(() => {
		const made = new Stage(canvas.current!, state);
		setStage(made);
		return () => {
			made.close();
			state.close();
		};
	}, [state]);

	useEffect(() => {
		if (!stage) return;
		const input = new Input(canvas.current!, stage, state, actions);
		const minimap = new Minimap(strip.current!, state, stage);
		stage.background = () => minimap.wanted();
		const watch = new ResizeObserver(() => {
			const { clientWidth, clientHeight } = canvas.current!;
			stage.size.value = { width: clientWidth, height: clientHeight };
			minimap.width.value = clientWidth;
		});
		watch.observe(canvas.current!);
		canvas.current?.focus({ preventScroll: true });
		return () => {
			watch.disconnect();
			minimap.close();
			input.close();
		};
	}, [stage, state, actions]);

	useAddress(state, stage, actions.nextHit);
	useBackground(state);
	return (
		<div class="timeline">
			<Toolbar state={state} actions={actions} stage={stage} ranks={ranks} onHelp={() => setHelp(true)} />
			{state.showPath.value && <PathSummary state={state} stage={stage} />}
			<div class="tl-tracks">
				<Gutter state={state} stage={stage} />
				<div class="tl-canvases">
					<canvas ref={strip} class="tl-minimap" style={{ height: `${MINIMAP}px` }} aria-hidden="true" />
					<canvas
						ref={canvas}
						class="tl-canvas"
						tabIndex={0}
						role="application"
						aria-label="Events over time"
						aria-describedby="tl-keys"
					/>
					<p id="tl-keys" class="visually-hidden">
						W and S zoom, A and D move, arrow up and down scroll. With Alt, the arrow keys go from the chosen event to
						its neighbours, parent and first child. Slash searches, N goes to the next hit, question mark lists all keys.
						The table below lists what runs in the range.
					</p>
					<Tip state={state} stage={stage} />
				</div>
			</div>
			<Panel state={state} stage={stage} />
			{help && <Help onClose={() => setHelp(false)} />}
		</div>
	);
}

function actionsOf(state: TimelineState, stage: () => Stage | undefined, setHelp: (open: boolean) => void): Actions {
	const withStage = (act: (stage: Stage) => unknown): void => {
		const there = stage();
		if (there) void act(there);
	};
	return {
		select: (picked) => (state.selected.value = picked),
		focus: (picked) => withStage((there) => goTo(state, there, picked, true)),
		selectStep: (x, part) =>
			withStage((there) => {
				const shift = state.shifts.value[part]!;
				const time = (there.geometry?.time(x) ?? 0) - shift;
				const step = state.parts[part]!.timeline.steps.find((each) => each.start_ns <= time && time <= each.end_ns);
				if (!step) return;
				state.rangeTracks.value = undefined;
				state.range.value = { from: step.start_ns + shift, to: step.end_ns + shift };
				state.selected.value = undefined;
			}),
		neighbour: (way) => withStage((there) => goToNeighbour(state, there, way).catch(quietly)),
		nextHit: (forward) =>
			withStage(async (there) => {
				const hit = await neighbourHit(state, forward).catch(quietly);
				const picked = hit && pickedOf(state, hit);
				if (picked) goTo(state, there, picked);
			}),
		search: () => document.querySelector<HTMLInputElement>("#tl-search")?.focus(),
		tracks: () => document.querySelector<HTMLElement>(".tl-canvas")?.focus(),
		help: () => setHelp(true),
		mark: (time) => {
			const at = Math.round(time);
			state.marks.value = [...state.marks.value, at].sort((a, b) => a - b);
		},
		fit: () =>
			withStage((there) => {
				const { range, selected } = state;
				const of = range.value ?? (selected.value && { from: selected.value.start, to: selected.value.end });
				there.show(of ? fitSpan(of, state.whole) : state.whole);
			}),
	};
}

/** An event without details (in a report) stays unselected; the panel explains why. */
function quietly(): undefined {
	return undefined;
}

/** Keeps the page's address and the state in sync, whichever changes. */
function useAddress(state: TimelineState, stage: Stage | undefined, nextHit: Actions["nextHit"]): void {
	useEffect(() => {
		if (!stage) return;
		let written = "";
		const stopReading = effect(() => {
			const { view, params } = route.value;
			if (view !== "timeline") return; // moving to another view
			const text = ownText(params);
			if (text === written) return;
			written = text;
			untracked(() => {
				const { span, row } = readParams(state, params);
				if (span) stage.show(span, false);
				if (row === undefined) state.selected.value = undefined;
				else if (row !== state.selected.value?.row) void goToRow(state, stage, row, !span).catch(quietly);
				// A link with only a search leads to the first hit.
				if (!span && row === undefined && state.query.value !== "") nextHit(true);
			});
		});
		let timer: ReturnType<typeof setTimeout> | undefined;
		const stopWriting = effect(() => {
			const params = paramsOf(state);
			clearTimeout(timer);
			timer = setTimeout(() => {
				const said = Object.entries(params).filter(([, value]) => value !== undefined);
				written = ownText(new Map(said.map(([name, value]) => [name, String(value)])));
				setParams(params);
			}, 300);
		});
		return () => {
			stopReading();
			stopWriting();
			clearTimeout(timer);
		};
	}, [state, stage, nextHit]);
}
