// SPDX-License-Identifier: Apache-2.0
// What the pointer is on, in words.
import { useEffect, useState } from "preact/hooks";
import { formatCount, formatNs } from "../format/units";
import type { Stage } from "./stage";
import type { Picked, TimelineState } from "./state";

const OFFSET = 14;

export function Tip({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const [at, setAt] = useState<{ x: number; y: number }>();
	useEffect(() => {
		const canvas = document.querySelector(".tl-canvas");
		const follow = (event: Event): void => {
			const { offsetX, offsetY } = event as PointerEvent;
			setAt({ x: offsetX, y: offsetY });
		};
		canvas?.addEventListener("pointermove", follow);
		return () => canvas?.removeEventListener("pointermove", follow);
	}, []);
	const picked = state.hover.value;
	if (!picked || !at || !stage) return null;
	const { width, height } = stage.size.value;
	const style = {
		...(at.x > width / 2 ? { right: `${width - at.x + OFFSET}px` } : { left: `${at.x + OFFSET}px` }),
		...(at.y > height - 120 ? { bottom: `${height - at.y + OFFSET}px` } : { top: `${at.y + OFFSET + 50}px` }),
	};
	return (
		<div class="tl-tip" style={style} role="tooltip">
			<strong>{describe(state, picked)}</strong>
			<span>{formatNs(picked.end - picked.start)}</span>
		</div>
	);
}

function describe(state: TimelineState, picked: Picked): string {
	const name = state.names.get(picked.name) ?? "";
	return picked.count === 1 ? name : `${formatCount(picked.count)} events, the first: ${name}`;
}
