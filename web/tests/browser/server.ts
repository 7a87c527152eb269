// SPDX-License-Identifier: Apache-2.0
// The real command behind the pages of the tests: it serves them, and it prints the figures that they must show.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./browser";

/** What is tested: the command of the environment, else that of a build in the tree, else the one on the PATH. */
export const OPSTROBE = process.env.OPSTROBE ?? [join(root, "build/dev/src/cli/opstrobe")].find((path) => existsSync(path)) ?? "opstrobe";

/** Traces that are not in the repository, where there are some. */
export const shared = [process.env.OPSTROBE_TRACES ?? join(root, "../shared/traces")].find((path) => existsSync(path));

/** The trace that is. */
export const recorded = join(root, "web/tests/traces/train.pt.trace.json.gz");

export interface Served {
	id: string;
	run: string;
	name: string;
	path: string;
}

export class Server {
	readonly url: string;
	readonly traces: Served[];
	private readonly process: ChildProcess;

	private constructor(process: ChildProcess, url: string, traces: Served[]) {
		this.process = process;
		this.url = url;
		this.traces = traces;
	}

	static async start(...paths: string[]): Promise<Server> {
		const child = spawn(OPSTROBE, ["serve", ...paths], { stdio: ["ignore", "pipe", "inherit"] });
		const url = await new Promise<string>((found, failed) => {
			let text = "";
			child.stdout.on("data", (data: Buffer) => {
				text += data.toString();
				const line = /http:\/\/\S+/.exec(text)?.[0];
				if (line) found(line);
			});
			child.on("error", failed);
			child.on("exit", (code) => failed(new Error(`the server ended with ${code}`)));
		});
		const token = new URL(url).searchParams.get("token") ?? "";
		const reply = await fetch(new URL("/api/v1/traces", url), { headers: { Authorization: `Bearer ${token}` } });
		const { traces } = (await reply.json()) as { traces: Served[] };
		return new Server(child, url, traces);
	}

	/** The trace whose path has this part. */
	trace(part: string): Served {
		const trace = this.traces.find((each) => each.path.includes(part));
		if (!trace) throw new Error(`no trace has '${part}' in its path`);
		return trace;
	}

	/** The address of a view, with the token. */
	at(view: string, trace: Served, query = ""): string {
		return `${this.url}#/${view}/${trace.id}${query ? `?${query}` : ""}`;
	}

	async stop(): Promise<void> {
		if (this.process.exitCode !== null) return;
		const ended = new Promise((done) => this.process.once("exit", done));
		this.process.kill("SIGINT");
		await ended;
	}
}

/** What a command prints. Throws when it fails. */
export function call(...args: string[]): string {
	return execFileSync(OPSTROBE, args, { encoding: "utf8", maxBuffer: 1 << 28 });
}

/** What a command prints, while others run, too. */
export async function callMeanwhile(...args: string[]): Promise<string> {
	return (await promisify(execFile)(OPSTROBE, args, { encoding: "utf8", maxBuffer: 1 << 28 })).stdout;
}

/** What a command prints, as JSON, while others print, too. */
export async function printedMeanwhile(...args: string[]): Promise<unknown> {
	return JSON.parse(await callMeanwhile(...args, "--format", "json"));
}

/** What a command prints, as JSON. */
export function printed(...args: string[]): unknown {
	return JSON.parse(call(...args, "--format", "json"));
}
