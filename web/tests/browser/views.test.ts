// SPDX-License-Identifier: Apache-2.0
// Every view on real traces: what is on the screen is what the command prints.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AdviceReply, DiffReply, Distributed, KernelsReply, MemoryViewReply, OperatorsReply, OverviewReply, TableReply } from "../../src/data/replies";
import { kernelNames } from "../../src/format/kernel_name";
import { formatPercent } from "../../src/format/units";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { call, printed, recorded, Server, type Served, shared } from "./server";

type Views = OverviewReply & OperatorsReply & KernelsReply & MemoryViewReply;

const TRACES: [string, string][] = [
	["recorded here", recorded],
	...(shared
		? ([
				["ResNet-50 on a GPU", join(shared, "kineto-tb/samples-2021-06/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz")],
				["a small CNN with everything", join(shared, "kineto-tb/recorded/cnn-full/worker0.1795219672896905048.pt.trace.json.gz")],
				["BERT on an H100", join(shared, "hta/h100_bert_small/trace.json.gz")],
			] satisfies [string, string][])
		: []),
];

let browser: Browser;
beforeAll(async () => {
	browser = await launch();
});
afterAll(() => browser.close());

describe.each(TRACES)("%s", (_, path) => {
	let server: Server;
	let trace: Served;
	let views: Views;
	beforeAll(async () => {
		server = await Server.start(path);
		trace = server.traces[0]!;
		views = printed("views", path) as Views;
	});
	afterAll(() => server.stop());
	const open = (view: string, query = "") => Tab.open(browser, server.at(view, trace, query));

	test("overview", async () => {
		const tab = await open("overview");
		const card = tab.page.locator(".card").filter({ has: tab.page.getByRole("heading", { name: views.steps.rows.length > 1 ? "Median step" : "Step", exact: true }) }).locator(".card-figure");
		await tab.page.locator("a[data-bar]").first().waitFor();
		expectShows(await card.innerText(), views.steps.median!, "the median step");
		expect(await tab.page.locator(".card", { hasText: "Events" }).count()).toBe(0);
		expect(await tab.page.locator("tr[data-part=total] th").innerText()).toBe(views.steps.rows.length > 1 ? "Mean step" : "Step");
		const slow = tab.page.locator(".slow-steps > li");
		expect(await slow.count()).toBe(views.steps.outliers.length);
		for (const [i, outlier] of views.steps.outliers.entries()) {
			const text = await slow.nth(i).innerText();
			expect(text).toContain(`Step ${outlier.name}:`);
			for (const cause of outlier.causes) expect(text).toContain(cause.title);
			for (const event of outlier.events) expect(text).toContain(event.name);
		}
		for (const row of await tab.page.locator(".list tr[data-part]").all()) {
			const part = (await row.getAttribute("data-part")) as keyof OverviewReply["steps"]["average"];
			const [time = "", share = ""] = await row.locator("td").allInnerTexts();
			expectShows(time, views.steps.breakdown.average[part], part);
			expectShows(share, views.steps.breakdown.average_pct[part]!, part);
		}
		const bars = tab.page.locator(".chart a[data-bar]");
		expect(await bars.count()).toBe(views.steps.rows.length);
		const { phases } = views.steps;
		expect(await tab.page.getByRole("region", { name: "Phases", exact: true }).count()).toBe(phases ? 1 : 0);
		if (phases) {
			const rows = await tab.page.locator("tr[data-phase]").all();
			expect(rows.length).toBeGreaterThan(1);
			await tab.page.setViewportSize({ width: 1400, height: 900 });
			// Neither the table nor the names of the views are cut off.
			const cutOff = (selector: string) => tab.page.locator(selector).evaluate((element) => element.scrollWidth - element.clientWidth);
			expect(await cutOff("section[aria-label=Phases]")).toBeLessThanOrEqual(0);
			expect(await cutOff("nav[aria-label=Views]")).toBeLessThanOrEqual(0);
			for (const row of rows) {
				const phase = (await row.getAttribute("data-phase")) as keyof typeof phases.average_pct;
				const [time = "", share = ""] = await row.locator("td").allInnerTexts();
				expectShows(time, phases.average[phase], phase);
				expectShows(share, phases.average_pct[phase], phase);
			}
			await tab.page.getByRole("button", { name: "By phase" }).click();
			expect(await bars.first().getAttribute("aria-label")).toContain("Forward");
		}
		if (views.gpus.length > 0) {
			const { rows } = await readGrid(tab.page, "GPUs");
			expectShows(rows[0]!.kernels!, (views.gpus[0]!.utilization_ratio ?? 0) * 100, "kernels");
			expectShows(rows[0]!.occupancy!, views.gpus[0]!.est_achieved_occupancy_pct ?? 0, "occupancy");
		}
		const advice = printed("advise", path) as AdviceReply;
		if (views.gpus.length === 1) {
			// Busy and idle are all of the same time, which is that of the finding and of the list of parts.
			const busy = tab.page.locator(".card", { hasText: "GPU busy" });
			const { kernel, memcpy, memset, communication } = views.steps.breakdown.average_pct;
			expectShows(await busy.locator(".card-figure").innerText(), (kernel ?? 0) + (memcpy ?? 0) + (memset ?? 0) + (communication ?? 0), "busy");
			const [, whole, idle = ""] = /^of the (.*), idle (.* %)/.exec(await busy.locator("p.soft").innerText())!;
			expect(whole).toBe(views.steps.rows.length > 1 ? "mean step" : "step");
			expect(advice.findings.find(({ id }) => id === "device-idle")!.evidence).toContain(`idle for ${idle} of the steps`);
		}
		const [first] = advice.findings;
		if (first) {
			expect(advice.base.text).toContain("Percentages are shares of ");
			await tab.page.getByRole("region", { name: "What to change" }).getByText(advice.base.text).waitFor();
			const line = tab.page.locator(".finding-line").first();
			await line.getByRole("link", { name: first.title }).waitFor();
			const words = { about: /%$/, "at least": /% or more$/, "at most": /^up to -/ };
			if (first.predicted_gain_percent) expect((await line.locator(".gain").innerText()).replace(/\s+/g, " ")).toMatch(words[first.predicted_gain_bound]);
		}
		await tab.close();
		tab.expectQuiet();
	});

	test("advice", async () => {
		const { findings, not_explained: rest, checked } = printed("advise", path) as AdviceReply;
		const tab = await open("advice");
		await tab.page.locator(findings.length > 0 ? ".finding" : ".empty").first().waitFor();
		expect(await tab.page.locator(".finding h2").allInnerTexts()).toEqual(findings.map((finding) => finding.title));
		if (findings.length > 0) await tab.page.getByRole("button", { name: "more rules applied" }).click();
		const clean = checked.filter((id) => findings.every((finding) => finding.id !== id));
		expect(await tab.page.locator(".checked li").allInnerTexts()).toEqual(clean);
		for (const [i, finding] of findings.entries()) {
			const card = tab.page.locator(`#finding-${i}`);
			const plain = (text: string) => text.replace(/\s+/g, " ");
			const text = plain(await card.innerText());
			expect(text).toContain(plain(finding.evidence));
			expect(text).toContain(plain(finding.advice));
			if (finding.predicted_gain_percent) {
				expect(text).toContain(`save ${finding.predicted_gain_bound} ${formatPercent(finding.predicted_gain_percent)}`);
				expect(text).toContain(finding.predicted_gain_interval);
			}
		}
		const section = tab.page.getByRole("region", { name: "Not explained by a finding" });
		expect(await section.count()).toBe(rest === null ? 0 : 1);
		if (rest) {
			expect(await section.getByRole("heading").innerText()).toBe(rest.title);
			expect(await section.locator("li > p").allInnerTexts()).toEqual(rest.lines.map((line) => line.text));
			expect(await section.locator(".gain-figure").allInnerTexts()).toEqual(rest.lines.map((line) => formatPercent(line.percent)));
		}
		await tab.close();
		tab.expectQuiet();
	});

	test("operators", async () => {
		const tab = await open("operators");
		const { rows } = await readGrid(tab.page, "Operators");
		expect(rows).toHaveLength(views.operators.rows.length);
		const by = new Map(views.operators.rows.map((row) => [row.name, row]));
		for (const row of rows) {
			const wanted = by.get(row.name!)!;
			expectShows(row.calls!, wanted.calls, `calls of ${row.name}`);
			for (const figure of ["host_self", "host_total", "device_self", "device_total"] as const) {
				if (row[figure] !== undefined) expectShows(row[figure], wanted[figure], `${figure} of ${row.name}`);
			}
		}
		expect("device_self" in rows[0]!).toBe(views.flags.has_kernel || views.flags.has_memcpy_or_memset);
		await tab.page.getByRole("button", { name: "By name and input shapes" }).click();
		const shapes = await readGrid(tab.page, "Operators by input shapes");
		expect(shapes.rows).toHaveLength(views.operators_by_input_shape.distinct);
		await tab.close();
		tab.expectQuiet();
	});

	test("kernels", async () => {
		const tab = await open("kernels");
		if (!views.kernels) {
			await tab.page.getByText("No GPU activity.").waitFor();
		} else {
			const { rows } = await readGrid(tab.page, "Kernels");
			const names = kernelNames(views.kernels.rows);
			const by = new Map(views.kernels.rows.map((row) => [names.get(row.name), row]));
			expect(rows).toHaveLength(by.size);
			for (const row of rows) {
				const wanted = by.get(row.name)!;
				for (const figure of ["calls", "total", "mean", "max"] as const) {
					expectShows(row[figure]!, wanted[figure], `${figure} of ${row.name}`);
				}
			}
			await tab.page.getByRole("button", { name: "By operator and launch" }).click();
			expect((await readGrid(tab.page, "Kernels by operator")).rows).toHaveLength(views.kernels_by_op!.distinct);
			await tab.page.getByRole("button", { name: "By category" }).click();
			const categories = await readGrid(tab.page, "Device work by category");
			const { table } = printed("kernels", "--by-category", path) as TableReply;
			expect(categories.rows.map((row) => row.category!.replace(" ", "_"))).toEqual(table.rows.map((row) => row[0]));
			for (const [i, row] of categories.rows.entries()) expectShows(row.total!, table.rows[i]![2] as number, row.category!);
		}
		await tab.close();
		tab.expectQuiet();
	});

	test("memory", async () => {
		const { table } = printed("memory", path) as TableReply;
		const tab = await open("memory", "list=operators");
		if (table.rows.length === 0) {
			await tab.page.locator(".empty").first().waitFor();
		} else {
			const device = views.memory!.stats.rows;
			const chosen = Object.keys(device).find((each) => each !== "CPU") ?? "CPU";
			const { rows } = await readGrid(tab.page, "Memory by operator");
			const by = new Map(device[chosen]!.map((row) => [row.name, row]));
			expect(rows).toHaveLength(by.size);
			for (const row of rows) {
				expectShows(row.self_increase!, by.get(row.name!)!.self_increase, `increase of ${row.name}`);
			}
			const peaks = table.rows.filter((row) => row[1] === "all");
			const peak = Number((peaks.find((row) => row[0] !== "cpu") ?? peaks[0]!)[4]);
			const title = await tab.page.locator("section[aria-label='Peak'] h2").innerText();
			expectShows(/Peak: (.*?[a-zA-Z]+)\b/.exec(title)?.[1] ?? "", peak, "the peak");
		}
		await tab.close();
		tab.expectQuiet();
	});

	test("modules", async () => {
		const { table } = printed("modules", path) as TableReply;
		const tab = await open("modules");
		if (table.rows.length === 0) {
			await tab.page.getByText("No module calls.").waitFor();
		} else {
			const { rows } = await readGrid(tab.page, "Modules");
			const host = table.columns.indexOf("host_us");
			const shallow = table.rows.filter((row) => Number(row[table.columns.indexOf("depth")]) <= 3);
			expect(rows).toHaveLength(shallow.length);
			rows.forEach((row, i) => expectShows(row.forward!, Number(shallow[i]![host]), `forward of ${row.name}`));
			await tab.page.getByRole("tree", { name: "Modules by cost" }).waitFor();
			const hasPaths = table.rows.some((row) => row[table.columns.indexOf("path")]);
			expect(await tab.page.getByText("This trace names modules by class and number").count()).toBe(hasPaths ? 0 : 1);
		}
		await tab.close();
		tab.expectQuiet();
	});

	test("stacks", async () => {
		const tab = await open("stacks");
		const { rows } = await readGrid(tab.page, "Functions");
		expect(rows.length).toBeGreaterThan(0);
		const { flags } = printed("views", path) as Views;
		const times = await tab.page.getByRole("group", { name: "Time" }).getByRole("button").allInnerTexts();
		expect(times, "only times that the trace has").toEqual(flags.has_kernel || flags.has_memcpy_or_memset ? ["CPU time", "Device time"] : ["CPU time"]);
		const name = rows[0]!.name!;
		const find = tab.page.getByRole("searchbox", { name: "Find in the graph" });
		await find.fill(name.slice(0, 20));
		await tab.page.locator(".flame-box.found").first().waitFor();
		await tab.page.locator(".grid .grid-body [role=row]").first().click();
		await tab.page.getByRole("button", { name: "Callers and callees" }).click();
		await tab.page.getByRole("tree", { name: "What calls it" }).waitFor();
		await tab.page.getByRole("tree", { name: "What it calls" }).waitFor();
		await tab.close();
		tab.expectQuiet();
	});

	test("analyses", async () => {
		const tab = await open("analyses", "id=key_averages");
		await tab.page.locator(".answer, .grid").first().waitFor();
		const questions = tab.page.getByRole("navigation", { name: "Analyses" }).getByRole("button");
		const { flags } = printed("views", path) as Views;
		expect(await questions.locator(".no-data").or(tab.page.locator("button.no-data")).count() > 0, "dimmed without GPU activity").toBe(!flags.has_kernel && !flags.has_memcpy_or_memset);
		const ids = (await questions.locator(".mono").allInnerTexts()).sort();
		expect(ids).toContain("cupti_counters");
		expect(ids.filter((id) => ["memory_timeline", "execution_trace", "trace_with_counters", "trace_diff.compare"].includes(id)), "about other files, or two traces").toEqual([]);
		for (const question of await questions.all()) {
			await question.click();
			await tab.page.locator("section.panel .answer, section.panel .grid, section.panel .empty, section.panel .figure-line, section.panel [role=alert]").first().waitFor();
		}
		await tab.close();
		// An analysis that this trace has nothing for is refused; the page says why.
		expect(tab.complaints.filter((each) => !each.includes("Failed to load resource"))).toEqual([]);
	});

	test("trace", async () => {
		const tab = await open("info");
		await tab.page.getByRole("heading", { name: trace.name }).waitFor();
		await tab.page.getByRole("heading", { name: "Events by kind" }).waitFor();
		const names = await tab.page.locator("main .pairs dt").filter({ visible: true }).allInnerTexts();
		expect(names.length).toBeGreaterThan(8);
		expect(names.filter((name) => /^[a-z]|_/.test(name)), "names that are those of a reply").toEqual([]);
		const shown = new Set(await tab.page.locator("main .pairs div").evaluateAll((pairs) => pairs.map((pair) => [...pair.children].map((each) => each.textContent).join(": "))));
		const facts = [...call("info", trace.path).matchAll(/^ +(\S+(?: \S+)*) {2,}(.+?)(?:, which 'opstrobe validate' lists)?$/gm)].map(([, name, fact]) => `${name}: ${fact}`);
		expect(facts.length).toBeGreaterThan(12);
		expect(facts.filter((fact) => !/^(File|Duration): /.test(fact) && !shown.has(fact)), "facts that only the command prints").toEqual([]);
		await tab.close();
		tab.expectQuiet();
	});
});

