/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a trace of any size, as torch.profiler would write that of a training run: steps, nested operators with shapes,
 * launches, kernels, memory records and modules.
 *
 *     cc -O2 bench/make_trace.c -o make_trace && ./make_trace 10000000 big.json
 */
#include <stdio.h>
#include <stdlib.h>

#define OPERATORS_PER_STEP 2000
#define ROWS_PER_OPERATOR 5

static const char *const names[] = {"aten::linear", "aten::addmm", "aten::relu", "aten::layer_norm", "aten::add",
                                    "aten::matmul", "aten::softmax", "aten::dropout", "aten::view", "aten::transpose"};

static void put_operator(FILE *out, unsigned long id, double ts_us)
{
	const char *name = names[id % 10];

	fprintf(out, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":40.500,\"args\":{"
	        "\"External id\":%lu,\"Record function id\":0,\"Sequence number\":%lu,\"Fwd thread id\":0,"
	        "\"Input Dims\":[[%lu,1024],[1024,1024],[]],\"Input type\":[\"float\",\"float\",\"Scalar\"],\"Ev Idx\":%lu}},\n",
	        name, ts_us, id, id, 8 + id % 50, id);
	fprintf(out, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::empty\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":3.250,"
	        "\"args\":{\"External id\":%lu,\"Record function id\":0,\"Ev Idx\":%lu}},\n", ts_us + 2, id + 1, id + 1);
	fprintf(out, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
	        "\"args\":{\"Total Reserved\":8000000,\"Total Allocated\":%lu,\"Bytes\":%d,\"Addr\":%lu,\"Device Id\":0,"
	        "\"Device Type\":1,\"Ev Idx\":%lu}},\n", ts_us + 3, 4000000 + id % 1000, id % 4 ? 4096 : -4096,
	        140000000000000 + id / 8 % 512 * 4096, id + 2);
	fprintf(out, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
	        "\"dur\":5.125,\"args\":{\"External id\":%lu,\"cbid\":211,\"correlation\":%lu}},\n", ts_us + 20, id, id);
	fprintf(out, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void kernel_%lu<float>(float const*, float*, int)\",\"pid\":0,"
	        "\"tid\":7,\"ts\":%.3f,\"dur\":30.875,\"args\":{\"External id\":%lu,\"queued\":0,\"device\":0,\"context\":1,"
	        "\"stream\":7,\"correlation\":%lu,\"registers per thread\":32,\"shared memory\":0,\"blocks per SM\":4.5,"
	        "\"warps per SM\":36,\"grid\":[%lu,1,1],\"block\":[256,1,1],\"est. achieved occupancy %%\":56}},\n",
	        id % 97, ts_us + 30, id, id, 16 + id % 64);
}

int main(int count, char **arguments)
{
	unsigned long rows = count > 2 ? strtoul(arguments[1], NULL, 10) : 0, id = 1;
	FILE *out = rows ? fopen(arguments[2], "w") : NULL;
	double ts_us = 1000;

	if (!out) {
		fputs("usage: make_trace EVENTS FILE\n", stderr);
		return 2;
	}
	fputs("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\",\"totalGlobalMem\":42285268992,"
	      "\"computeMajor\":8,\"computeMinor\":0,\"numSms\":108}],\"baseTimeNanoseconds\":1790000000000000000,"
	      "\"traceEvents\":[\n", out);
	for (unsigned long step = 0; step * OPERATORS_PER_STEP * ROWS_PER_OPERATOR < rows; step++) {
		fprintf(out, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%lu\",\"pid\":1,\"tid\":1,"
		        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"External id\":%lu}},\n", step, ts_us,
		        OPERATORS_PER_STEP * 50.0 + 20, id++);
		for (int i = 0; i < OPERATORS_PER_STEP; i++, id += 2, ts_us += 50)
			put_operator(out, id, ts_us + 10);
		ts_us += 40;
	}
	fputs("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}]}\n", out);
	return fclose(out) ? 1 : 0;
}
