// SPDX-License-Identifier: Apache-2.0
// A real browser for the tests: Debian's Chromium, driven by playwright-core. Screenshots go to build/screenshots/, to be
// looked at.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

const shots = join(root, "build/screenshots");

export function launch(): Promise<Browser> {
	const path = process.env.CHROMIUM ?? "/usr/bin/chromium";
	if (!existsSync(path)) throw new Error(`there is no ${path}: install chromium, or set CHROMIUM`);
	return chromium.launch({
		executablePath: path,
		args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
	});
}

/** A page that remembers what its console complains of: expectQuiet() at the end of a test. */
export class Tab {
	readonly page: Page;
	readonly complaints: string[] = [];

	private constructor(page: Page) {
		this.page = page;
		page.on("console", (message) => {
			if (message.type() === "error" || message.type() === "warning") this.complaints.push(message.text());
		});
		page.on("pageerror", (error) => this.complaints.push(String(error)));
	}

	static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
		const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
		const tab = new Tab(await context.newPage());
		await tab.page.goto(url);
		return tab;
	}

	async shot(name: string): Promise<void> {
		await mkdir(shots, { recursive: true });
		await this.page.screenshot({ path: join(shots, `${name}.png`) });
	}

	async close(): Promise<void> {
		await this.page.context().close();
	}

	expectQuiet(): void {
		expect(this.complaints).toEqual([]);
	}
}
