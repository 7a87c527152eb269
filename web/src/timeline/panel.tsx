// SPDX-License-Identifier: Apache-2.0
//
// The panel below the tracks: the selected event; what ran in the selected range, or else in the window; the marks.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { formatMoment, formatNs } from "../format/units";
import { EventDetails } from "./event_details";
import { RangeSums } from "./range_sums";
import type { Stage } from "./stage";
import type { TimelineState } from "./state";
import type { Span } from "./viewport";

type Tab = "event" | "range" | "marks";

const SETTLED_MS = 250;
const LEAST = 90;
const AT_FIRST = 270;
const KEY_PIXELS = 24;

export function Panel({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const [tab, setTab] = useState<Tab>("range");
	const [height, setHeight] = useState(() => Math.min(AT_FIRST, window.innerHeight * 0.3));
	const [open, setOpen] = useState(true);
	const picked = state.selected.value;
	const range = state.range.value;
	const marks = state.marks.value;
	// Shows what was selected last.
	useEffect(() => setTab(picked ? "event" : "range"), [picked]);
	useEffect(() => {
		if (range) setTab("range");
	}, [range]);
	const shown = tab === "marks" && marks.length === 0 ? "range" : tab;

	const one = (id: Tab, title: ComponentChildren) => (
		<button
			type="button"
			role="tab"
			id={`tl-tab-${id}`}
			aria-selected={open && shown === id}
			aria-controls="tl-panel"
			onClick={() => {
				setTab(id);
				setOpen(true);
			}}
		>
			{title}
		</button>
	);
	return (
		<section class="tl-panel" style={{ height: open ? `${height}px` : "auto" }} aria-label="Details">
			{open && <Splitter height={height} onHeight={setHeight} />}
			<div class="tl-tabs">
				<div role="tablist" aria-label="Details">
					{one("event", "Event")}
					{one("range", range ? `Range: ${formatNs(range.to - range.from)}` : "In view")}
					{marks.length > 0 && one("marks", `Marks: ${marks.length}`)}
				</div>
				<span class="tl-space" />
				{range && (
					<button
						type="button"
						class="plain"
						onClick={() => {
							state.range.value = undefined;
							state.rangeTracks.value = undefined;
						}}
					>
						Clear range
					</button>
				)}
				<button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
					{open ? "Hide" : "Show"}
				</button>
			</div>
			{open && (
				<div class={shown === "range" ? "tl-content fixed" : "tl-content"} id="tl-panel" role="tabpanel" aria-labelledby={`tl-tab-${shown}`} tabIndex={-1}>
					{shown === "event" && <EventDetails state={state} stage={stage} />}
					{shown === "range" && <RangeOrView state={state} height={height} />}
					{shown === "marks" && <Marks state={state} stage={stage} />}
				</div>
			)}
		</section>
	);
}

/** Resizes the panel, with the mouse or the arrow keys. */
function Splitter({ height, onHeight }: { height: number; onHeight: (height: number) => void }) {
	const set = (wanted: number): void => onHeight(Math.max(LEAST, Math.min(wanted, window.innerHeight * 0.7)));
	return (
		<div
			class="tl-splitter"
			role="separator"
			tabIndex={0}
			aria-orientation="horizontal"
			aria-label="Height of the details"
			aria-valuenow={Math.round(height)}
			aria-valuemin={LEAST}
			onKeyDown={(event) => {
				if (event.key === "ArrowUp") set(height + KEY_PIXELS);
				else if (event.key === "ArrowDown") set(height - KEY_PIXELS);
			}}
			onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
			onPointerMove={(event) => {
				if (event.currentTarget.hasPointerCapture(event.pointerId)) set(height - event.movementY);
			}}
		/>
	);
}

/** The sums of the selected range immediately; those of the window once it has stopped moving. */
function RangeOrView({ state, height }: { state: TimelineState; height: number }) {
	const range = state.range.value;
	const span = state.span.value;
	const [settled, setSettled] = useState<Span>(span);
	const wanted = range ?? span;
	const tracks = range ? state.rangeTracks.value : undefined;
	const hidden = state.hidden.value;
	useEffect(() => {
		const timer = setTimeout(() => setSettled(wanted), SETTLED_MS);
		return () => clearTimeout(timer);
	}, [wanted.from, wanted.to]);
	// The same element as long as the sums are the same, so that the table is not rendered for each frame of a
	// move.
	return useMemo(
		() => <RangeSums state={state} from={Math.floor(settled.from)} to={Math.ceil(settled.to)} tracks={tracks} hidden={hidden} height={height} />,
		[state, settled, height, tracks, hidden],
	);
}

function Marks({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const marks = state.marks.value;
	return (
		<table class="tl-marks">
			<thead>
				<tr>
					<th scope="col">Mark</th>
					<th scope="col" class="number">Time</th>
					<th scope="col" class="number">Since the previous mark</th>
					<th scope="col">Note</th>
					<th scope="col" />
				</tr>
			</thead>
			<tbody>
				{marks.map((time, i) => (
					<tr key={time}>
						<th scope="row">
							<button type="button" class="link" onClick={() => stage?.show(around(state, time))}>
								{i + 1}
							</button>
						</th>
						<td class="number">{formatMoment(time)}</td>
						<td class="number">
							{i > 0 && (
								<button
									type="button"
									class="link"
									onClick={() => (state.range.value = { from: marks[i - 1]!, to: time })}
								>
									{formatNs(time - marks[i - 1]!)}
								</button>
							)}
						</td>
						<td>
							<input
								type="text"
								aria-label={`Note of mark ${i + 1}`}
								maxLength={80}
								value={state.notes.value.get(time) ?? ""}
								onInput={(event) => (state.notes.value = new Map(state.notes.value).set(time, event.currentTarget.value))}
							/>
						</td>
						<td>
							<button type="button" onClick={() => (state.marks.value = marks.filter((each) => each !== time))}>
								Remove
							</button>
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

function around(state: TimelineState, time: number): Span {
	const { from, to } = state.span.value;
	return { from: time - (to - from) / 2, to: time + (to - from) / 2 };
}
