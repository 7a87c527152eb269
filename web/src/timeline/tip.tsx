// SPDX-License-Identifier: Apache-2.0
//
// A description of what is under the pointer.
import { useEffect, useState } from "preact/hooks";
import { formatCount, formatMoment, formatNs } from "../format/units";
import { counterValue, formatCounter } from "./counters";
import type { Stage } from "./stage";
import type { Picked, TimelineState } from "./state";

const OFFSET = 14;

export function Tip({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const [at, setAt] = useState<{ x: number; y: number }>();
	useEffect(() => {
		const canvas = document.querySelector(".tl-canvas");
		const follow = (event: Event): void => {
			const { buttons, offsetX, offsetY } = event as PointerEvent;
			// Not while dragging, since the dragged object stays the same.
			setAt(buttons ? undefined : { x: offsetX, y: offsetY });
		};
		const leave = (): void => setAt(undefined);
		canvas?.addEventListener("pointermove", follow);
		canvas?.addEventListener("pointerleave", leave);
		return () => {
			canvas?.removeEventListener("pointermove", follow);
			canvas?.removeEventListener("pointerleave", leave);
		};
	}, []);
	const picked = state.hover.value;
	if (!at || !stage) return null;
	const described = picked ? describeEvent(state, picked) : describeCounter(state, stage, at);
	if (!described) return null;
	const { width, height } = stage.size.value;
	const style = {
		...(at.x > width / 2 ? { right: `${width - at.x + OFFSET}px` } : { left: `${at.x + OFFSET}px` }),
		...(at.y > height - 120 ? { bottom: `${height - at.y + OFFSET}px` } : { top: `${at.y + OFFSET + 50}px` }),
	};
	return (
		<div class="tl-tip" style={style} role="tooltip">
			<strong>{described.title}</strong>
			<span>{described.text}</span>
		</div>
	);
}

interface Description {
	title: string;
	text: string;
}

function describeEvent(state: TimelineState, picked: Picked): Description {
	const name = state.nameOf(picked.name) ?? "";
	const title = picked.count === 1 ? name : `${formatCount(picked.count)} events, the first: ${name}`;
	return { title, text: formatNs(picked.end - picked.start) };
}

function describeCounter(state: TimelineState, stage: Stage, at: { x: number; y: number }): Description | undefined {
	const { geometry } = stage;
	const item = geometry?.at(at.y)?.item;
	if (!geometry || item?.type !== "counter") return undefined;
	const time = geometry.time(at.x);
	const value = counterValue(state, item.counter, time, geometry.nsPerPixel);
	if (value === null) return undefined;
	return { title: formatCounter(item.counter, value), text: `${item.counter.label} at ${formatMoment(time)}` };
}
