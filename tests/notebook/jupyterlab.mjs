// SPDX-License-Identifier: Apache-2.0
// The browser of jupyterlab.py: opens the notebook, runs all of its cells, uses the viewer in the last, which has to follow
// the theme, takes a picture.
/* global process, console, document, window */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(fileURLToPath(new URL("../../web/package.json", import.meta.url)));
const { chromium } = require("playwright-core");

const [url, picture] = process.argv.slice(2);
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});
try {
	// An emulated colour scheme would be that of frames, whatever their place.
	const page = await browser.newPage({ viewport: { width: 1280, height: 1500 }, colorScheme: null });
	page.setDefaultTimeout(90_000);
	page.on("console", (message) => message.type() === "error" && console.error("console:", message.text()));
	await page.goto(url);
	await page.locator(".jp-Notebook .jp-CodeCell").nth(2).waitFor();
	await page.locator('[data-status="idle"], .jp-Notebook-ExecutionIndicator[data-status="idle"]').first().waitFor();
	await page.getByRole("menuitem", { name: "Run", exact: true }).click();
	await page.getByRole("menuitem", { name: "Run All Cells", exact: true }).click();
	await page.locator(".jp-OutputArea .opstrobe tbody tr").nth(5).waitFor();
	await page.locator(".jp-OutputArea .opstrobe-advice").waitFor();
	const viewer = page.frameLocator('iframe[title="Opstrobe"]');
	await viewer.locator("nav a", { hasText: "Timeline" }).first().click();
	await viewer.locator("canvas").first().waitFor();
	await viewer.locator("nav a", { hasText: "Overview" }).first().click();
	await viewer.locator("main svg, main canvas").first().waitFor();
	const frame = page.frames().at(-1);
	const follow = (light) => frame.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, light ? "light" : "dark");
	const choose = async (light) => {
		const theme = light ? "JupyterLab Light" : "JupyterLab Dark";
		await page.evaluate((to) => window.jupyterapp.commands.execute("apputils:change-theme", { theme: to }), theme);
		await page.waitForFunction((to) => document.body.dataset.jpThemeLight === String(to), light);
	};
	const light = await page.evaluate(() => document.body.dataset.jpThemeLight === "true");
	await follow(light);
	for (const next of [!light, light]) {
		await choose(next);
		await follow(next);
	}
	await page.locator('iframe[title="Opstrobe"]').scrollIntoViewIfNeeded();
	await page.screenshot({ path: picture, animations: "disabled" });
	console.log(`all cells ran; see ${picture}`);
} finally {
	await browser.close();
}
