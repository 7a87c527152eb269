// SPDX-License-Identifier: Apache-2.0
//
// The `opstrobe` command. Everything that the extension knows about a trace comes from its output.
import { execFile } from "node:child_process";

export interface Command {
	/** A name to look up in PATH, or a path. */
	path: string;
	/** Variables set in addition to this process's environment. */
	environment: Record<string, string>;
}

/** The command does not exist or cannot be run. This is handled differently from an error reported by the command. */
export class CommandMissing extends Error {
	constructor(path: string, reason: string) {
		super(`'${path}' cannot be run (${reason})`);
		this.name = "CommandMissing";
	}
}

/** Converts the error of spawning the command to CommandMissing if the command is the cause. */
export function spawnError(command: Command, error: NodeJS.ErrnoException): Error {
	if (error.code === "ENOENT") return new CommandMissing(command.path, "not found");
	if (error.code === "EACCES") return new CommandMissing(command.path, "not allowed");
	return error;
}

const OUTPUT_MAX = 1 << 28;

/** Rejects with CommandMissing if there is no such command. */
export function mustBeThere(command: Command): Promise<void> {
	return new Promise((done, failed) => {
		execFile(command.path, ["--version"], (error) => {
			if (error && typeof error.code === "string") failed(spawnError(command, error as NodeJS.ErrnoException));
			else done(); // any other problem is reported when the command is used
		});
	});
}

/** Returns the JSON output of a subcommand for a trace. If the command fails, rejects with its message on standard
 * error. */
export function printed<T>(command: Command, name: string, trace: string): Promise<T> {
	return new Promise((done, failed) => {
		const options = { encoding: "utf8", maxBuffer: OUTPUT_MAX, env: { ...process.env, ...command.environment } } as const;
		const words = [name, "--format", "json", "--", trace]; // the file name may begin with a dash
		execFile(command.path, words, options, (error, output, complaints) => {
			if (error && typeof error.code === "string") failed(spawnError(command, error as NodeJS.ErrnoException));
			else if (error) failed(new Error(complaints.trim() || error.message));
			else done(JSON.parse(output) as T);
		});
	});
}
