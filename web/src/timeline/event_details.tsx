// SPDX-License-Identifier: Apache-2.0
//
// All details of the selected event, with links to its parent, to its effects and to its source line.
import type { ComponentChildren } from "preact";
import { useReply } from "../data/reply";
import { moduleName } from "../format/module_name";
import { formatCount, formatMoment, formatNs } from "../format/units";
import { Calls } from "../widgets/calls";
import { SourceLink } from "../widgets/links";
import type { EventReply, Flow, Place } from "./api";
import { eventPath, goTo, goToRow, pickedOf } from "./choose";
import { classOf } from "./palette";
import { follow } from "./follow";
import { ownNumber, partOf, traceOf } from "./parts";
import type { Stage } from "./stage";
import type { Picked, TimelineState } from "./state";
import { fitSpan } from "./viewport";

interface Props {
	state: TimelineState;
	stage: Stage | undefined;
}

export function EventDetails({ state, stage }: Props) {
	const picked = state.selected.value;
	const reply = useReply<EventReply>(state.source, picked && eventPath(state, picked.row));
	if (!picked) return <p class="note">Choose an event: click on it, or press N after a search.</p>;
	const event = reply.state === "ready" ? state.translator(state.part(picked.row)).event(reply.data) : undefined;
	const loaded = event?.row === picked.row ? event : undefined;
	const name = loaded?.name ?? state.nameOf(picked.name) ?? "";
	const trace = traceOf(state.part(picked.row));
	return (
		<div class="tl-event">
			<div class="tl-facts">
				<div role="status">
					<h2>
						{loaded && <i class={`tl-dot kind-${classOf(loaded.kind, name)}`} />}
						{moduleName(name)}
					</h2>
				</div>
				{picked.count > 1 && <Merged state={state} stage={stage} picked={picked} />}
				{loaded ? <Facts state={state} stage={stage} event={loaded} /> : <Known picked={picked} />}
				{reply.state === "failed" && <p class="tl-summary">{reply.error.message}</p>}
			</div>
			{loaded && <Together state={state} stage={stage} event={loaded} />}
			{loaded && <Calls source={state.source} trace={trace} of={{ row: ownNumber(loaded.row) }} />}
			{loaded && <Arguments args={loaded.args} />}
			{loaded && <Links state={state} stage={stage} event={loaded} />}
			{loaded && loaded.stack.length > 0 && <Stack trace={trace} stack={loaded.stack} />}
		</div>
	);
}

function Merged({ state, stage, picked }: Props & { picked: Picked }) {
	return (
		<p class="tl-summary">
			The first of {formatCount(picked.count)} events that are too short to show here.{" "}
			<button
				type="button"
				class="link"
				onClick={() => stage?.show(fitSpan({ from: picked.start, to: picked.end }, state.whole))}
			>
				Zoom in
			</button>
		</p>
	);
}

function Known({ picked }: { picked: Picked }) {
	return (
		<dl>
			<Fact title="Start">{formatMoment(picked.start)}</Fact>
			<Fact title="Duration">{formatNs(picked.end - picked.start)}</Fact>
		</dl>
	);
}

function Facts({ state, stage, event }: Props & { event: EventReply }) {
	const track = state.timeline.tracks.find((each) => each.id === event.track);
	const { parent, file, line } = event;
	const outer = useReply<EventReply>(state.source, parent === null ? undefined : eventPath(state, parent));
	return (
		<dl>
			<Fact title="Duration">{formatNs(event.duration_ns)}</Fact>
			<Fact title="Self">{formatNs(event.self_ns)}</Fact>
			<Fact title="Start">{formatMoment(event.start_ns)}</Fact>
			<Fact title="Kind">{event.category || event.kind}</Fact>
			{state.several && <Fact title={state.noun.value}>{state.labels.value[partOf(event.row)]}</Fact>}
			{track && <Fact title="On">{track.label}</Fact>}
			{file !== null && (
				<Fact title="Called at">
					<SourceLink trace={traceOf(state.part(event.row))} file={file} line={line} />
				</Fact>
			)}
			<Fact title="Inside">
				{parent === null ? (
					"nothing"
				) : (
					<button type="button" class="link" onClick={() => stage && void goToRow(state, stage, parent)}>
						{outer.state === "ready" ? outer.data.name : "its parent"}
					</button>
				)}
			</Fact>
			<Fact title="Children">{formatCount(event.children)}</Fact>
			{!state.showWrappers.value && event.wrappers.length > 0 && (
				<Fact title="Folded around it">
					{event.wrappers.map((each) => (
						<div key={each.row}>
							<Frame trace={traceOf(state.part(event.row))} frame={each.name} />{" "}
							<small>{formatNs(each.duration_ns)}</small>
						</div>
					))}
				</Fact>
			)}
			{!state.showWrappers.value && event.folds_into !== null && (
				<Fact title="Folded into">
					<button type="button" class="link" onClick={() => stage && void goToRow(state, stage, event.folds_into!)}>
						what it calls
					</button>
				</Fact>
			)}
		</dl>
	);
}

