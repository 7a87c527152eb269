// SPDX-License-Identifier: Apache-2.0
// The page of a trace's editor: the viewer in a frame, and what goes to and fro between it and the extension.

/** What the page tells the extension: a line that was clicked in the viewer. */
export interface OpenSource {
	file: string;
	line: number | null;
}

/** What the extension tells the page: where in the viewer to go, "#/timeline/…". */
export interface Show {
	show: string;
}

/** Where in the viewer to go: to an event, or to a line in the view of the source. */
export type Place = { row: number } | OpenSource;

/** Who may show the viewer: the editor's own pages, on the desktop and in the browser. Without the token in the address,
 * which only this extension knows, the viewer has nothing to show. */
export function frameOrigins(inBrowser: boolean): string {
	if (!inBrowser) return "vscode-webview: vscode-file:";
	return "'self' https://*.vscode-cdn.net https://vscode.dev https://*.vscode.dev https://*.github.dev http://localhost:* http://127.0.0.1:*";
}

/** @param url the viewer as the editor's window can reach it */
export function viewerPage(url: string, nonce: string): string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src ${escapeHtml(new URL(url).origin)}; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<style nonce="${nonce}">html, body, iframe { display: block; box-sizing: border-box; width: 100%; height: 100%; margin: 0; padding: 0; border: 0; overflow: hidden }</style>
</head>
<body>
<iframe title="Opstrobe" src="${escapeHtml(url)}"></iframe>
<script nonce="${nonce}">
const editor = acquireVsCodeApi();
const frame = document.querySelector("iframe");
const theme = () => (document.body.classList.contains("vscode-light") || document.body.classList.contains("vscode-high-contrast-light") ? "light" : "dark");
const greet = () => frame.contentWindow.postMessage({ opstrobe: "host", theme: theme() }, new URL(frame.src).origin);
new MutationObserver(greet).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("message", ({ source, data }) => {
	if (source !== frame.contentWindow) {
		if (data.show) frame.src = new URL(data.show, frame.src).href;
	} else if (data.opstrobe === "ready") greet();
	else if (data.opstrobe === "open") editor.postMessage({ file: data.file, line: data.line });
});
</script>
</body>
</html>
`;
}

/** @param text what is told instead of the viewer */
export function messagePage(text: string): string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
</head>
<body><p>${escapeHtml(text)}</p></body>
</html>
`;
}

/** A place as the viewer's address has it. */
export function viewerHash(trace: string, place: Place): string {
	const query = new URLSearchParams();
	if ("row" in place) query.set("event", String(place.row));
	else {
		query.set("file", place.file);
		if (place.line !== null) query.set("line", String(place.line));
	}
	return `#/${"row" in place ? "timeline" : "source"}/${encodeURIComponent(trace)}?${query.toString()}`;
}

function escapeHtml(text: string): string {
	return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
