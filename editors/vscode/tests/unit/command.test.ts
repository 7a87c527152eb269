// SPDX-License-Identifier: Apache-2.0
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AdviceReply, LinesReply } from "../../../../web/src/data/replies";
import { formatPercent } from "../../../../web/src/format/units";
import { CommandMissing, mustBeThere, printed } from "../../src/command";
import { annotate, factsOf, fileOf, HEATS } from "../../src/costs";
import { childrenOf, gainOf, placeName, problemOf, topOf, webLink } from "../../src/findings";
import { frameOrigins } from "../../src/page";
import { Server } from "../../src/server";
import { opstrobe, root, trace } from "./opstrobe";

const missing = { path: "no-such-opstrobe", environment: {} };

test("lines of a trace are shown with their time and memory, the hottest in the deepest shade", async () => {
	const lines = await printed<LinesReply>(opstrobe, "lines", trace);
	const file = fileOf(lines, join(root, "web/tests/traces/train.py"))!;
	expect(file.file).toBe("train.py");
	const annotations = annotate(file, lines.duration_us);
	const hottest = file.lines.reduce((most, line) => (line.self_us > most.self_us ? line : most));
	const shown = annotations.find((each) => each.line === hottest.line)!;
	expect(shown.heat).toBe(HEATS - 1);
	expect(shown.text).toContain(formatPercent((hottest.host_us / lines.duration_us) * 100));
	expect(annotations.some((each) => each.text.includes("KiB"))).toBe(true);
	expect(annotations.every((each) => each.line > 0 && each.heat >= 0 && each.heat < HEATS)).toBe(true);
	expect(annotations.map((each) => each.line)).not.toContain(1); // it costs nothing
	expect(factsOf(hottest, lines.duration_us).map(([title]) => title)).toContain("calls");
	expect(fileOf(lines, "/elsewhere/other.py")).toBeUndefined();
});

test("findings say what to gain and where", async () => {
	const { findings } = await printed<AdviceReply>(opstrobe, "advise", trace);
	const finding = findings.find((each) => each.id === "loader-bound")!;
	expect(gainOf(finding)).toBe(`saves ${finding.predicted_gain_bound} ${formatPercent(finding.predicted_gain_percent)} of a step, ${finding.predicted_gain_interval}`);
	expect(gainOf({ ...finding, predicted_gain_bound: "at most" })).toMatch(/^saves at most /);
	expect(placeName(finding.where[0]!)).toBe("train.py:50  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	expect(problemOf(finding)).toContain("num_workers");
	expect(webLink(finding)).toMatch(/^https:/);
	expect(webLink({ ...finding, links: ["javascript:alert(1)", "command:rm"] })).toBeUndefined();
	expect(gainOf({ ...finding, predicted_gain_percent: null })).toBe("");
});

test("the time that no finding explains is listed after the findings, with its lines", async () => {
	const advice = await printed<AdviceReply>(opstrobe, "advise", trace);
	const rest = advice.not_explained!;
	expect(topOf(advice)).toEqual([...advice.findings, rest]);
	expect(topOf({ ...advice, not_explained: null })).toEqual(advice.findings);
	expect(rest.lines.length).toBeGreaterThan(0);
	expect(childrenOf(rest).map((each) => [each.place.line, each.text])).toEqual(rest.lines.map((line) => [line.line, line.text]));
	expect(childrenOf(advice.findings[0]!).map((each) => each.place)).toEqual(advice.findings[0]!.where);
	expect(childrenOf(childrenOf(rest)[0]!)).toEqual([]);
	const finding = advice.findings[0]!;
	const through = [{ file: "/v/site-packages/lightning/loop.py", path: "lightning/loop.py", line: 12, function: "run" }];
	expect(childrenOf({ ...finding, where: [{ ...finding.where[0]!, through }] })[0]!.text).toBe("through lightning/loop.py:12 in run");
});

test("a trace whose name looks like an option is a trace", async () => {
	const folder = await mkdtemp(join(tmpdir(), "opstrobe-"));
	try {
		await copyFile(trace, join(folder, "--top.json.gz"));
		process.chdir(folder);
		expect((await printed<LinesReply>(opstrobe, "lines", "--top.json.gz")).files).not.toEqual([]);
	} finally {
		process.chdir(root);
		await rm(folder, { recursive: true });
	}
});

test("reports the error message of the command", async () => {
	await expect(printed(opstrobe, "lines", "/no/such/trace")).rejects.toThrow("/no/such/trace");
	await expect(Server.start(opstrobe, "/no/such/trace", frameOrigins(false))).rejects.toThrow("/no/such/trace");
});

test("distinguishes a missing command", async () => {
	await expect(printed(missing, "lines", trace)).rejects.toThrow(CommandMissing);
	await expect(mustBeThere(missing)).rejects.toThrow("'no-such-opstrobe' cannot be run (not found)");
	await expect(mustBeThere({ ...missing, path: root })).rejects.toThrow(CommandMissing);
	await expect(Server.start(missing, trace, "")).rejects.toThrow(CommandMissing);
	await mustBeThere(opstrobe);
});

test.each([false, true])("the viewer is served to the editor's frames, and nothing without the token (in a browser: %s)", async (inBrowser) => {
	const frames = frameOrigins(inBrowser);
	const server = await Server.start(opstrobe, trace, frames);
	try {
		const page = await fetch(`${server.origin}/${server.path}`);
		expect(page.status).toBe(200);
		expect(page.headers.get("content-security-policy")).toContain(`frame-ancestors ${frames}`);
		expect(await server.traceId()).toMatch(/^[0-9a-f]{12}$/);
		expect((await fetch(`${server.origin}/api/v1/traces`)).status).toBe(401);
	} finally {
		server.stop();
	}
	await expect.poll(() => fetch(server.origin).then(() => "there", () => "gone")).toBe("gone");
});
