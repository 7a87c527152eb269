// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of the docs: `node screenshots.mjs` writes docs/images/view-*.png, of the trace that the tests have.
// The command is OPSTROBE of the environment, or the one on the PATH.
/* global URL, document, fetch, location */
import { spawn } from "node:child_process";
import { statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "tests/traces");
const LARGEST = 200_000;

const PICTURES = [
	["overview", "", "light"],
	["advice", "", "light"],
	["timeline", "", "light"],
	["operators", "", "light"],
	["roofline", "?roof=60G,20G", "light"],
	["memory", "", "dark"],
	["modules", "", "light"],
	["stacks", "", "dark"],
	["source", "?file=train.py&line=50", "light"],
];

// A checkout makes files younger than the recording, of which the view of the source would warn.
utimesSync(join(folder, "train.py"), 0, 0);

// The trace names its program by a path relative to the folder it lies in.
const server = spawn(process.env.OPSTROBE ?? "opstrobe", ["serve", "train.pt.trace.json.gz"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
const url = await new Promise((found) => server.stdout.on("data", (data) => found(/http:\/\/\S+/.exec(String(data))?.[0])));
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});
try {
	for (const [view, query, colorScheme] of PICTURES) {
		const context = await browser.newContext({ viewport: { width: 1400, height: 860 }, colorScheme });
		const page = await context.newPage();
		await page.goto(url);
		await page.locator("main > *").first().waitFor();
		const trace = await page.evaluate(async () => (await (await fetch("api/v1/traces")).json()).traces[0].id);
		await page.goto(new URL(`#/${view}/${trace}${query}`, url).href);
		await page.waitForFunction((id) => location.hash.includes(id) && !document.body.innerText.includes("Loading"), view);
		await page.evaluate(() => document.fonts.ready);
		if (view === "timeline") {
			await page.locator("select").first().selectOption({ index: 3 }); // a step, whose operators are large enough to be read
			await page.waitForTimeout(1000); // the zoom is animated
		}
		const path = join(here, `../docs/images/view-${view}.png`);
		await page.screenshot({ path, animations: "disabled" });
		const { size } = statSync(path);
		console.log(`${path}: ${size} bytes`);
		if (size > LARGEST) throw new Error(`${path} is too large`);
		await context.close();
	}
} finally {
	await browser.close();
	server.kill("SIGINT");
}
