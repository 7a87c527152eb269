// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { sidesOf } from "../../src/views/runs";

const traces = ["a", "b", "c"].map((id) => ({ id }));

function sides(open: string, base = "", to = "", of = traces): string {
	const found = sidesOf(of.find(({ id }) => id === open)!, of, base, to);
	return `${found.base?.id} ${found.now?.id}`;
}

test("by default a trace is compared with the first one of the list, as in opstrobe diff BASE NEW", () => {
	expect(["a", "b", "c"].map((open) => sides(open))).toEqual(["a b", "a b", "a c"]);
	expect(sides("a", "", "", traces.slice(0, 2))).toBe("a b");
	expect(sides("a", "", "", traces.slice(0, 1))).toBe("a undefined");
});

test("traces of the address are compared, whichever is open", () => {
	expect(sides("a", "c", "b")).toBe("c b");
	expect(sides("a", "c")).toBe("c a");
	expect(sides("c", "c")).toBe("c a");
	expect(sides("a", "", "c")).toBe("a c");
	expect(sides("a", "a", "a")).toBe("a b");
});
