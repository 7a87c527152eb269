// SPDX-License-Identifier: Apache-2.0
// The program that shows the viewer in a frame of its own, where it is one that opens source files itself: an editor.
// The viewer says { opstrobe: "ready" }; an editor answers { opstrobe: "host", theme }, and from then on is sent the lines
// that are clicked: { opstrobe: "open", file, line }. The server says whose frame it may be (`--embed`).
import { signal } from "@preact/signals";
import { theme } from "./theme";

/** Whether there is one. */
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
