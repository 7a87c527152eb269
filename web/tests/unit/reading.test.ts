// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { ReadProgress, TraceEntry } from "../../src/data/api";
import { tellProgress } from "../../src/widgets/reading";

function shown(progress: ReadProgress | null): string {
	const trace = { bytes: 4 * 1024 ** 3, progress } as TraceEntry;
	return tellProgress(trace);
}

test("progress in words", () => {
	expect(shown(null)).toBe("waits");
	expect(shown({ share: 0.2599, bytes: 1024 ** 3, events: 1234567, notes: 0 })).toBe("25 % · 1.00 GiB of 4.00 GiB · 1,234,567 events");
	expect(shown({ share: null, bytes: 2048, events: 3, notes: 1 })).toBe("2.00 KiB · 3 events · 1 note");
	expect(shown({ share: 1, bytes: 4 * 1024 ** 3, events: 5000, notes: 2 })).toBe("read completely; sorting 5,000 events");
});
