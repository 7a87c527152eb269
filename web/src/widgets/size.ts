// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Returns the current width of an element, updated when it changes. */
export function useWidth<T extends HTMLElement>(): [RefObject<T>, number] {
	const ref = useRef<T>(null);
	const [width, setWidth] = useState(0);
	useLayoutEffect(() => {
		const element = ref.current;
		if (!element) return;
		setWidth(element.clientWidth);
		const watch = new ResizeObserver(() => setWidth(element.clientWidth));
		watch.observe(element);
		return () => watch.disconnect();
	}, []);
	return [ref, width];
}
