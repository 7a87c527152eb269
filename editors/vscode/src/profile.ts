// SPDX-License-Identifier: Apache-2.0
//
// "Profile This File": runs `opstrobe run` as a task, so that the program has a terminal, and then opens its trace.
import { mkdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import { mustBeThere } from "./command";
import { commandFor, wordsOf } from "./settings";
import { VIEW_TYPE } from "./viewer";

/** The directory for traces, in the working directory of the program. */
const FOLDER = ".opstrobe";

export async function profileFile(uri: vscode.Uri): Promise<void> {
	await vscode.workspace.save(uri);
	const folder = vscode.workspace.getWorkspaceFolder(uri);
	const where = folder?.uri.fsPath ?? dirname(uri.fsPath);
	const trace = join(where, FOLDER, traceName(uri.fsPath, new Date()));
	await mkdir(dirname(trace), { recursive: true });
	const command = commandFor(uri);
	await mustBeThere(command); // a task would only end
	const words = ["run", ...wordsOf("runOptions", uri), "-o", trace, uri.fsPath, ...wordsOf("programArguments", uri)];
	const run = new vscode.ProcessExecution(command.path, words, { cwd: where, env: command.environment });
	const task = new vscode.Task({ type: "opstrobe" }, folder ?? vscode.TaskScope.Workspace, `Profile ${basename(uri.fsPath)}`, "opstrobe", run, []);
	await ended(task);
	if (!(await isThere(trace))) throw new Error("the program left no trace; its terminal says why");
	await vscode.commands.executeCommand("vscode.openWith", vscode.Uri.file(trace), VIEW_TYPE, vscode.ViewColumn.Beside);
}

/** Returns a name such as "train-20261121-210900.pt.trace.json.gz". Traces are kept, to compare them. */
export function traceName(program: string, time: Date): string {
	const digits = time.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
	return `${basename(program, ".py")}-${digits}.pt.trace.json.gz`;
}

async function ended(task: vscode.Task): Promise<void> {
	let watch: vscode.Disposable | undefined;
	const ends = new Promise<void>((done) => {
		watch = vscode.tasks.onDidEndTask(({ execution }) => {
			if (execution.task.name === task.name && execution.task.source === task.source) done();
		});
	});
	await vscode.tasks.executeTask(task);
	await ends;
	watch?.dispose();
}

async function isThere(path: string): Promise<boolean> {
	try {
		await stat(path);
		return true;
	} catch {
		return false;
	}
}
