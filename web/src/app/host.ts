// SPDX-License-Identifier: Apache-2.0 Communication with an editor that shows the viewer in a frame and opens source
// files itself. The viewer sends { opstrobe: "ready" }. An editor replies with { opstrobe: "host", theme }, and then
// receives the lines that are clicked: { opstrobe: "open", file, line }. The server decides who may show the frame
// (`--embed`).
import { signal } from "@preact/signals";
import { theme } from "./theme";

/** Whether there is such an editor. */
export const hosted = signal(false);

export function followHost(): void {
	const host = window.parent;
	if (host === window) return;
	window.addEventListener("message", ({ source, data }: MessageEvent<unknown>) => {
		if (source !== host || !isGreeting(data)) return;
		hosted.value = true;
		theme.value = data.theme === "light" ? "light" : "dark";
	});
	host.postMessage({ opstrobe: "ready" }, "*");
}

export function openInHost(file: string, line: number | null): void {
	window.parent.postMessage({ opstrobe: "open", file, line }, "*");
}

function isGreeting(data: unknown): data is { theme?: unknown } {
	return typeof data === "object" && data !== null && "opstrobe" in data && data.opstrobe === "host";
}