test("a program that is not there is shown by the lines that took time", async () => {
	const server = await Server.start(recorded);
	const tab = await Tab.open(browser, server.at("source", server.traces[0]!, "file=train.py&line=50"));
	const lines = tab.page.locator(".source-line");
	await lines.first().waitFor();
	expect(await tab.page.locator(".source-line.chosen .number").innerText()).toBe("50");
	await tab.close();
	await server.stop();
});

test("the parts of a diff are by name and of one step, as the command has them", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-diff-"));
	const steps = printed("views", recorded) as Views;
	const first = steps.steps.names[0]!;
	const part = join(folder, "part.pt.trace.json.gz");
	call("cut", "--steps", first, recorded, part);
	const server = await Server.start(recorded, part);
	const [base, now] = server.traces as [Served, Served];
	const tab = await Tab.open(browser, server.at("diff", now, `base=${base.id}`));
	const chart = tab.page.locator(".chart [role=listitem]");
	await chart.first().waitFor();
	const labels = await chart.evaluateAll((items) => items.map((item) => item.getAttribute("aria-label") ?? ""));
	const parts = call("diff", "--format", "csv", base.path, now.path)
		.split("\n")
		.flatMap((line) => {
			const [, name, before, after] = /^in the steps,"?(.*?)"?,([\d.]+),([\d.]+),[^,]*,[^,]*,[^,]*$/.exec(line.trim()) ?? [];
			return name === undefined ? [] : [{ name, before: Number(before), after: Number(after) }];
		});
	expect(parts.length).toBeGreaterThan(1);
	expect(labels.length, JSON.stringify({ labels, parts })).toBe(parts.length);
	for (const [i, { name, before, after }] of parts.entries()) {
		const [, title, left, right] = /^(.*): (\S+ ?\S*) → (\S+ \S+)/.exec(labels[i]!) ?? [];
		expect(title).toBe(name);
		expectShows(left!, before, `${name} before`);
		expectShows(right!, after, `${name} now`);
	}
	await tab.close();
	await server.stop();
	tab.expectQuiet();
	rmSync(folder, { recursive: true });
});

