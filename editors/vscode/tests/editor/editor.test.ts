// SPDX-License-Identifier: Apache-2.0
//
// Tests the extension in a real editor: opening a trace, lines in the source, from the viewer to a line and back.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { formatPercent } from "../../../../web/src/format/units";
import type { LinesReply } from "../../../../web/src/data/replies";
import { Editor, root } from "./editor";

const TRACES = join(root, "web/tests/traces");
/** A command whose Python has torch, as `make build` installs it. */
const opstrobe = process.env.OPSTROBE ?? [join(root, ".venv/bin/opstrobe")].find((path) => existsSync(path)) ?? "opstrobe";
const WORK = `import torch

for _ in range(20):
    torch.randn(200, 200) @ torch.randn(200, 200)
`;
let editor: Editor;

beforeAll(async () => {
	const folder = await mkdtemp(join(tmpdir(), "opstrobe-"));
	await writeFile(join(folder, "work.py"), WORK);
	editor = await Editor.start([join(TRACES, "train.pt.trace.json.gz"), join(TRACES, "train.py"), join(folder, "work.py")], { "opstrobe.command": opstrobe });
	await rm(folder, { recursive: true });
}, 240_000);
afterAll(async () => {
	await editor.stop();
});

afterEach(({ task }) => editor.shot(`vscode-${task.name.replaceAll(/\W+/g, "-")}`));

test("a trace opens in the viewer, in the colours of the editor", async () => {
	await editor.open("train.pt.trace.json.gz");
	const viewer = await editor.viewer();
	await viewer.getByText("The program waits for the data loader").first().waitFor();
	await expect.poll(() => viewer.locator("html").getAttribute("data-theme")).toBe("light");
	await editor.shot("vscode-viewer");
});

test("what the advice found is in the tree and among the problems", async () => {
	await editor.page.getByText("Opstrobe: Advice").click();
	await editor.page.locator(".pane-body").getByText("The program waits for the data loader").waitFor();
	await editor.page.locator("#status\\.problems").click();
	await editor.page.locator(".markers-panel").getByText(/The program waits for the data loader/).waitFor();
});

test("a line clicked in the viewer opens next to it, with its time and memory", async () => {
	const viewer = await editor.viewer();
	await viewer.getByRole("link", { name: "train.py:50" }).first().click();
	const source = editor.page.locator(".editor-group-container .monaco-editor .view-lines");
	await expect.poll(() => source.innerText()).toContain("loader");
	await expect.poll(() => editor.page.locator(".monaco-editor .cgmr").count()).toBeGreaterThan(5);
	const lines = JSON.parse(execFileSync(opstrobe, ["lines", "--format", "json", join(TRACES, "train.pt.trace.json.gz")], { encoding: "utf8" })) as LinesReply;
	const line = lines.files.flatMap((file) => file.lines).find((each) => each.line === 50)!;
	const share = formatPercent((line.host_us / lines.duration_us) * 100);
	await expect.poll(() => behindLines(editor)).toMatch(new RegExp(`ms · ${share} · 72.2 KiB`));
	await editor.shot("vscode-lines");
});

test("a line leads back into the viewer", async () => {
	await editor.run("Opstrobe: Show This Line in the Viewer");
	const viewer = await editor.viewer();
	await expect.poll(() => viewer.evaluate(() => location.hash)).toMatch(/^#\/source\/[0-9a-f]{12}\?file=train.py&line=50/);
	const place = editor.page.getByRole("treeitem", { name: /train.py:54/ });
	await place.click(); // its button exists from then on
	await place.getByRole("button", { name: "Show in the Timeline" }).click();
	await expect.poll(() => viewer.evaluate(() => location.hash)).toMatch(/^#\/timeline\/[0-9a-f]{12}\?.*event=\d+/);
	await viewer.getByText("Optimizer.step#SGD.step").first().waitFor();
	await editor.shot("vscode-timeline");
});

test("a program is profiled, and its trace opened", async () => {
	await editor.open("work.py");
	await editor.run("Opstrobe: Profile This File");
	await editor.page.locator(".tab").getByText(/^work-\d{8}-\d{6}.pt.trace.json.gz$/).waitFor({ timeout: 120_000 });
	await expect.poll(() => behindLines(editor)).toMatch(/ms · \d+\.\d %/);
	await editor.shot("vscode-profiled");
}, 240_000);

test("a missing command is reported, with what to do", async () => {
	await editor.open("work.py");
	await writeFile(join(editor.folder, "../own/Machine/settings.json"), JSON.stringify({ "opstrobe.command": "no-such-opstrobe" }));
	await editor.run("Opstrobe: Profile This File");
	await editor.page.locator(".notification-toast").getByText(/'no-such-opstrobe' cannot be run \(not found\)/).waitFor();
	await editor.page.locator(".notification-toast").getByRole("button", { name: "Open Settings" }).waitFor();
});

/** The texts after lines are pseudo-elements. */
function behindLines(editor: Editor): Promise<string> {
	return editor.page.evaluate(() =>
		[...document.querySelectorAll(".monaco-editor .view-line span")].map((each) => getComputedStyle(each, "::after").content).join("\n"),
	);
}
