// SPDX-License-Identifier: Apache-2.0
import { expect, test, vi } from "vitest";
import { nameRoute, parseRoute, readHash, route, routeHref, setParams } from "../../src/app/route";
import { address } from "../../src/data/source";

test("an address says view, trace and parameters, and reads back as it was written", () => {
	const href = routeHref("timeline", "a/b c", { from: 12, to: 34.5, q: "aten::mm & %", gone: undefined });
	expect(parseRoute(href)).toEqual({
		view: "timeline",
		trace: "a/b c",
		params: new Map([
			["from", "12"],
			["to", "34.5"],
			["q", "aten::mm & %"],
		]),
	});
});

test.each(["", "#", "#/", "#/%E0%A4%A/%", "#?x", "#/timeline"])("address %j does not fail", (hash) => {
	expect(() => parseRoute(hash)).not.toThrow();
});

test("nothing is written over an entry of the history that was gone back to", () => {
	const place = { hash: "#/timeline/a?from=1" };
	vi.stubGlobal("location", place);
	vi.stubGlobal("history", { replaceState: (_: unknown, __: string, href: string) => (place.hash = href) });
	readHash();
	setParams({ to: 2 });
	expect(place.hash).toBe("#/timeline/a?from=1&to=2");
	const seen = route.value;
	place.hash = "#/timeline/a?from=7"; // a step back of which nothing was heard yet
	setParams({ to: 3 });
	nameRoute(seen, "timeline", "b");
	expect(place.hash).toBe("#/timeline/a?from=7");
	place.hash = "#/source/a?line=7"; // heard of, but an effect of the view before is still to run
	readHash();
	nameRoute(seen, "timeline", "a");
	expect(place.hash).toBe("#/source/a?line=7");
	expect(route.value.view).toBe("source");
	place.hash = "";
	readHash();
	nameRoute(route.value, "overview", "a");
	expect(place.hash).toBe("#/overview/a");
	vi.unstubAllGlobals();
});

test("a query has one form, whatever order it was given in", () => {
	expect(address("x", { b: 2, a: "1 &", c: undefined })).toBe("x?a=1%20%26&b=2");
	expect(address("x", { a: "1 &", b: 2 })).toBe(address("x", { b: 2, a: "1 &" }));
	expect(address("x")).toBe("x");
});