function Fact({ title, children }: { title: string; children: ComponentChildren }) {
	return (
		<>
			<dt>{title}</dt>
			<dd>{children}</dd>
		</>
	);
}

function Arguments({ args }: { args: Record<string, unknown> }) {
	const entries = Object.entries(args);
	if (entries.length === 0) return null;
	return (
		<div>
			<h3>Arguments</h3>
			<table class="tl-args">
				<tbody>
					{entries.map(([name, value]) => (
						<tr key={name}>
							<th scope="row">{name}</th>
							<td>{typeof value === "string" ? value : JSON.stringify(value)}</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

const ARROWS: Record<Flow["kind"], [string, string]> = {
	launch: ["Launched by", "Launches"],
	forward_backward: ["Backward of", "Backward"],
	other: ["Follows", "Followed by"],
	dependency: ["Waits for", "Waited for by"],
};

function Links({ state, stage, event }: Props & { event: EventReply }) {
	if (event.links.length === 0) return null;
	return (
		<div>
			<h3>Links</h3>
			<ul class="tl-links">
				{event.links.map((flow, i) => {
					const outward = flow.from.row === event.row;
					return (
						<li key={i}>
							{ARROWS[flow.kind][outward ? 1 : 0]}{" "}
							<Link state={state} stage={stage} place={outward ? flow.to : flow.from} />
							<small>{delay(flow)}</small>
						</li>
					);
				})}
			</ul>
		</div>
	);
}

/** The same collective operation in the other parts, with its delay there. */
function Together({ state, stage, event }: Props & { event: EventReply }) {
	const kindOf = (track: number | null) => state.timeline.tracks.find((each) => each.id === track)?.kind;
	// For a kernel, its kernels; for the call on the host, that call.
	const places = state.together.value.filter((each) => partOf(each.row) !== partOf(event.row) && kindOf(each.track) === kindOf(event.track));
	if (places.length === 0) return null;
	return (
		<div>
			<h3>{`Same call in other ${state.noun.value.toLowerCase()}s`}</h3>
			<ul class="tl-links">
				{places.map((place) => (
					<li key={place.row}>
						{state.labels.value[partOf(place.row)]}: <Link state={state} stage={stage} place={place} />
						<small>{`${delayText(place.start_ns - event.start_ns)}, ${formatNs(place.end_ns - place.start_ns)} long`}</small>
					</li>
				))}
			</ul>
		</div>
	);
}

/** Returns the time from the start of one event to the start of the other. */
function delay({ from, to }: Flow): string {
	return delayText(to.start_ns - from.start_ns);
}

function delayText(wait: number): string {
	return wait >= 0 ? ` ${formatNs(wait)} later` : ` ${formatNs(-wait)} earlier`;
}

function Link({ state, stage, place }: Props & { place: Place }) {
	follow(state.arrived); // names arrive with tiles
	const text = state.nameOf(place.name) ?? `event ${place.row}`;
	const picked = pickedOf(state, place);
	return (
		<button type="button" class="link" disabled={!picked} onClick={() => picked && stage && goTo(state, stage, picked)}>
			{text}
		</button>
	);
}

function Stack({ trace, stack }: { trace: string; stack: string[] }) {
	return (
		<div>
			<h3>Stack, innermost first</h3>
			<ol class="tl-stack">
				{stack.map((frame, i) => (
					<li key={i} title={frame}>
						<Frame trace={trace} frame={frame} />
					</li>
				))}
			</ol>
		</div>
	);
}

function Frame({ trace, frame }: { trace: string; frame: string }) {
	const parts = /^(.*)\((\d+)\): (.*)$/.exec(frame);
	if (!parts) return frame;
	const [, file, line, name] = parts as unknown as [string, string, string, string];
	return (
		<>
			{name} <SourceLink trace={trace} file={file} line={Number(line)} />
		</>
	);
}
