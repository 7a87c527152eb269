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

export const route = signal<Route>(parseRoute("location" in globalThis ? location.hash : ""));

export function followHash(): void {
	window.addEventListener("hashchange", () => {
		route.value = parseRoute(location.hash);
	});
}

export function go(view: string, trace: string, params?: Params): void {
	location.hash = routeHref(view, trace, params);
}

/** Writes out the view and trace that are shown where the address leaves them open. */
export function nameRoute(view: string, trace: string): void {
	const now = route.value;
	if (now.view === view && now.trace === trace) return;
	history.replaceState(null, "", routeHref(view, trace, Object.fromEntries(now.params)));
	route.value = { ...now, view, trace };
}

/** Changes parameters of the view that is shown (undefined takes one away), without a new entry in the history. */
export function setParams(changes: Params): void {
	const { view, trace, params } = route.value;
	const address = parseRoute(location.hash);
	// The address may be elsewhere already (a step back) and the view not know it yet: then the entry is not its own.
	if (address.view !== view || address.trace !== trace) return;
	const href = routeHref(view, trace, { ...Object.fromEntries(params), ...changes });
	if (href === location.hash) return;
	history.replaceState(null, "", href);
	route.value = parseRoute(href);
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
