// SPDX-License-Identifier: Apache-2.0
//
// The page's address determines the screen: #/VIEW/TRACE?name=value&… A view reads its parameters and changes them with
// setParams(). State that has to survive a reload belongs there.
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

/** Returns an address for a link: `href={routeHref("timeline", trace, { from, to })}`. */
export function routeHref(view: string, trace: string, params: Params = {}): string {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(params)) {
		if (value !== undefined && value !== "") query.set(name, String(value));
	}
	const text = query.toString();
	return `#/${encodeURIComponent(view)}/${encodeURIComponent(trace)}${text ? `?${text}` : ""}`;
}

/** The address that `route` was read from. The browser may already have moved (a step back) before it reports that. */
let read = "location" in globalThis ? location.hash : "";

export const route = signal<Route>(parseRoute(read));

export function readHash(): void {
	read = location.hash;
	route.value = parseRoute(read);
}

export function followHash(): void {
	window.addEventListener("hashchange", readHash);
}

/** Replaces the address of the current history entry, unless another entry is current by now. */
function replace(href: string): void {
	if (location.hash !== read || href === read) return;
	history.replaceState(null, "", href);
	readHash();
}

export function go(view: string, trace: string, params?: Params): void {
	location.hash = routeHref(view, trace, params);
}

/** Adds the displayed view and trace to an address that omits them. Effects run late: the address may have changed since
 * they were computed, and then is left alone. */
export function nameRoute(seen: Route, view: string, trace: string): void {
	if (route.value !== seen || (seen.view === view && seen.trace === trace)) return;
	replace(routeHref(view, trace, Object.fromEntries(seen.params)));
}

/** Changes parameters of the current view (undefined removes one), without a new history entry. */
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
