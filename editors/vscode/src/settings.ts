// SPDX-License-Identifier: Apache-2.0
//
// The user's settings, and the message shown if they do not lead to a command.
import { homedir } from "node:os";
import * as vscode from "vscode";
import { type Command, CommandMissing } from "./command";

/** Returns the command for files in the folder of `place`. */
export function commandFor(place: vscode.Uri): Command {
	const settings = vscode.workspace.getConfiguration("opstrobe", place);
	const python = expand(settings.get("python", ""), place);
	return { path: expand(settings.get("command", "opstrobe"), place), environment: python ? { OPSTROBE_PYTHON: python } : {} };
}

export function wordsOf(name: "runOptions" | "programArguments", place: vscode.Uri): string[] {
	return vscode.workspace.getConfiguration("opstrobe", place).get<string[]>(name, []);
}

function expand(path: string, place: vscode.Uri): string {
	const folder = vscode.workspace.getWorkspaceFolder(place) ?? vscode.workspace.workspaceFolders?.[0];
	return path.replace(/^~(?=\/)/, homedir()).replace("${workspaceFolder}", folder?.uri.fsPath ?? "");
}

/** If the command is missing, offers "pip install" or setting a path. */
export async function report(error: unknown): Promise<void> {
	const text = error instanceof Error ? error.message : String(error);
	if (!(error instanceof CommandMissing)) {
		void vscode.window.showErrorMessage(`Opstrobe: ${text}`);
		return;
	}
	const settings = "Open Settings";
	const advice = "Install Opstrobe where this window's files are, or put the path of its command into the setting 'opstrobe.command'.";
	if ((await vscode.window.showErrorMessage(`Opstrobe: ${text}. ${advice}`, settings)) === settings) {
		await vscode.commands.executeCommand("workbench.action.openSettings", "opstrobe.command");
	}
}
