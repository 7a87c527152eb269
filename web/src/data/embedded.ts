// SPDX-License-Identifier: Apache-2.0
// The source of a one-file report. Each reply of the server is an element of the page:
//   <script type="application/json" data-reply="traces/1/info">{…}</script>
//   <script type="application/octet-stream" data-reply="traces/1/timeline/tiles?…">base64</script>
// with the path as address() writes it. They are parsed when they are asked for.
import { address, type DataSource, type Query, SourceError } from "./source";

export class EmbeddedSource implements DataSource {
	readonly kind = "embedded";
	private readonly replies = new Map<string, Element>();

	constructor(elements: Iterable<Element>) {
		for (const element of elements) this.replies.set(element.getAttribute("data-reply") ?? "", element);
	}

	/** The source of this page, if the page is a report. */
	static ofPage(page: Document): EmbeddedSource | undefined {
		const elements = page.querySelectorAll("script[data-reply]");
		return elements.length > 0 ? new EmbeddedSource(elements) : undefined;
	}

	/** Whether the report carries this reply. */
	has(path: string, query?: Query): boolean {
		return this.replies.has(address(path, query));
	}

	json<T>(path: string, query?: Query): Promise<T> {
		return this.text(path, query).then((text) => JSON.parse(text) as T);
	}

	binary(path: string, query?: Query): Promise<ArrayBuffer> {
		return this.text(path, query).then((text) => {
			const bytes = atob(text.trim());
			const array = new Uint8Array(bytes.length);
			for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
			return array.buffer;
		});
	}

	private text(path: string, query?: Query): Promise<string> {
		const element = this.replies.get(address(path, query));
		if (!element) {
			return Promise.reject(
				new SourceError("This is not in the report. `opstrobe serve TRACE` shows everything.", 404),
			);
		}
		return Promise.resolve(element.textContent);
	}
}
