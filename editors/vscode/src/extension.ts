// SPDX-License-Identifier: Apache-2.0
//
// The extension's contributions to the editor. All data of a trace comes from the `opstrobe` command (command.ts,
// server.ts).
import * as vscode from "vscode";
import { Annotations } from "./annotations";
import { fileOf } from "./costs";
import { followProblems, FindingTree, rowOf } from "./panels";
import { profileFile } from "./profile";
import { Session } from "./session";
import { report } from "./settings";
import { openSource } from "./sources";
import { TraceEditors, VIEW_TYPE } from "./viewer";

export function activate(context: vscode.ExtensionContext): void {
	const session = new Session();
	const editors = new TraceEditors(session);
	const tree = new FindingTree(session);

	/** Errors of a command are shown to the user, not thrown. */
	const command = (name: string, run: (...words: never[]) => Promise<void> | void): vscode.Disposable =>
		vscode.commands.registerCommand(`opstrobe.${name}`, async (...words: never[]) => {
			try {
				await run(...words);
			} catch (error) {
				await report(error);
			}
		});
	context.subscriptions.push(
		session,
		tree,
		followProblems(session),
		new Annotations(session, context.extensionUri),
		vscode.window.registerCustomEditorProvider(VIEW_TYPE, editors, { webviewOptions: { retainContextWhenHidden: true } }),
		vscode.window.registerTreeDataProvider("opstrobe.findings", tree),
		command("openTrace", openTrace),
		command("profileFile", (uri?: vscode.Uri) => onFile(uri, profileFile)),
		command("hideLines", () => session.hide()),
		command("openSource", (file: string, line: number | null, trace: string) => openSource(file, line, vscode.Uri.parse(trace))),
		command("showLine", (trace: string, row: number) => editors.show(vscode.Uri.parse(trace), { row })),
		command("showFinding", async (node: Parameters<typeof rowOf>[0]) => {
			const row = rowOf(node);
			if (session.shown && row !== null) await editors.show(session.shown.trace, { row });
		}),
		command("showCursorLine", () => showCursorLine(session, editors)),
	);
}

async function openTrace(uri?: vscode.Uri): Promise<void> {
	const [chosen] = uri ? [uri] : ((await vscode.window.showOpenDialog({ title: "Open a trace", filters: { Traces: ["json", "gz"] } })) ?? []);
	if (chosen) await vscode.commands.executeCommand("vscode.openWith", chosen, VIEW_TYPE);
}

async function onFile(uri: vscode.Uri | undefined, run: (uri: vscode.Uri) => Promise<void>): Promise<void> {
	const file = uri ?? vscode.window.activeTextEditor?.document.uri;
	if (file) await run(file);
}

/** Shows the line of the cursor in the viewer's source view. */
async function showCursorLine(session: Session, editors: TraceEditors): Promise<void> {
	const editor = vscode.window.activeTextEditor;
	const file = session.shown && editor ? fileOf(session.shown.lines, editor.document.uri.fsPath) : undefined;
	if (!session.shown || !editor || !file) throw new Error("no trace is open that knows this file");
	await editors.show(session.shown.trace, { file: file.file, line: editor.selection.active.line + 1 });
}
