// SPDX-License-Identifier: Apache-2.0
// What a frame of the viewer's timeline costs while one zooms and moves, in headless Chromium without a GPU: the time from
// its begin until it is shown, all threads together, of frames that show something new; 60 a second need 16.7 ms. A frame
// that begins before the one before it is shown counts from then on: nothing holds Chromium back here, so that it always
// works on two. The time between frames alone would count waiting for the mouse, too. Prints figures, judges nothing.
//
//     node bench/timeline_frames.mjs [--large] [TRACE]
//
// Without TRACE the trace is made by make_trace.c, of a million events or (--large, 3.5 GB of disk) ten million. The
// command is `opstrobe`, or what OPSTROBE says.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const { chromium } = createRequire(join(here, "../web/package.json"))("playwright-core");
const words = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "opstrobe-frames-"));

function makeTrace(events) {
	const program = join(folder, "make_trace");
	const path = join(folder, "worker0.pt.trace.json");
	execFileSync("cc", ["-O2", join(here, "make_trace.c"), "-o", program]);
	execFileSync(program, [String(events), path]);
	return path;
}

/** Starts the server and resolves to its address, with the token. */
async function serve(path) {
	const server = spawn(process.env.OPSTROBE ?? "opstrobe", ["serve", path, "--port", "0"], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	for await (const line of createInterface({ input: server.stdout })) {
		const url = /http:\/\/\S+/.exec(line)?.[0];
		if (url) return { server, url };
	}
	throw new Error("opstrobe serve says no address");
}

const idle = (page) => page.locator(".tl-canvas[aria-busy=false]").waitFor({ timeout: 600_000 });

/** Chromium's own measurement of each frame that shows something new: from its begin, input included, until it is shown. */
async function traced(browser, drive) {
	const session = await browser.newBrowserCDPSession();
	const reported = [];
	session.on("Tracing.dataCollected", ({ value }) => reported.push(...value.filter((each) => each.name === "PipelineReporter")));
	const traceConfig = { includedCategories: ["disabled-by-default-devtools.timeline.frame"] };
	await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig });
	await drive();
	const complete = new Promise((done) => session.once("Tracing.tracingComplete", done));
	await session.send("Tracing.end");
	await complete;
	await session.detach();
	const begun = new Map();
	const times = [];
	let shown = 0; // the frame before
	for (const { ph, pid, id2, ts, args } of reported.sort((a, b) => a.ts - b.ts)) {
		const key = `${pid} ${id2.local}`;
		if (ph === "b" && args.frame_reporter.state === "STATE_PRESENTED_ALL") begun.set(key, ts);
		else if (ph === "e" && begun.has(key)) {
			times.push((ts - Math.max(begun.get(key), shown)) / 1000);
			begun.delete(key);
			shown = ts;
		}
	}
	return times;
}

async function frames(page, name, drive) {
	const times = (await traced(page.context().browser(), drive)).sort((a, b) => a - b);
	const at = (share) => times[Math.min(Math.floor(share * times.length), times.length - 1)].toFixed(1).padStart(6);
	console.log(`  ${name.padEnd(12)} ${String(times.length).padStart(5)} frames   p50 ${at(0.5)}   p95 ${at(0.95)}   p99 ${at(0.99)} ms`);
	await idle(page);
}

async function hold(page, key, ms) {
	for (const end = Date.now() + ms; Date.now() < end; await page.waitForTimeout(30)) await page.keyboard.press(key);
}

async function drag(page, to) {
	await page.mouse.move(800, 400);
	await page.mouse.down();
	for (let i = 1; i <= 60; i++) await page.mouse.move(800 + ((to - 800) * i) / 60, 400);
	await page.mouse.up();
}

async function measure(page, url) {
	await page.goto(`${url}#/timeline`);
	await page.locator(".tl-canvas").waitFor({ timeout: 600_000 }); // the server has read the trace by then
	await page.reload();
	await idle(page);
	const [paint, all] = await page.evaluate(() => [
		performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
		performance.now(),
	]);
	const events = await page.locator(".tl-corner").innerText();
	console.log(`timeline of ${events.replace(/\s+/g, " ").trim()}: first paint ${paint.toFixed(0)} ms, whole trace drawn ${all.toFixed(0)} ms`);
	await page.mouse.move(800, 400);
	await frames(page, "zoom in", () => hold(page, "w", 3000));
	await frames(page, "move", () => hold(page, "d", 3000));
	await frames(page, "zoom out", () => hold(page, "s", 3000));
	await hold(page, "w", 800);
	await frames(page, "drag", async () => {
		for (const to of [300, 1300, 300, 1300]) await drag(page, to);
	});
}

const named = words.find((word) => !word.startsWith("--"));
const { server, url } = await serve(named ?? makeTrace(words.includes("--large") ? 10_000_000 : 1_000_000));
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-frame-rate-limit", "--disable-gpu-vsync"],
});
try {
	await measure(await browser.newPage({ viewport: { width: 1440, height: 900 } }), url);
} finally {
	await browser.close();
	server.kill("SIGINT");
	server.stdout.destroy();
	rmSync(folder, { recursive: true });
}
