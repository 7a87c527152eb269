// SPDX-License-Identifier: Apache-2.0
// The `opstrobe` command: all that the extension knows of a trace comes from what it prints.
import { execFile } from "node:child_process";

export interface Command {
	/** A name to look up in PATH, or a path. */
	path: string;
	/** What is set beyond this process's environment. */
	environment: Record<string, string>;
}

/** The command itself is not there, or cannot be run: what to do about that is another matter than what it says. */
export class CommandMissing extends Error {
	constructor(path: string, reason: string) {
		super(`'${path}' cannot be run (${reason})`);
		this.name = "CommandMissing";
	}
}

/** What spawning the command failed with, as an error of its own where the command is to blame. */
export function spawnError(command: Command, error: NodeJS.ErrnoException): Error {
	if (error.code === "ENOENT") return new CommandMissing(command.path, "not found");
	if (error.code === "EACCES") return new CommandMissing(command.path, "not allowed");
	return error;
}

const OUTPUT_MAX = 1 << 28;

/** Rejects with CommandMissing where there is no such command. */
export function mustBeThere(command: Command): Promise<void> {
	return new Promise((done, failed) => {
		execFile(command.path, ["--version"], (error) => {
			if (error && typeof error.code === "string") failed(spawnError(command, error as NodeJS.ErrnoException));
			else done(); // what else is wrong with it, it says itself when it is used
		});
	});
}

/** What a subcommand prints of a trace, as JSON. Rejects with what it says on standard error when it fails. */
export function printed<T>(command: Command, name: string, trace: string): Promise<T> {
	return new Promise((done, failed) => {
		const options = { encoding: "utf8", maxBuffer: OUTPUT_MAX, env: { ...process.env, ...command.environment } } as const;
		const words = [name, "--format", "json", "--", trace]; // its name may begin with a dash
		execFile(command.path, words, options, (error, output, complaints) => {
			if (error && typeof error.code === "string") failed(spawnError(command, error as NodeJS.ErrnoException));
			else if (error) failed(new Error(complaints.trim() || error.message));
			else done(JSON.parse(output) as T);
		});
	});
}
