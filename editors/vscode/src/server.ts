// SPDX-License-Identifier: Apache-2.0
//
// An `opstrobe serve` process for one trace, which runs as long as its editor is open.
import { type ChildProcess, spawn } from "node:child_process";
import type { TraceList } from "../../../web/src/data/api";
import { type Command, spawnError } from "./command";

export class Server {
	readonly origin: string;
	/** The path of the viewer's page, "t/…/", which contains the token, because pages in a frame have no cookies. */
	readonly path: string;
	private readonly process: ChildProcess;

	private constructor(process: ChildProcess, printed: string) {
		const url = new URL(printed);
		this.process = process;
		this.origin = url.origin;
		this.path = `t/${url.searchParams.get("token") ?? ""}/`;
	}

	/** @param frames origins, separated by spaces, that may show the viewer in a frame */
	static start(command: Command, trace: string, frames: string): Promise<Server> {
		const child = spawn(command.path, ["serve", "--with-input", "--embed", frames, "--", trace], {
			stdio: ["pipe", "pipe", "pipe"], // its standard input closes when this process ends, however it ends
			env: { ...process.env, ...command.environment },
		});
		return new Promise((done, failed) => {
			let printed = "";
			let complaints = "";
			child.stdout.on("data", (data: Buffer) => {
				printed += data.toString();
				const line = /^(http:\S+)\n/.exec(printed)?.[1];
				if (line) done(new Server(child, line));
			});
			child.stderr.on("data", (data: Buffer) => (complaints = (complaints + data.toString()).slice(-4096)));
			child.on("error", (error) => failed(spawnError(command, error)));
			child.on("close", (code) => failed(new Error(complaints.trim() || `'${command.path} serve' ended with ${code ?? "a signal"}`)));
		});
	}

	/** Returns the id of the trace in the viewer's addresses. */
	async traceId(): Promise<string> {
		const reply = await fetch(`${this.origin}/${this.path}api/v1/traces`);
		const { traces } = (await reply.json()) as TraceList;
		return traces[0]?.id ?? "";
	}

	stop(): void {
		this.process.kill("SIGINT");
	}
}