test("calls of a step that differ from step to step are not rounded to whole calls", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-calls-"));
	const write = (name: string, calls: number[]) => {
		const traceEvents = calls.flatMap((count, step) => [
			{ ph: "X", cat: "user_annotation", name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: 1000 * step, dur: 1000 },
			...Array.from({ length: count }, (_, i) => ({ ph: "X", cat: "cpu_op", name: "aten::relu", pid: 1, tid: 1, ts: 1000 * step + 100 + 200 * i, dur: 100 })),
		]);
		writeFileSync(join(folder, name), JSON.stringify({ traceEvents }));
		return join(folder, name);
	};
	const server = await Server.start(write("before.json", [1, 2]), write("now.json", [1, 1]));
	const tab = await Tab.open(browser, server.at("diff", server.trace("now"), `base=${server.trace("before").id}`));
	const { rows } = await readGrid(tab.page, "Operators of both traces");
	expect(rows.map((row) => [row.calls_before, row.calls_now])).toEqual([["1.5", "1"]]);
	await tab.close();
	await server.stop();
	tab.expectQuiet();
	rmSync(folder, { recursive: true });
});

describe.runIf(shared)("two traces", () => {
	test("the diff has the figures of the command", async () => {
		const folder = join(shared!, "kineto-tb/samples-2021-06");
		const server = await Server.start(folder);
		const [base, now] = [server.trace("num_workers_0/worker0.1623143566756"), server.trace("num_workers_4")];
		const wanted = printed("diff", base.path, now.path) as DiffReply;
		const tab = await Tab.open(browser, server.at("diff", now, `base=${base.id}&time=host_total`));
		await tab.page.locator(".card-figure").nth(2).waitFor();
		const figures = await tab.page.locator(".card-figure").allInnerTexts();
		expectShows(figures[0]!, wanted.steps.left.median, "the step before");
		expectShows(figures[1]!, wanted.steps.right.median, "the step now");
		expectShows(figures[2]!, wanted.steps.change_ratio * 100, "the change");
		const { rows } = await readGrid(tab.page, "Operators of both traces");
		expect(rows).toHaveLength(wanted.operators.length);
		for (const row of rows) {
			const { left, right } = wanted.operators.find((each) => each.name === row.name)!;
			expectShows(row.before!, left?.per_step.host_total ?? 0, `${row.name} before`);
			expectShows(row.now!, right?.per_step.host_total ?? 0, `${row.name} now`);
		}
		const kernels = await readGrid(tab.page, "Kernels of both traces");
		expect(kernels.rows).toHaveLength(wanted.kernels.length);
		for (const row of kernels.rows) {
			const { left, right } = wanted.kernels.find((each) => each.name === row.name)!;
			expectShows(row.before!, left?.per_step.total ?? 0, `${row.name} before`);
			expectShows(row.now!, right?.per_step.total ?? 0, `${row.name} now`);
		}
		await tab.close();
		await server.stop();
		tab.expectQuiet();
	});

	test("a diff goes from the trace named first to the other, and either can be changed", async () => {
		const folder = join(shared!, "kineto-tb/samples-2021-06");
		const last = join(folder, "resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz");
		const server = await Server.start(last, join(folder, "resnet50_num_workers_0"));
		const [first, second, third] = server.traces as [Served, Served, Served];
		expect(first.path).toBe(last);
		const tab = await Tab.open(browser, server.at("diff", first));
		const { page } = tab;
		const from = page.getByRole("combobox", { name: "Base" });
		const to = page.getByRole("combobox", { name: "New", exact: true });
		const expectSides = async (base: Served, now: Served) => {
			const { steps } = printed("diff", base.path, now.path) as DiffReply;
			const change = page.locator(".card", { hasText: "Change" }).locator(".card-figure");
			await page.waitForFunction((ids) => [...document.querySelectorAll<HTMLSelectElement>(".tools select")].map((each) => each.value).join().startsWith(ids), `${base.id},${now.id}`);
			await change.waitFor();
			expectShows(await change.innerText(), steps.change_ratio * 100, "the change");
		};
		await expectSides(first, second);
		await to.selectOption(third.id);
		await expectSides(first, third);
		await page.getByRole("button", { name: "Swap" }).click();
		await expectSides(third, first);
		await from.selectOption(second.id);
		await expectSides(second, first);
		await page.reload();
		await expectSides(second, first);
		await page.goto(server.at("diff", third));
		await expectSides(first, third);
		await tab.close();
		await server.stop();
		tab.expectQuiet();
	});

	test("the ranks of a run are set side by side", async () => {
		const folder = join(shared!, "kineto-tb/recorded/ddp");
		const server = await Server.start(folder);
		const wanted = (printed("views", folder) as { distributed: Distributed }).distributed;
		const tab = await Tab.open(browser, server.at("distributed", server.traces[0]!));
		const { rows } = await readGrid(tab.page, "Collective operations");
		expect(rows).toHaveLength(wanted.workers.reduce((sum, worker) => sum + wanted.ops[worker]!.length, 0));
		for (const row of rows) {
			const operation = wanted.ops[wanted.workers.find((worker) => row.worker!.includes(worker))!]!.find((each) => each.name === row.name)!;
			expectShows(row.total_latency!, operation.total_latency, "time");
			expectShows(row.data_transfer!, operation.data_transfer, "transfer");
			if (operation.total_bytes === null) expect(row.total_bytes).toBe("-");
			else expectShows(row.total_bytes!, operation.total_bytes, "size");
		}
		expect(await tab.page.locator("a[data-bar]").count()).toBe(2 * wanted.workers.length);
		const last = server.traces.at(-1)!;
		const worker = wanted.workers.at(-1)!;
		await tab.page.getByRole("searchbox", { name: "Filter the rows" }).fill(worker);
		const links = tab.page.getByRole("link", { name: "Show in the timeline" });
		await expect.poll(() => links.count()).toBe(wanted.ops[worker]!.length);
		await links.first().click();
		await tab.page.waitForFunction((id) => location.hash.startsWith(`#/timeline/${id}`), last.id);
		await tab.close();
		await server.stop();
		tab.expectQuiet();
	});
});
