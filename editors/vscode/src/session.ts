// SPDX-License-Identifier: Apache-2.0
//
// The trace whose lines and findings the window shows: the one that was opened last.
import * as vscode from "vscode";
import type { AdviceReply, LinesReply } from "../../../web/src/data/replies";
import { printed } from "./command";
import { commandFor } from "./settings";

export interface Shown {
	trace: vscode.Uri;
	lines: LinesReply;
	advice: AdviceReply;
}

export class Session implements vscode.Disposable {
	private readonly changes = new vscode.EventEmitter<undefined>();
	private loading: vscode.Uri | undefined;
	/** Fires when the trace changes or is closed. */
	readonly onDidChange = this.changes.event;
	shown: Shown | undefined;

	/** Rejects if the trace cannot be read; the window then keeps its contents. A later call supersedes this one. */
	async show(trace: vscode.Uri): Promise<void> {
		this.loading = trace;
		const command = commandFor(trace);
		const options = { location: vscode.ProgressLocation.Window, title: "Opstrobe: reading the lines of the trace" };
		const [lines, advice] = await vscode.window.withProgress(options, () =>
			Promise.all([
				printed<LinesReply>(command, "lines", trace.fsPath),
				printed<AdviceReply>(command, "advise", trace.fsPath),
			]),
		);
		if (this.loading !== trace) return;
		this.shown = { trace, lines, advice };
		this.changes.fire(undefined);
	}

	hide(): void {
		this.loading = undefined;
		this.shown = undefined;
		this.changes.fire(undefined);
	}

	dispose(): void {
		this.changes.dispose();
	}
}
