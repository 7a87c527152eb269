// SPDX-License-Identifier: Apache-2.0
//
// Colours of boxes. The kind of an event determines the hue, and its name the shade; or the name alone determines the
// hue. Text on all of them is dark.
import { isModule } from "../format/module_name";

export type ColorMode = "kind" | "name";

export const CLASSES = [
	"operator",
	"annotation",
	"module",
	"python",
	"runtime",
	"kernel",
	"memcpy",
	"memset",
	"communication",
	"overhead",
	"other",
] as const;
export type KindClass = (typeof CLASSES)[number];

export const CLASS_TITLES: Record<KindClass, string> = {
	operator: "Operators",
	annotation: "Annotations",
	module: "Modules",
	python: "Python functions",
	runtime: "Runtime calls",
	kernel: "Kernels",
	memcpy: "Memory copies",
	memset: "Memory sets",
	communication: "Communication",
	overhead: "Overhead",
	other: "Other",
};

const OF_KIND: Record<string, KindClass> = {
	cpu_op: "operator",
	user_annotation: "annotation",
	gpu_user_annotation: "annotation",
	python_function: "python",
	cpu_instant_event: "other",
	kernel: "kernel",
	gpu_memcpy: "memcpy",
	gpu_memset: "memset",
	cuda_runtime: "runtime",
	cuda_driver: "runtime",
	cuda_sync: "runtime",
	overhead: "overhead",
};

/** Returns whether events of a kind run on a device. */
export function isDeviceKind(kind: string): boolean {
	return kind === "kernel" || kind.startsWith("gpu_");
}

const COLLECTIVE = /^(nccl|gloo|mpi|ucc):|ncclDevKernel|ncclKernel|rccl|^c10d::/;

export function classOf(kind: string, name: string): KindClass {
	const of = OF_KIND[kind] ?? "other";
	if (of === "python" && isModule(name)) return "module";
	if ((of === "kernel" || of === "operator" || of === "annotation") && COLLECTIVE.test(name)) return "communication";
	return of;
}

export interface Rgb {
	r: number;
	g: number;
	b: number;
}

/** Parses a colour in the form of the CSS variables: #rrggbb. */
export function parseColor(text: string): Rgb {
	const value = parseInt(text.replace("#", ""), 16);
	return { r: (value >> 16) & 255, g: (value >> 8) & 255, b: value & 255 };
}

/** Packs a colour into a word of ImageData on a little-endian machine. */
export function packColor({ r, g, b }: Rgb): number {
	return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}

export function mixColors(a: Rgb, b: Rgb, share: number): Rgb {
	const mix = (x: number, y: number): number => x + (y - x) * share;
	return { r: mix(a.r, b.r), g: mix(a.g, b.g), b: mix(a.b, b.b) };
}

/** Returns the contrast of two colours as defined by WCAG 2. */
export function contrast(a: Rgb, b: Rgb): number {
	const la = luminance(a);
	const lb = luminance(b);
	return (Math.max(la, lb) + 0.05) / (Math.min(la, lb) + 0.05);
}

function luminance({ r, g, b }: Rgb): number {
	const linear = (value: number): number => {
		const share = value / 255;
		return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** Returns a well-distributed hash of a text, which is the same in every trace. */
export function hashName(text: string): number {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return (hash ^ (hash >>> 15)) >>> 0;
}

const SHADES = 5;
/** The lightness of boxes coloured by name, for each theme. */
const NAME_LIGHT = { light: 0.76, dark: 0.64 };

export class Palette {
	readonly background: Rgb;
	readonly text: string;
	private readonly base: Record<KindClass, Rgb>;
	private readonly theme: "light" | "dark";

	constructor(variable: (name: string) => string, theme: "light" | "dark") {
		this.theme = theme;
		this.background = parseColor(variable("--surface"));
		this.text = variable("--on-kind");
		this.base = Object.fromEntries(
			CLASSES.map((name) => [name, parseColor(variable(`--kind-${name}`))]),
		) as Record<KindClass, Rgb>;
	}

	ofClass(of: KindClass): Rgb {
		return this.base[of];
	}

	/** Returns the colour of an event. */
	color(of: KindClass, name: string, mode: ColorMode): Rgb {
		const hash = hashName(name);
		if (mode === "name") return hsl((hash % 360) / 360, 0.52, NAME_LIGHT[this.theme]);
		// Shades vary around the colour of the class. Lighter ones are limited so that they contrast with the
		// background.
		const shade = (hash % SHADES) / (SHADES - 1);
		const white = { r: 255, g: 255, b: 255 };
		return mixColors(this.base[of], white, shade * (this.theme === "dark" ? 0.22 : 0.34));
	}

	/** The colour of a box that is busy for only a share of its length is blended with the background, but never
	 * disappears. */
	thinned(color: Rgb, busy: number): Rgb {
		return mixColors(this.background, color, 0.3 + 0.7 * Math.min(Math.max(busy, 0), 1));
	}

	/** The colour of boxes that do not match a search. */
	dimmed(color: Rgb): Rgb {
		return mixColors(this.background, color, 0.28);
	}
}

function hsl(hue: number, saturation: number, light: number): Rgb {
	const spread = saturation * Math.min(light, 1 - light);
	const channel = (n: number): number => {
		const k = (n + hue * 12) % 12;
		return 255 * (light - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
	};
	return { r: channel(0), g: channel(8), b: channel(4) };
}
