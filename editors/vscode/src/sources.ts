// SPDX-License-Identifier: Apache-2.0
//
// Maps names in a trace to files of the editor.
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { baseName, bestFit, isAbsolute } from "./paths";

/** Opens a line of the program next to the viewer, or where other source is already open. */
export async function openSource(recordedPath: string, line: number | null, trace: vscode.Uri): Promise<void> {
	const file = await localFile(recordedPath, trace);
	if (!file) {
		void vscode.window.showWarningMessage(`Opstrobe: there is no '${recordedPath}' in this window's folders.`);
		return;
	}
	const at = new vscode.Position(Math.max(0, (line ?? 1) - 1), 0);
	const column = vscode.window.visibleTextEditors.find((editor) => editor.viewColumn !== undefined)?.viewColumn;
	await vscode.window.showTextDocument(file, { selection: new vscode.Range(at, at), viewColumn: column ?? vscode.ViewColumn.Beside });
}

/** Returns the local file that a trace refers to, if there is one. */
export async function localFile(recordedPath: string, trace: vscode.Uri): Promise<vscode.Uri | undefined> {
	const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
	for (const path of [recordedPath, ...folders.map((folder) => join(folder, recordedPath)), join(dirname(trace.fsPath), recordedPath)]) {
		if (isAbsolute(path) && (await isFile(path))) return vscode.Uri.file(path);
	}
	const name = baseName(recordedPath).replace(/[[\]{}*?]/g, "[$&]");
	const found = await vscode.workspace.findFiles(`**/${name}`, undefined, 100);
	const path = bestFit(
		recordedPath,
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
