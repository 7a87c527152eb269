// SPDX-License-Identifier: Apache-2.0
import { address, type DataSource, isAbort, type Query, SourceError } from "./source";

/** The server of this page. A cookie authenticates requests; where there is none, as in a frame of another page, the
 * token in the page's address does. */
export class HttpSource implements DataSource {
	readonly kind = "http";
	private readonly base: string;
	private readonly headers: Record<string, string>;

	constructor(base = "api/v1/", token = new URLSearchParams(location.search).get("token")) {
		this.base = base;
		this.headers = token ? { Authorization: `Bearer ${token}` } : {};
	}

	has(): boolean {
		return true;
	}

	async json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
		const reply = await this.get(path, query, signal);
		return (await reply.json()) as T;
	}

	async binary(path: string, query?: Query, signal?: AbortSignal): Promise<ArrayBuffer> {
		const reply = await this.get(path, query, signal);
		return reply.arrayBuffer();
	}

	private async get(path: string, query: Query | undefined, signal: AbortSignal | undefined): Promise<Response> {
		let reply: Response;
		try {
			reply = await fetch(this.base + address(path, query), {
				credentials: "same-origin",
				headers: this.headers,
				signal: signal ?? null,
			});
		} catch (error) {
			if (isAbort(error)) throw error;
			throw new SourceError("The server does not answer. Is `opstrobe serve` still running?", 0);
		}
		if (!reply.ok) throw new SourceError(await reason(reply), reply.status);
		return reply;
	}
}

async function reason(reply: Response): Promise<string> {
	const text = await reply.text();
	try {
		const body = JSON.parse(text) as { error?: { message?: unknown } };
		if (typeof body.error?.message === "string") return body.error.message;
	} catch {
		// The reply is not JSON, so its text is the reason.
	}
	return text.slice(0, 300) || `The server answers ${reply.status}`;
}
