// SPDX-License-Identifier: Apache-2.0
//
// Light or dark theme: the system's setting until the user chooses. The colours themselves are variables in
// style/theme.css.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "opstrobe-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>(chosen() ?? (system.matches ? "dark" : "light"));

export function followTheme(): void {
	system.addEventListener("change", () => {
		if (!chosen()) theme.value = system.matches ? "dark" : "light";
	});
	effect(() => {
		document.documentElement.dataset.theme = theme.value;
	});
}

export function toggleTheme(): void {
	theme.value = theme.value === "dark" ? "light" : "dark";
	try {
		localStorage.setItem(KEY, theme.value);
	} catch {
		// A page without storage (a report from disk, a frame) does not keep the choice.
	}
}

function chosen(): Theme | undefined {
	try {
		const value = localStorage.getItem(KEY);
		return value === "dark" || value === "light" ? value : undefined;
	} catch {
		return undefined;
	}
}

/** Returns the value of a CSS variable, for drawing on a canvas. To be read again when `theme` changes. */
export function cssColor(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
