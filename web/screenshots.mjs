// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of the docs: `node screenshots.mjs` writes docs/images/view-*.png, of the trace that the tests have and of
// made-up ranks. Names of pictures after it choose some: `node screenshots.mjs timeline-ranks`.
// The command is OPSTROBE of the environment, or the one on the PATH. PICTURES is another folder to write to: tests take all pictures.
/* global URL, document, fetch, location */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { writeRanks } from "./tests/traces/make_ranks.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "tests/traces");
const target = process.env.PICTURES ?? join(here, "../docs/images");
const LARGEST = 200_000;

const PICTURES = [
	["overview", "", "light"],
	["advice", "", "light"],
	["timeline", "", "light"],
	["operators", "", "light"],
	["roofline", "?roof=60G,20G", "light"],
	["memory", "", "dark"],
	["modules", "", "light"],
	["model", "?part=2", "light"],
	["stacks", "", "dark"],
	["source", "?file=train.py&line=50", "light"],
];

// A checkout makes files younger than the recording, of which the view of the source would warn.
utimesSync(join(folder, "train.py"), 0, 0);

// Of several traces: which is open, the query, in which @0, @1, … are traces, and the name of the picture.
const RANKS = [
	["traces", "", "light"],
	["timeline", "?with=@1&from=3800000&to=8200000&event=56", "light", 2, "timeline-ranks"],
	["diff", "?base=@1", "light", 2, "diff"],
];

async function serve(paths, cwd) {
	const server = spawn(process.env.OPSTROBE ?? "opstrobe", ["serve", ...paths], { cwd, stdio: ["ignore", "pipe", "ignore"] });
	const url = await new Promise((found) => server.stdout.on("data", (data) => found(/http:\/\/\S+/.exec(String(data))?.[0])));
	return { server, url };
}

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});

async function take(url, [view, query, colorScheme, open = 0, name = view]) {
	const wanted = process.argv.slice(2);
	if (wanted.length > 0 && !wanted.includes(name)) return;
	const context = await browser.newContext({ viewport: { width: 1400, height: 860 }, colorScheme });
	const page = await context.newPage();
	await page.goto(url);
	await page.locator("main > *").first().waitFor();
	const ids = await page.evaluate(async () => (await (await fetch("api/v1/traces")).json()).traces.map((each) => each.id));
	await page.goto(new URL(`#/${view}/${ids[open]}${query.replace(/@(\d+)/g, (_, i) => ids[i])}`, url).href);
	await page.waitForFunction((id) => location.hash.includes(id) && !document.body.innerText.includes("Loading"), view);
	await page.evaluate(() => document.fonts.ready);
	if (name === "timeline") await page.locator("select").first().selectOption({ index: 3 }); // a step, whose operators are large enough to be read
	if (name === "diff") await page.getByRole("heading", { name: "Flame graph of the difference" }).scrollIntoViewIfNeeded();
	if (view === "timeline") await page.waitForTimeout(1000); // the zoom is animated
	const path = join(target, `view-${name}.png`);
	await page.screenshot({ path, animations: "disabled" });
	const { size } = statSync(path);
	console.log(`${path}: ${size} bytes`);
	if (size > LARGEST) throw new Error(`${path} is too large`);
	await context.close();
}

async function takeAll(paths, cwd, pictures) {
	const { server, url } = await serve(paths, cwd);
	try {
		for (const picture of pictures) await take(url, picture);
	} finally {
		server.kill("SIGINT");
	}
}

const ranks = mkdtempSync(join(tmpdir(), "opstrobe-ranks-"));
try {
	// The trace names its program by a path relative to the folder it lies in.
	await takeAll(["train.pt.trace.json.gz"], folder, PICTURES);
	const job = join(ranks, "train-ddp"); // the list of traces shows the name
	mkdirSync(job);
	writeRanks(job);
	await takeAll([job], here, RANKS);
} finally {
	await browser.close();
	rmSync(ranks, { recursive: true });
}
