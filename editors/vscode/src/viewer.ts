// SPDX-License-Identifier: Apache-2.0
//
// The editor of traces: the viewer of an `opstrobe serve` process that runs as long as the editor is open.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { frameOrigins, messagePage, type OpenSource, type Place, type Show, viewerHash, viewerPage } from "./page";
import { Server } from "./server";
import type { Session } from "./session";
import { commandFor, report } from "./settings";
import { openSource } from "./sources";

export const VIEW_TYPE = "opstrobe.trace";

class TraceDocument implements vscode.CustomDocument {
	constructor(readonly uri: vscode.Uri) {}
	dispose(): void {
		// The server ends with the panel.
	}
}

interface Open {
	panel: vscode.WebviewPanel;
	traceId: string;
}

export class TraceEditors implements vscode.CustomReadonlyEditorProvider<TraceDocument> {
	private readonly open = new Map<string, Open>();
	private readonly wanted = new Map<string, Place>(); // places to show once the viewer is ready

	constructor(private readonly session: Session) {}

	openCustomDocument(uri: vscode.Uri): TraceDocument {
		return new TraceDocument(uri);
	}

	async resolveCustomEditor({ uri }: TraceDocument, panel: vscode.WebviewPanel): Promise<void> {
		panel.webview.options = { enableScripts: true };
		panel.webview.html = messagePage("Reading the trace …");
		try {
			await this.fill(uri, panel);
		} catch (error) {
			panel.webview.html = messagePage(error instanceof Error ? error.message : String(error));
			await report(error);
			return;
		}
		await this.session.show(uri).catch(report);
	}

	/** Shows a place in the viewer of a trace, and opens the trace if it is not open. */
	async show(trace: vscode.Uri, place: Place): Promise<void> {
		const open = this.open.get(trace.toString());
		if (!open) {
			this.wanted.set(trace.toString(), place);
			await vscode.commands.executeCommand("vscode.openWith", trace, VIEW_TYPE, vscode.ViewColumn.Beside);
			return;
		}
		open.panel.reveal();
		await open.panel.webview.postMessage({ show: viewerHash(open.traceId, place) } satisfies Show);
	}

	private async fill(uri: vscode.Uri, panel: vscode.WebviewPanel): Promise<void> {
		const key = uri.toString();
		const server = Server.start(commandFor(uri), uri.fsPath, frameOrigins(vscode.env.uiKind === vscode.UIKind.Web));
		panel.onDidDispose(() => {
			this.open.delete(key);
			server.then((each) => each.stop()).catch(() => undefined); // reported below
		});
		panel.webview.onDidReceiveMessage((message: OpenSource) => openSource(message.file, message.line, uri).catch(report));
		panel.onDidChangeViewState(() => {
			if (panel.active && this.session.shown?.trace.toString() !== key) this.session.show(uri).catch(report);
		});
		const { origin, path } = await server;
		const traceId = await (await server).traceId();
		const outside = await vscode.env.asExternalUri(vscode.Uri.parse(`${origin}/`)); // some implementations drop the path
		const url = new URL(path, outside.toString(true).replace(/\/?$/, "/"));
		const place = this.wanted.get(key);
		this.wanted.delete(key);
		url.hash = place ? viewerHash(traceId, place) : "";
		panel.webview.html = viewerPage(url.href, randomBytes(16).toString("hex"));
		this.open.set(key, { panel, traceId });
	}
}
