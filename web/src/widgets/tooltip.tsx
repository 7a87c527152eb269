// SPDX-License-Identifier: Apache-2.0
//
// The tooltip of a chart, for the object under the pointer or selected with the keys.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Hover<T> {
	item: T;
	/** Position on the page. */
	x: number;
	y: number;
}

/** Next to the point, inside the window. */
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

/** Pairs of name and figure, as in tooltips and cards. */
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
