// SPDX-License-Identifier: Apache-2.0
// What axe finds wrong with a page, of any impact.
import axe from "axe-core";
import type { Page } from "playwright-core";

export async function violations(page: Page): Promise<string[]> {
	await page.evaluate(axe.source); // a script element would need the page's leave
	return page.evaluate(async () => {
		const { violations: found } = await (window as unknown as { axe: typeof axe }).axe.run(document);
		return found.flatMap((each) => each.nodes.map((node) => `${each.id} (${each.impact}): ${node.html.slice(0, 400)}`));
	});
}
