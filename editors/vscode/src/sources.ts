// SPDX-License-Identifier: Apache-2.0
// From what a trace names to files of the editor.
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { baseName, bestFit, isAbsolute } from "./paths";

/** Opens a line of the program beside the viewer, or where other source is open already. */
export async function openSource(told: string, line: number | null, trace: vscode.Uri): Promise<void> {
	const file = await localFile(told, trace);
	if (!file) {
		void vscode.window.showWarningMessage(`Opstrobe: there is no '${told}' in this window's folders.`);
		return;
	}
	const at = new vscode.Position(Math.max(0, (line ?? 1) - 1), 0);
	const column = vscode.window.visibleTextEditors.find((editor) => editor.viewColumn !== undefined)?.viewColumn;
	await vscode.window.showTextDocument(file, { selection: new vscode.Range(at, at), viewColumn: column ?? vscode.ViewColumn.Beside });
}

/** The file of this machine that a trace means, if there is one. */
export async function localFile(told: string, trace: vscode.Uri): Promise<vscode.Uri | undefined> {
	const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
	for (const path of [told, ...folders.map((folder) => join(folder, told)), join(dirname(trace.fsPath), told)]) {
		if (isAbsolute(path) && (await isFile(path))) return vscode.Uri.file(path);
	}
	const name = baseName(told).replace(/[[\]{}*?]/g, "[$&]");
	const found = await vscode.workspace.findFiles(`**/${name}`, undefined, 100);
	const path = bestFit(
		told,
		found.map((each) => each.fsPath),
	);
	return found.find((each) => each.fsPath === path);
}

async function isFile(path: string): Promise<boolean> {
	try {
		return (await vscode.workspace.fs.stat(vscode.Uri.file(path))).type === vscode.FileType.File;
	} catch {
		return false;
	}
}
