// SPDX-License-Identifier: Apache-2.0
// Findings of the advice: as a tree, and among the problems.
import * as vscode from "vscode";
import type { Finding, NotExplainedTime } from "../../../web/src/data/replies";
import { childrenOf, gainOf, placeName, problemOf, topOf, webLink, type Place } from "./findings";
import { localFile } from "./sources";
import type { Session, Shown } from "./session";

type Node = Finding | NotExplainedTime | Place;

/** The tree: findings, each with its places as children, and the time that no finding explains, with its lines. */
export class FindingTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
	private readonly changes = new vscode.EventEmitter<undefined>();
	readonly onDidChangeTreeData = this.changes.event;
	private readonly watch: vscode.Disposable;

	constructor(private readonly session: Session) {
		this.watch = session.onDidChange(() => this.changes.fire(undefined));
	}

	dispose(): void {
		this.watch.dispose();
		this.changes.dispose();
	}

	getChildren(node?: Node): Node[] {
		if (!node) return this.session.shown ? topOf(this.session.shown.advice) : [];
		return childrenOf(node);
	}

	getTreeItem(node: Node): vscode.TreeItem {
		if ("place" in node) return this.placeItem(node);
		return "lines" in node ? restItem(node) : findingItem(node);
	}

	private placeItem({ place, text }: Place): vscode.TreeItem {
		const item = new vscode.TreeItem(placeName(place));
		if (text !== undefined) item.description = item.tooltip = text;
		const trace = this.session.shown?.trace.toString();
		if (place.row !== null) item.contextValue = "event";
		if (place.file !== null) item.command = { command: "opstrobe.openSource", title: "Open the line", arguments: [place.file, place.line, trace] };
		else if (place.row !== null) item.command = { command: "opstrobe.showLine", title: "Show in the timeline", arguments: [trace, place.row] };
		return item;
	}
}

function findingItem(finding: Finding): vscode.TreeItem {
	const item = new vscode.TreeItem(finding.title, vscode.TreeItemCollapsibleState.Expanded);
	item.description = gainOf(finding);
	item.tooltip = `${finding.evidence}\n\n${finding.explanation}\n\n${finding.advice}`;
	item.iconPath = new vscode.ThemeIcon(finding.severity === "high" ? "flame" : finding.severity === "medium" ? "warning" : "info");
	return item;
}

function restItem(rest: NotExplainedTime): vscode.TreeItem {
	const item = new vscode.TreeItem(rest.title, vscode.TreeItemCollapsibleState.Expanded);
	if (rest.hint !== null) item.tooltip = rest.hint;
	item.iconPath = new vscode.ThemeIcon("question");
	return item;
}

/** Returns the row of a node of the tree. */
export function rowOf(node: Node): number | null {
	return (("place" in node ? node : childrenOf(node)[0])?.place.row) ?? null;
}

/** Keeps the list of problems in sync with the session's trace. */
export function followProblems(session: Session): vscode.Disposable {
	const problems = vscode.languages.createDiagnosticCollection("opstrobe");
	const watch = session.onDidChange(async () => {
		const shown = session.shown;
		const found = shown ? await problemsOf(shown) : [];
		if (session.shown !== shown) return;
		problems.clear();
		problems.set(found);
	});
	return vscode.Disposable.from(problems, watch);
}

async function problemsOf(shown: Shown): Promise<[vscode.Uri, vscode.Diagnostic[]][]> {
	const problems = new Map<string, [vscode.Uri, vscode.Diagnostic[]]>();
	for (const finding of shown.advice.findings) {
		const first = finding.where.find((place) => place.file !== null);
		const file = first?.file ? await localFile(first.file, shown.trace) : undefined;
		if (!file) continue; // it is only shown in the tree
		const entry = problems.get(file.toString()) ?? [file, []];
		entry[1].push(problem(finding, (first?.line ?? 1) - 1));
		problems.set(file.toString(), entry);
	}
	return [...problems.values()];
}

function problem(finding: Finding, line: number): vscode.Diagnostic {
	const range = new vscode.Range(Math.max(0, line), 0, Math.max(0, line), Number.MAX_SAFE_INTEGER);
	const severity = finding.severity === "high" ? vscode.DiagnosticSeverity.Warning : vscode.DiagnosticSeverity.Information;
	const diagnostic = new vscode.Diagnostic(range, problemOf(finding), severity);
	const link = webLink(finding);
	diagnostic.source = "opstrobe";
	diagnostic.code = link === undefined ? finding.id : { value: finding.id, target: vscode.Uri.parse(link) };
	return diagnostic;
}
