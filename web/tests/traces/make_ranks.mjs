// SPDX-License-Identifier: Apache-2.0
// Traces of four ranks of one made-up job, for pictures: rank 2 loads its data slowly, and the others wait for it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const STEPS = 3;
const LATE = 2;

function rank(number) {
	const events = [];
	let id = 1;
	const launch = (host, kernel, stream, at, start, duration) => {
		const device = { device: number, stream, correlation: id, "External id": id };
		events.push({ ph: "X", pid: 9, tid: 1, ts: at, dur: 30, cat: host.startsWith("nccl") ? "user_annotation" : "cpu_op", name: host, args: { "External id": id, "Input Dims": [[4096, 1024]], "Input type": ["float"] } });
		events.push({ ph: "X", pid: 9, tid: 1, ts: at + 10, dur: 8, cat: "cuda_runtime", name: "cudaLaunchKernel", args: { "External id": id, correlation: id } });
		events.push({ ph: "X", pid: number, tid: stream, ts: start, dur: duration, cat: "kernel", name: kernel, args: device });
		id++;
	};
	for (let step = 0; step < STEPS; step++) {
		const from = 4000 * step;
		const load = 300 + (number === LATE ? 500 + 200 * step : 40 * number);
		events.push({ ph: "X", pid: 9, tid: 1, ts: from, dur: 3900, cat: "user_annotation", name: `ProfilerStep#${step}` });
		events.push({ ph: "X", pid: 9, tid: 1, ts: from + 5, dur: load, cat: "user_annotation", name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" });
		const start = from + 20 + load;
		["aten::linear", "aten::relu", "aten::linear", "aten::cross_entropy_loss"].forEach((name, i) => launch(name, `${name.slice(6)}_kernel`, 7, start + 60 * i, start + 40 + 180 * i, 160));
		["LinearBackward0", "ReluBackward0", "LinearBackward0"].forEach((name, i) => launch(`autograd::engine::evaluate_function: ${name}`, `${name}_kernel`, 7, start + 300 + 60 * i, start + 780 + 260 * i, 240));
		const last = 320 + 500 + 200 * step;
		const all = from + last + 1580;
		launch("nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 20, start + 620, start + 1320, all - start - 1320);
		launch("aten::_foreach_add_", "multi_tensor_apply_kernel", 7, start + 700, all + 20, 300);
	}
	return { baseTimeNanoseconds: 1_760_000_000_000_000_000, distributedInfo: { backend: "nccl", rank: number, world_size: 4 }, traceEvents: events };
}

export function writeRanks(folder) {
	for (let number = 0; number < 4; number++) writeFileSync(join(folder, `worker${number}.pt.trace.json`), JSON.stringify(rank(number)));
}
