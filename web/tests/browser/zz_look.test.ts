import { test } from "vitest";
import { launch, Tab } from "./browser";
import { Server } from "./server";
test("look", async () => {
	const files = (process.env.LOOK ?? "").split(",");
	const pages = (process.env.PAGES ?? "modules").split(",");
	const browser = await launch();
	const server = await Server.start(...files);
	for (const [i, trace] of server.traces.entries()) for (const page of pages) {
		const [view = "", query = ""] = page.split("?");
		const tab = await Tab.open(browser, server.at(view, trace, query));
		await tab.page.waitForTimeout(Number(process.env.WAIT ?? 1500));
		await tab.shot(`look-${i}-${view}`);
		await tab.close();
		if (tab.complaints.length) console.log(page, trace.name, tab.complaints);
	}
	await server.stop();
	await browser.close();
}, 300000);
