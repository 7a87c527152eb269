// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";

/** The value of a text field, updated immediately, and reported after the user has stopped typing for `wait`
 * milliseconds. */
export function useLater(value: string, tell: (value: string) => void, wait: number): [string, (value: string) => void] {
	const [text, setText] = useState(value);
	const told = useRef(value);
	const timer = useRef<ReturnType<typeof setTimeout>>();
	useEffect(() => {
		if (value === told.current) return; // caused by our own change
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
