// SPDX-License-Identifier: Apache-2.0
//
// A real editor for the tests: VS Code in the browser, served by code-server with the packaged extension, and driven by
// playwright-core. CODE_SERVER is the path of its out/node/entry.js or of its command. The editor writes only to a
// separate directory.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Frame, type Page } from "playwright-core";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../../..");
const shots = join(root, "build/screenshots");

export class Editor {
	private constructor(
		readonly page: Page,
		readonly folder: string,
		private readonly browser: Browser,
		private readonly server: ChildProcess,
	) {}

	/** @param files sources of the files in the opened folder
	 *  @param settings of the machine: an editor in the browser reads no others for commands */
	static async start(files: readonly string[], settings: Record<string, unknown>): Promise<Editor> {
		const command = process.env.CODE_SERVER;
		if (!command) throw new Error("CODE_SERVER names no code-server");
		const folder = await mkdtemp(join(tmpdir(), "opstrobe-editor-"));
		const own = join(folder, "own");
		const work = join(folder, "work");
		await mkdir(join(own, "User"), { recursive: true });
		await mkdir(work);
		for (const file of files) await cp(file, join(work, file.replace(/^.*\//, "")));
		await writeFile(join(own, "User/settings.json"), JSON.stringify(quiet));
		await mkdir(join(own, "Machine"));
		await writeFile(join(own, "Machine/settings.json"), JSON.stringify(settings));
		const words = [...(command.endsWith(".js") ? [process.execPath, command] : [command]), "--user-data-dir", own, "--extensions-dir", join(folder, "extensions")];
		const environment = { ...process.env, HOME: folder, XDG_CONFIG_HOME: own, XDG_DATA_HOME: own, XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache") };
		execFileSync(words[0]!, [...words.slice(1), "--install-extension", join(root, "editors/vscode/opstrobe.vsix")], { env: environment, stdio: "pipe" });
		const server = spawn(words[0]!, [...words.slice(1), "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", work], {
			env: environment,
			stdio: ["ignore", "pipe", "inherit"],
		});
		const url = await new Promise<string>((found, failed) => {
			let printed = "";
			server.stdout.on("data", (data: Buffer) => {
				printed += data.toString();
				const address = /listening on (http:\S+)/.exec(printed)?.[1];
				if (address) found(address);
			});
			server.on("close", () => failed(new Error(`code-server ended: ${printed}`)));
		});
		const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
		const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
		await page.goto(`${url}?folder=${encodeURIComponent(work)}`);
		await page.getByText("Opstrobe: Advice").waitFor({ timeout: 120_000 }); // the extension is not known before that
		return new Editor(page, work, browser, server);
	}

	async stop(): Promise<void> {
		await this.browser.close();
		const ended = new Promise((done) => this.server.once("close", done));
		this.server.kill("SIGINT");
		await ended;
		await rm(dirname(this.folder), { recursive: true, force: true });
	}

	async shot(name: string): Promise<void> {
		await mkdir(shots, { recursive: true });
		await this.page.screenshot({ path: join(shots, `${name}.png`) });
	}

	/** Opens a file of the folder, like a click in the explorer. */
	async open(name: string): Promise<void> {
		await this.page.locator(".explorer-folders-view").getByRole("treeitem", { name }).first().dblclick();
	}

	/** Runs a command by its title, in the palette. */
	async run(title: string): Promise<void> {
		await this.page.keyboard.press("F1");
		await this.page.locator(".quick-input-widget input").fill(`>${title}`);
		await this.page.locator(".quick-input-list").getByText(title).first().waitFor();
		await this.page.keyboard.press("Enter");
	}

	/** Returns the viewer's frame. */
	async viewer(): Promise<Frame> {
		for (let i = 0; i < 300; i++) {
			const frame = this.page.frames().find((each) => /\/t\/[0-9a-f]+\//.test(each.url()));
			if (frame && (await frame.locator("nav").count()) > 0) return frame;
			await this.page.waitForTimeout(200);
		}
		throw new Error(`no frame shows the viewer: ${this.page.frames().map((frame) => frame.url()).join(", ")}`);
	}
}

const quiet = {
	"workbench.startupEditor": "none",
	"security.workspace.trust.enabled": false,
	"telemetry.telemetryLevel": "off",
	"extensions.ignoreRecommendations": true,
	"workbench.colorTheme": "Default Light Modern",
};
