// SPDX-License-Identifier: Apache-2.0
//
// The page of a trace's editor: the viewer in a frame, and the messages between it and the extension.

/** Message from the page to the extension: a line was clicked in the viewer. */
export interface OpenSource {
	file: string;
	line: number | null;
}

/** Message from the extension to the page: the place to show in the viewer, "#/timeline/…". */
export interface Show {
	show: string;
}

/** A place to show in the viewer: an event, or a line in the source view. */
export type Place = { row: number } | OpenSource;

/** Returns the origins that may show the viewer: the editor's own pages, on the desktop and in the browser. Without the
 * token in the address, which only this extension knows, the viewer shows nothing. */
export function frameOrigins(inBrowser: boolean): string {
	if (!inBrowser) return "vscode-webview: vscode-file:";
	return "'self' https://*.vscode-cdn.net https://vscode.dev https://*.vscode.dev https://*.github.dev http://localhost:* http://127.0.0.1:*";
}

/** @param url the address of the viewer from the editor's window */
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

/** @param text shown instead of the viewer */
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

/** Returns the viewer's address of a place. */
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
