/* SPDX-License-Identifier: Apache-2.0
 *
 * A small file with one of everything, in Kineto's format.
 */
#ifndef OPS_TEST_SAMPLE_H
#define OPS_TEST_SAMPLE_H

/* The rows, by start (µs from the base): 0 the session, 1 step, 2 op, 3 launch, 4 kernel, 5 backward, 6 driver call,
 * 7 python, 8 begun and ended, 9 pair, 10 instant, 11 mark, 12 other. */
static const char sample[] =
	"{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\"}],\"record_shapes\":1,\n"
	"\"host_name\":\"h\\u00f6st\",\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":1000000000000,\"traceEvents\":[\n"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":0.000,\"pid\":7,\"tid\":0,\"args\":{\"name\":\"python\"}},\n"
	"{\"ph\":\"M\",\"name\":\"process_labels\",\"ts\":0.000,\"pid\":0,\"tid\":0,\"args\":{\"labels\":\"GPU 0\"}},\n"
	"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":0.0,\"pid\":0,\"tid\":0,\"args\":{\"sort_index\":5000000}},\n"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0.000,\"pid\":7,\"tid\":7,\"args\":{\"name\":\"thread 7 (main)\"}},\n"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":7,\"tid\":7,\"ts\":1.000,\"dur\":98.500,"
	"\"args\":{\"External id\":1,\"Record function id\":0,\"Ev Idx\":0}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":7,\"ts\":2.001,\"dur\":10.002,\"args\":{"
	"\"External id\":2,\"Sequence number\":5,\"Fwd thread id\":0,\"Record function id\":0,"
	"\"Concrete Inputs\":[\"\",\"0.5\"],\"Input type\":[\"float\",\"Scalar\"],\"Input Strides\":[[4,1],[]],"
	"\"Input Dims\":[[4,4],[]],\"Module Hierarchy\":\"A\",\"Call stack\":\"a.py(1): f;b.py(2): g;\",\"Ev Idx\":1}},\n"
	"{\"ph\":\"s\",\"id\":1,\"pid\":7,\"tid\":7,\"ts\":2.001,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"},\n"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":\"7\",\"ts\":3,\"dur\":2,\"args\":{"
	"\"cbid\":211,\"correlation\":99,\"External id\":2}},\n"
	"{\"ph\":\"s\",\"id\":99,\"pid\":7,\"tid\":7,\"ts\":3,\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"sgemm<\\\"a\\\\b\\\">\",\"pid\":0,\"tid\":7,\"ts\":8.25,\"dur\":1.5,\"args\":{"
	"\"External id\":2,\"device\":0,\"stream\":7,\"correlation\":99,\"grid\":[1, 2, 3],\"blocks per SM\":0.25}},\n"
	"{\"ph\":\"f\",\"bp\":\"e\",\"id\":99,\"pid\":0,\"tid\":7,\"ts\":8.25,\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"MmBackward0\",\"pid\":7,\"tid\":8,\"ts\":20.000,\"dur\":5.000,\"args\":{"
	"\"External id\":3,\"Sequence number\":5,\"Fwd thread id\":1,\"Ev Idx\":2}},\n"
	"{\"ph\":\"f\",\"bp\":\"e\",\"id\":1,\"pid\":7,\"tid\":8,\"ts\":20.000,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"},\n"
	"{\"ph\":\"X\",\"cat\":\"xpu_driver\",\"name\":\"zeLaunch\",\"pid\":7,\"tid\":7,\"ts\":25,\"dur\":1,\"args\":{\"cbid\":1}},\n"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"nn.Module: A_0\",\"pid\":7,\"tid\":7,\"ts\":30,\"dur\":3,\"args\":{"
	"\"Python parent id\":null,\"Python id\":4,\"Python module id\":0}},\n"
	"{\"ph\":\"B\",\"cat\":\"user_annotation\",\"name\":\"begun\",\"pid\":7,\"tid\":7,\"ts\":40},\n"
	"{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":45},\n"
	"{\"ph\":\"b\",\"cat\":\"user_annotation\",\"name\":\"pair\",\"id\":\"0x1\",\"pid\":7,\"tid\":7,\"ts\":50},\n"
	"{\"ph\":\"e\",\"cat\":\"user_annotation\",\"name\":\"pair\",\"id\":\"0x1\",\"pid\":7,\"tid\":7,\"ts\":55},\n"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,\"tid\":7,\"ts\":2.5,\"args\":{"
	"\"Total Reserved\":0,\"Total Allocated\":64,\"Bytes\":64,\"Device Id\":-1,\"Device Type\":0,\"Addr\":4096,"
	"\"Call stack\":\"a.py(1): f;b.py(2): g;\"}},\n"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"note\",\"pid\":7,\"tid\":7,\"ts\":60},\n"
	"{\"ph\":\"C\",\"name\":\"Power (W)\",\"pid\":\"GPU 0 Counters\",\"ts\":61,\"args\":{\"\":12.5}},\n"
	"{\"ph\":\"C\",\"name\":\"loss\",\"pid\":7,\"tid\":7,\"ts\":62,\"args\":{\"value\":-1e-3,\"scaled\":4}},\n"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","
	"\"ts\":0,\"dur\":100,\"args\":{\"Op count\":0}},\n"
	"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":90},\n"
	"{\"ph\":\"X\",\"cat\":\"cuda_profiler_range\",\"name\":\"range\",\"pid\":0,\"tid\":0,\"ts\":95,\"dur\":1,\"args\":{\"n\":{\"a\":[1]}}}\n"
	"],\"traceName\":\"x.json\",\"distributedInfo\":{\"rank\":0}}\n";

#endif
