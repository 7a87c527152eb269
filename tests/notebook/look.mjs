// SPDX-License-Identifier: Apache-2.0
// Looks at a page with viewers in frames: `node look.mjs URL [PICTURE]` prints as JSON the contents of the page and of its
// frames, errors, and requests to other machines.
/* global process, console, document, location */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(fileURLToPath(new URL("../../web/package.json", import.meta.url)));
const { chromium } = require("playwright-core");

const [url, picture] = process.argv.slice(2);
const MARKS = [
	["data-jp-theme-light", "false", "dark"],
	["data-jp-theme-light", "true", "light"],
	["data-vscode-theme-kind", "vscode-dark", "dark"],
	["data-vscode-theme-kind", "vscode-light", "light"],
	["data-vscode-theme-kind", "vscode-high-contrast", "dark"],
	["data-vscode-theme-kind", "vscode-high-contrast-light", "light"],
];
const wrong = [];
const abroad = [];
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
	// Without an emulated colour scheme, which frames would take for that of their place.
	const page = await browser.newPage({ viewport: { width: 1200, height: 1000 }, colorScheme: null });
	page.setDefaultTimeout(120_000);
	page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
	page.on("pageerror", (error) => wrong.push(String(error)));
	page.on("dialog", (dialog) => {
		wrong.push(`a script of the trace ran: ${dialog.message()}`);
		void dialog.dismiss();
	});
	page.on("request", (request) => {
		const { protocol, hostname } = new URL(request.url());
		if (protocol.startsWith("http") && !["localhost", "127.0.0.1"].includes(hostname)) abroad.push(request.url());
	});
	await page.goto(url);
	const frames = [];
	for (const frame of page.frames().slice(1)) {
		// From the overview to another view, by the link that a user would click.
		await frame.locator("nav a", { hasText: "Operators" }).first().click();
		await frame.locator(".grid [data-column]", { hasText: /^aten::/ }).first().waitFor();
		frames.push({
			hash: await frame.evaluate(() => location.hash),
			operators: await frame.locator(".grid [data-column]", { hasText: /^aten::/ }).allInnerTexts(),
		});
	}
	for (const [mark, value, theme] of MARKS) {
		await page.evaluate((pair) => document.body.setAttribute(...pair), [mark, value]);
		for (const frame of page.frames().slice(1)) {
			const follows = frame.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, theme, { timeout: 10_000 });
			await follows.catch(() => wrong.push(`${frame.url()} is not ${theme} where ${mark}=${value}`));
		}
		await page.evaluate((name) => document.body.removeAttribute(name), mark);
	}
	const text = await page.evaluate(() => document.body.innerText);
	const bars = await page.locator(".opstrobe rect:not(.r)").count();
	if (picture) await page.screenshot({ path: picture, fullPage: true });
	console.log(JSON.stringify({ text, bars, frames, wrong, abroad }));
} finally {
	await browser.close();
}
