/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a trace of any size, as torch.profiler would write that of a training run: steps, nested operators with shapes,
 * launches, kernels and memory records, in Kineto's layout.
 *
 *     cc -O2 bench/make_trace.c -o make_trace && ./make_trace 10000000 big.json
 *
 * Without RANK all operators take equally long. With it, times and sizes vary at random, differently in each rank.
 *
 *     ./make_trace 270000 rank3.json 3 64
 */
#include <stdio.h>
#include <stdlib.h>

#define OPERATORS_PER_STEP 2000
#define ROWS_PER_OPERATOR 5

static const char *const names[] = {"aten::linear", "aten::addmm", "aten::relu", "aten::layer_norm", "aten::add",
                                    "aten::matmul", "aten::softmax", "aten::dropout", "aten::view", "aten::transpose"};

static unsigned long long random_state; /* 0 without RANK */

static unsigned long next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state >> 33;
}

/* A time between 4/5 and 6/5 of one. */
static double vary(double us)
{
	return random_state ? us * (0.8 + (double)(next_random() % 100000) / 250000) : us;
}

/* What every event begins with, laid out as Kineto does it. */
static void put_head(FILE *out, const char *phase_and_category, const char *name, int pid, int tid)
{
	fprintf(out, "  {\n    %s, \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n    ", phase_and_category, name, pid, tid);
}

/* Returns when the next operator begins. */
static double put_operator(FILE *out, unsigned long id, double ts_us)
{
	unsigned long drawn = random_state ? next_random() : id;
	double dur_us = vary(40.5);
	char kernel[64];

	put_head(out, "\"ph\": \"X\", \"cat\": \"cpu_op\"", names[id % 10], 1, 1);
	fprintf(out, "\"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %lu,\"Record function id\": 0, "
	        "\"Concrete Inputs\": [\"\", \"\", \"1\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Strides\": "
	        "[[1024, 1], [1, 1024], []], \"Input Dims\": [[%lu, 1024], [1024, 1024], []], \"Sequence number\": %lu, "
	        "\"Fwd thread id\": 0, \"Ev Idx\": %lu\n    }\n  },\n",
	        ts_us, dur_us, id, 8 + drawn % 50, id, id);
	put_head(out, "\"ph\": \"X\", \"cat\": \"cpu_op\"", "aten::empty", 1, 1);
	fprintf(out, "\"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %lu,\"Record function id\": 0, "
	        "\"Concrete Inputs\": [\"[8, 1024]\", \"6\", \"0\", \"\", \"False\", \"\"], \"Input type\": [\"ScalarList\", "
	        "\"Scalar\", \"Scalar\", \"\", \"Scalar\", \"\"], \"Input Strides\": [[], [], [], [], [], []], "
	        "\"Input Dims\": [[], [], [], [], [], []], \"Ev Idx\": %lu\n    }\n  },\n", ts_us + 2, vary(3.25), id + 1, id + 1);
	put_head(out, "\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\"", "[memory]", 1, 1);
	fprintf(out, "\"ts\": %.3f,\n    \"args\": {\n      \"Total Reserved\": 8000000, \"Total Allocated\": %lu, \"Bytes\": %d, "
	        "\"Addr\": %lu, \"Device Id\": 0, \"Device Type\": 1, \"Ev Idx\": %lu\n    }\n  },\n",
	        ts_us + 3, 4000000 + id % 1000, id % 4 ? 4096 : -4096, 140000000000000 + id / 8 % 512 * 4096, id + 2);
	put_head(out, "\"ph\": \"X\", \"cat\": \"cuda_runtime\"", "cudaLaunchKernel", 1, 1);
	fprintf(out, "\"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %lu, \"cbid\": 211, \"correlation\": %lu"
	        "\n    }\n  },\n", ts_us + vary(20), vary(5.125), id, id);
	snprintf(kernel, sizeof(kernel), "void kernel_%lu<float>(float const*, float*, int)", id % 97);
	put_head(out, "\"ph\": \"X\", \"cat\": \"kernel\"", kernel, 0, 7);
	fprintf(out, "\"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %lu,\n      \"queued\": 0, \"device\": 0, "
	        "\"context\": 1,\n      \"stream\": 7, \"correlation\": %lu,\n      \"registers per thread\": 32,\n      "
	        "\"shared memory\": 0,\n      \"blocks per SM\": 4.5,\n      \"warps per SM\": 36,\n      \"grid\": [%lu, 1, 1],\n      "
	        "\"block\": [256, 1, 1],\n      \"est. achieved occupancy %%\": 56\n    }\n  },\n",
	        ts_us + 30, vary(30.875), id, id, 16 + drawn % 64);
	return ts_us + dur_us + 9.5;
}

int main(int count, char **arguments)
{
	unsigned long rows = count > 2 ? strtoul(arguments[1], NULL, 10) : 0, id = 1, step_id;
	FILE *out = rows ? fopen(arguments[2], "w") : NULL;
	double ts_us = 1000, step_us;

	if (!out) {
		fputs("usage: make_trace EVENTS FILE [RANK WORLD_SIZE]\n", stderr);
		return 2;
	}
	fputs("{\"schemaVersion\":1,", out);
	if (count > 4) {
		random_state = 0x9e3779b97f4a7c15 * (strtoul(arguments[3], NULL, 10) + 1);
		fprintf(out, "\"distributedInfo\":{\"rank\":%s,\"world_size\":%s},", arguments[3], arguments[4]);
	}
	fputs("\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\",\"totalGlobalMem\":42285268992,"
	      "\"computeMajor\":8,\"computeMinor\":0,\"numSms\":108}],\"baseTimeNanoseconds\":1790000000000000000,"
	      "\"traceEvents\":[\n", out);
	for (unsigned long step = 0; step * OPERATORS_PER_STEP * ROWS_PER_OPERATOR < rows; step++, ts_us += 40) {
		step_us = ts_us;
		step_id = id++;
		for (int i = 0; i < OPERATORS_PER_STEP; i++, id += 2)
			ts_us = put_operator(out, id, ts_us + 10) - 10;
		fprintf(out, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%lu\",\"pid\":1,\"tid\":1,"
		        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"External id\":%lu}},\n", step, step_us, ts_us - step_us + 20, step_id);
	}
	fputs("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}]}\n", out);
	return fclose(out) ? 1 : 0;
}
