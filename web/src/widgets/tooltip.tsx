// SPDX-License-Identifier: Apache-2.0
// What a chart tells of the thing under the pointer, or of the one that the keys have reached.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Hover<T> {
	item: T;
	/** On the page. */
	x: number;
	y: number;
}

/** Beside the point, and inside the window. */
export function Tooltip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
	const box = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const { width, height } = element.getBoundingClientRect();
		const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
		const top = y + 16 + height > innerHeight ? y - 10 - height : y + 16;
		element.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
	});
	return (
		<div class="tooltip" ref={box} role="tooltip">
			{children}
		</div>
	);
}

/** Name and figure pairs, as tooltips and cards show them. */
export function Pairs({ pairs }: { pairs: [name: ComponentChildren, figure: ComponentChildren][] }) {
	return (
		<dl class="pairs">
			{pairs.map(([name, figure], i) => (
				<div key={i}>
					<dt>{name}</dt>
					<dd>{figure}</dd>
				</div>
			))}
		</dl>
	);
}
