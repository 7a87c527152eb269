// SPDX-License-Identifier: Apache-2.0
// The browser of jupyterlab.py: opens the notebook, runs all of its cells, uses the viewer in the last, takes a picture.
/* global process, console */
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
	const page = await browser.newPage({ viewport: { width: 1280, height: 1500 } });
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
	await page.locator('iframe[title="Opstrobe"]').scrollIntoViewIfNeeded();
	await page.screenshot({ path: picture, animations: "disabled" });
	console.log(`all cells ran; see ${picture}`);
} finally {
	await browser.close();
}
