// SPDX-License-Identifier: Apache-2.0
//
// The names of the tracks, with buttons to fold and to pin.
import { formatCount, formatNs } from "../format/units";
import type { Track } from "./api";
import { formatCounter } from "./counters";
import { RULER, STEPS } from "./geometry";
import { type Item, visibleItems } from "./layout";
import { MINIMAP } from "./minimap";
import { partOf } from "./parts";
import type { Stage } from "./stage";
import { hasStepLine, type TimelineState } from "./state";

export function Gutter({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	if (!stage) return <div class="tl-gutter" />;
	const layout = stage.layout.value;
	const top = RULER + (hasStepLine(state) ? STEPS : 0);
	const pinned = Math.min(layout.pinnedHeight, (stage.size.value.height - top) / 2);
	const room = stage.size.value.height - top - pinned;
	const scroll = Math.round(state.scrollTop.value);
	return (
		<div class="tl-gutter">
			<div class="tl-corner" style={{ height: `${MINIMAP + top}px` }}>
				<span>{formatNs(state.whole.to - state.whole.from)}</span>
				<span>{formatCount(state.timeline.events)} events</span>
				{state.timeline.lost > 0 && <span class="failure">{formatCount(state.timeline.lost)} lost</span>}
			</div>
			{pinned > 0 && (
				<div class="tl-names pinned" style={{ height: `${pinned}px` }} role="group" aria-label="Pinned tracks">
					{layout.pinned.map((item) => (
						<Name key={item.key} item={item} y={item.y} state={state} pinnedHere />
					))}
				</div>
			)}
			<div class="tl-names" style={{ flex: 1 }} role="group" aria-label="Tracks">
				{visibleItems(layout.items, scroll, scroll + room).map((item) => (
					<Name key={item.key} item={item} y={item.y - scroll} state={state} />
				))}
			</div>
		</div>
	);
}

function Name({ item, y, state, pinnedHere }: { item: Item; y: number; state: TimelineState; pinnedHere?: boolean }) {
	const name = labelOf(item, state);
	// Outside of its part, a track shows which part it belongs to.
	const label = pinnedHere && state.several ? `${partLabel(item, state)}: ${name}` : name;
	const pinned = state.pinned.value.includes(item.key);
	return (
		<div class={`tl-name ${item.type}`} style={{ top: `${y}px`, height: `${item.height}px` }}>
			<button
				type="button"
				class="fold"
				aria-expanded={!item.folded}
				aria-label={`${label}: ${item.folded ? "unfold" : "fold"}`}
				onClick={() => state.toggleFolded(item.key)}
			>
				{item.folded ? "▸" : "▾"}
			</button>
			<span class="text" title={tooltipOf(item, state)}>
				{label}
				{item.type === "track" && <small class="beside">{ownNumber(item.track)}</small>}
				{item.type === "counter" && !item.folded && (
					<small>
						{formatCounter(item.counter, Math.min(item.counter.min, 0))} to {formatCounter(item.counter, item.counter.max)}
					</small>
				)}
			</span>
			{item.type !== "group" && item.type !== "part" && (
				<button
					type="button"
					class="pin"
					aria-pressed={pinned}
					aria-label={`${label}: ${pinned ? "unpin" : "pin to the top"}`}
					title={pinned ? "Unpin" : "Pin to the top"}
					onClick={() => state.togglePinned(item.key)}
				>
					<svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
						<path d="M5 1h6l-1 5 3 3v1H8.6V15h-1.2v-5H3V9l3-3z" fill="currentColor" />
					</svg>
				</button>
			)}
		</div>
	);
}

/** Marks of the complete recording, such as its end, have empty texts for process and thread. */
function labelOf(item: Item, state: TimelineState): string {
	if (item.type === "part") return partLabel(item, state);
	if (item.type === "group") return item.group.label || "(no process)";
	return item.type === "track" ? item.track.label || "(no thread)" : item.counter.label || "(no name)";
}

function partLabel(item: Item, state: TimelineState): string {
	const number = item.type === "part" ? item.part.number : item.type === "group" ? 0 : partOf(item.type === "track" ? item.track.id : item.counter.id);
	return state.labels.value[number] ?? "";
}

/** Returns the number of a thread if its name does not contain it, since threads may share names. */
function ownNumber({ kind, label, tid }: Track): string {
	return kind === "thread" && tid !== null && !label.includes(String(tid)) ? ` ${tid}` : "";
}

function tooltipOf(item: Item, state: TimelineState): string {
	if (item.type !== "track") return labelOf(item, state);
	const { label, tid, events, depths } = item.track;
	return `${label || labelOf(item, state)}${tid === null ? "" : ` (${item.track.kind} ${tid})`}: ${formatCount(events)} events, ${depths} deep`;
}
