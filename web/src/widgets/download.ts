// SPDX-License-Identifier: Apache-2.0
//
// Exports: tables as CSV, charts as SVG and PNG. All are created in the page.

export function saveBlob(blob: Blob, name: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveText(text: string, name: string, type: string): void {
	saveBlob(new Blob([text], { type: `${type};charset=utf-8` }), name);
}

/** Keeps only characters that are safe in a file name on every system. */
export function fileName(...parts: string[]): string {
	return parts.join("-").replace(/[^\w.-]+/g, "_").slice(0, 120);
}

/** Properties that an exported picture takes from the page's style sheets. */
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

/** Returns an SVG of the page as a standalone file, with the current colours and fonts. */
export function svgText(svg: SVGSVGElement): string {
	const copy = svg.cloneNode(true) as SVGSVGElement;
	const box = svg.getBoundingClientRect();
	copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
	copy.setAttribute("width", String(Math.round(box.width)));
	copy.setAttribute("height", String(Math.round(box.height)));
	if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${Math.round(box.width)} ${Math.round(box.height)}`);
	const from = svg.querySelectorAll<SVGElement>("*");
	copy.querySelectorAll<SVGElement>("*").forEach((element, i) => {
		const style = getComputedStyle(from[i]!);
		for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
		for (const name of ["class", "style", "tabindex", "role"]) element.removeAttribute(name);
	});
	const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
	ground.setAttribute("width", "100%");
	ground.setAttribute("height", "100%");
	ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface").trim());
	copy.prepend(ground);
	return new XMLSerializer().serializeToString(copy);
}

/** Draws an SVG at twice the resolution of the screen, and saves it. */
export async function saveSvgAsPng(text: string, width: number, height: number, name: string): Promise<void> {
	const image = new Image();
	const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
	try {
		image.src = url;
		await image.decode();
		const canvas = document.createElement("canvas");
		canvas.width = width * 2;
		canvas.height = height * 2;
		canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
		const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
		if (blob) saveBlob(blob, name);
	} finally {
		URL.revokeObjectURL(url);
	}
}
