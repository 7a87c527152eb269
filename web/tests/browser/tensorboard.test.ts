// SPDX-License-Identifier: Apache-2.0
// The tab in the real TensorBoard: what it shows is what the command prints, and runs come while it is open.
import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, FrameLocator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OperatorsReply } from "../../src/data/replies";
import { launch, root, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { printed, recorded } from "./server";

const other = join(root, "tests/fuzz/analyze/training.json");

let browser: Browser;
let logs: string;
let board: ChildProcess;
let url: string;

async function add(run: string, trace: string): Promise<void> {
	await mkdir(join(logs, run));
	await copyFile(trace, join(logs, run, `host.1.pt.trace.json${trace.endsWith(".gz") ? ".gz" : ""}`));
}

beforeAll(async () => {
	browser = await launch();
	logs = await mkdtemp(join(tmpdir(), "opstrobe-logs-"));
	await add("first", recorded);
	await add("second", other);
	board = spawn("tensorboard", ["--logdir", logs, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]);
	let said = "";
	url = await new Promise((found, failed) => {
		const read = (data: Buffer) => {
			said += data.toString();
			const address = /TensorBoard \S+ at (http:\S+)/.exec(said)?.[1];
			if (address) found(address);
		};
		board.stdout?.on("data", read);
		board.stderr?.on("data", read);
		board.on("error", failed);
		board.on("exit", () => failed(new Error(said)));
	});
});

afterAll(async () => {
	await browser.close();
	const ended = new Promise((done) => board.once("exit", done));
	if (board.exitCode === null && board.kill()) await ended;
	await rm(logs, { recursive: true });
});

/** Our page, two frames deep. */
function inside(tab: Tab): FrameLocator {
	return tab.page.frameLocator('iframe[src*="name=opstrobe"]').frameLocator('iframe[title="Opstrobe"]');
}

async function expectOperators(frame: FrameLocator, path: string): Promise<void> {
	const { operators } = printed("views", path) as OperatorsReply;
	const { rows } = await readGrid(frame, "Operators");
	expect(rows.map((row) => row.name).sort()).toEqual(operators.rows.map((row) => row.name).sort());
	for (const row of rows) {
		const wanted = operators.rows.find((each) => each.name === row.name)!;
		expectShows(row.calls!, wanted.calls, `calls of ${row.name}`);
		expectShows(row.host_self!, wanted.host_self, `host self of ${row.name}`);
	}
}

test("several runs, one more while the tab is open, and the figures of each", async () => {
	const tab = await Tab.open(browser, `${url}#opstrobe`);
	const frame = inside(tab);
	await frame.getByRole("treegrid", { name: "Traces" }).getByRole("link", { name: "first/" }).click();
	const choice = frame.getByLabel("Trace", { exact: true });
	const runs = () => choice.locator("optgroup").evaluateAll((groups) => groups.map((group) => group.getAttribute("label")?.split("/").pop()));
	await expect.poll(runs).toEqual(["first", "second"]);
	await frame.getByRole("link", { name: "Operators", exact: true }).click();
	await expectOperators(frame, recorded);
	await tab.shot("tensorboard-operators");

	await add("third", other);
	await expect.poll(runs).toEqual(["first", "second", "third"]);
	await choice.selectOption(await choice.locator('optgroup[label$="third"] option').getAttribute("value"));
	await expect.poll(async () => (await readGrid(frame, "Operators")).rows.length).toBe((printed("views", other) as OperatorsReply).operators.rows.length);
	await expectOperators(frame, other);
	await tab.close();
	// TensorBoard's own page prints messages; ours prints none.
	expect(tab.complaints.filter((text) => text.includes("opstrobe"))).toEqual([]);
});
