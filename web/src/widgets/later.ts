// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";

/** A text field's value at once, and told on when the reader has stopped typing for so many milliseconds. */
export function useLater(value: string, tell: (value: string) => void, wait: number): [string, (value: string) => void] {
	const [text, setText] = useState(value);
	const told = useRef(value);
	const timer = useRef<ReturnType<typeof setTimeout>>();
	useEffect(() => {
		if (value === told.current) return; // our own change came back
		told.current = value;
		setText(value);
	}, [value]);
	useEffect(() => () => clearTimeout(timer.current), []);
	const change = (next: string) => {
		setText(next);
		clearTimeout(timer.current);
		timer.current = setTimeout(() => {
			told.current = next;
			tell(next);
		}, wait);
	};
	return [text, change];
}
