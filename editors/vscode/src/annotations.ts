// SPDX-License-Identifier: Apache-2.0
//
// Time and memory at the ends of lines in open source files, and a heat mark in the gutter.
import { stat } from "node:fs/promises";
import * as vscode from "vscode";
import { type Annotation, annotate, factsOf, fileOf, HEATS } from "./costs";
import type { Session, Shown } from "./session";

export class Annotations implements vscode.Disposable {
	private readonly shades: vscode.TextEditorDecorationType[];
	private readonly watches: vscode.Disposable[];

	constructor(
		private readonly session: Session,
		folder: vscode.Uri,
	) {
		this.shades = Array.from({ length: HEATS }, (_, heat) =>
			vscode.window.createTextEditorDecorationType({
				gutterIconPath: vscode.Uri.joinPath(folder, "media", `heat${heat}.svg`),
				gutterIconSize: "contain",
				after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 3em" },
				...(heat === HEATS - 1 && { overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.warningForeground") }),
				rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
			}),
		);
		this.watches = [session.onDidChange(() => this.drawAll()), vscode.window.onDidChangeVisibleTextEditors(() => this.drawAll())];
		this.drawAll();
	}

	dispose(): void {
		for (const each of [...this.watches, ...this.shades]) each.dispose();
	}

	private drawAll(): void {
		for (const editor of vscode.window.visibleTextEditors) void this.draw(editor);
	}

	private async draw(editor: vscode.TextEditor): Promise<void> {
		const shown = this.session.shown;
		const annotations = shown && editor.document.uri.scheme === "file" ? annotationsOf(shown, editor.document) : [];
		const changed = annotations.length > 0 && shown !== undefined && (await isNewer(editor.document.uri, shown.trace));
		if (this.session.shown !== shown) return;
		this.shades.forEach((shade, heat) => {
			const those = annotations.filter((each) => each.heat === heat);
			editor.setDecorations(
				shade,
				those.map((each) => decoration(editor.document, each, shown!, changed)),
			);
		});
	}
}

function annotationsOf(shown: Shown, document: vscode.TextDocument): Annotation[] {
	const file = fileOf(shown.lines, document.uri.fsPath);
	return file ? annotate(file, shown.lines.duration_us).filter((each) => each.line <= document.lineCount) : [];
}

function decoration(document: vscode.TextDocument, annotation: Annotation, shown: Shown, changed: boolean): vscode.DecorationOptions {
	const { cost, line, text } = annotation;
	const hover = new vscode.MarkdownString();
	// Only this command may run; names from the trace are text.
	hover.isTrusted = { enabledCommands: ["opstrobe.showLine"] };
	hover.appendText(cost.function ?? `line ${line}`).appendMarkdown("\n\n| | |\n|:--|--:|\n");
	for (const [title, value] of factsOf(cost, shown.lines.duration_us)) hover.appendMarkdown(`| ${title} | ${value} |\n`);
	if (changed) hover.appendMarkdown("\nThe file was changed after the recording: lines may have moved.\n");
	if (cost.row !== null) {
		const words = encodeURIComponent(JSON.stringify([shown.trace.toString(), cost.row]));
		hover.appendMarkdown(`\n[Show in the timeline](command:opstrobe.showLine?${words})`);
	}
	return { range: document.lineAt(line - 1).range, hoverMessage: hover, renderOptions: { after: { contentText: text } } };
}

async function isNewer(source: vscode.Uri, trace: vscode.Uri): Promise<boolean> {
	try {
		return (await stat(source.fsPath)).mtimeMs > (await stat(trace.fsPath)).mtimeMs;
	} catch {
		return false;
	}
}
