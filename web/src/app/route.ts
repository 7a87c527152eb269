// SPDX-License-Identifier: Apache-2.0
// The page's address says what is on the screen: #/VIEW/TRACE?name=value&…
// A view reads its own parameters and changes them by setParams(); everything it wants back after a reload goes there.
import { signal } from "@preact/signals";

export interface Route {
	view: string;
	trace: string;
	params: ReadonlyMap<string, string>;
}

export function parseRoute(hash: string): Route {
	const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
	const [view = "", trace = ""] = path.split("/").map(decode);
	return { view, trace, params: new Map(new URLSearchParams(query)) };
}

export type Params = Record<string, string | number | undefined>;

/** An address to link to: `href={routeHref("timeline", trace, { from, to })}`. */
export function routeHref(view: string, trace: string, params: Params = {}): string {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(params)) {
		if (value !== undefined && value !== "") query.set(name, String(value));
	}
	const text = query.toString();
	return `#/${encodeURIComponent(view)}/${encodeURIComponent(trace)}${text ? `?${text}` : ""}`;
}

/** The address that `route` was read from. The browser may be elsewhere already (a step back) before it says so. */
let read = "location" in globalThis ? location.hash : "";

export const route = signal<Route>(parseRoute(read));

export function readHash(): void {
	read = location.hash;
	route.value = parseRoute(read);
}

export function followHash(): void {
	window.addEventListener("hashchange", readHash);
}

/** Writes another address into the entry of the history that is shown, unless that is another one by now. */
function replace(href: string): void {
	if (location.hash !== read || href === read) return;
	history.replaceState(null, "", href);
	readHash();
}

export function go(view: string, trace: string, params?: Params): void {
	location.hash = routeHref(view, trace, params);
}

/** Writes out the view and trace that an address shows where it leaves them open. Effects run late: what they have seen may
 * not be what is there now, and then the address is not theirs. */
export function nameRoute(seen: Route, view: string, trace: string): void {
	if (route.value !== seen || (seen.view === view && seen.trace === trace)) return;
	replace(routeHref(view, trace, Object.fromEntries(seen.params)));
}

/** Changes parameters of the view that is shown (undefined takes one away), without a new entry in the history. */
export function setParams(changes: Params): void {
	const { view, trace, params } = route.value;
	replace(routeHref(view, trace, { ...Object.fromEntries(params), ...changes }));
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
