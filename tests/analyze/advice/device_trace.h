/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of a program that uses an accelerator, in Kineto's format: operators on thread 1, their launching calls, kernels and
 * copies on stream 7. Times are microseconds.
 */
#ifndef TEST_DEVICE_TRACE_H
#define TEST_DEVICE_TRACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/read.h>

#include "base/buffer.h"

struct device_trace {
	struct ops_buffer text;
	int correlation;
	double device_us; /* when the stream is free */
};

static inline void device_trace_open(struct device_trace *trace)
{
	*trace = (struct device_trace){.correlation = 1};
	ops_buffer_append_text(&trace->text,
	                       "{\"deviceProperties\": [{\"id\": 0, \"name\": \"A100\", \"totalGlobalMem\": 42505273344, "
	                       "\"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}], \"traceEvents\": [\n"
	                       "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
}

static inline void device_trace_add(struct device_trace *trace, const char *category, const char *name, int pid, int tid,
                                    double us, double duration_us, const char *args)
{
	ops_buffer_printf(&trace->text,
	                  ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, "
	                  "\"dur\": %.3f, \"args\": {%s}}", category, name, pid, tid, us, duration_us, args);
}

static inline void device_trace_host(struct device_trace *trace, const char *category, const char *name, double us,
                                     double duration_us)
{
	device_trace_add(trace, category, name, 1, 1, us, duration_us, "");
}

/* Queues work: an operator of 10 us around the call, and the work as soon as the stream is free, at least 2 us after the call.
 * Returns when the device has finished it. */
static inline double device_trace_work(struct device_trace *trace, const char *operator_name, const char *operator_args,
                                       const char *category, const char *work, const char *work_args, double us,
                                       double duration_us)
{
	char args[512];
	bool copy = strcmp(category, "gpu_memcpy") == 0;
	double start_us = trace->device_us > us + 8 ? trace->device_us : us + 8;

	device_trace_add(trace, "cpu_op", operator_name, 1, 1, us, 10, operator_args);
	snprintf(args, sizeof(args), "\"correlation\": %d", trace->correlation);
	device_trace_add(trace, "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", 1, 1, us + 3, 5, args);
	snprintf(args, sizeof(args), "\"correlation\": %d, \"device\": 0, \"stream\": 7%s%s", trace->correlation,
	         *work_args ? ", " : "", work_args);
	device_trace_add(trace, category, work, 0, 7, start_us, duration_us, args);
	trace->correlation++;
	trace->device_us = start_us + duration_us;
	return trace->device_us;
}

static inline void device_trace_step(struct device_trace *trace, int number, double us, double duration_us)
{
	char name[64];

	snprintf(name, sizeof(name), "ProfilerStep#%d", number);
	device_trace_host(trace, "user_annotation", name, us, duration_us);
}

static inline struct ops_trace *device_trace_read(struct device_trace *trace)
{
	struct ops_trace *read = NULL;
	struct ops_error error;

	ops_buffer_append_text(&trace->text, "\n]}");
	assert_int_equal(ops_trace_read_memory(trace->text.bytes, trace->text.size, NULL, &read, &error), OPS_OK);
	ops_buffer_release(&trace->text);
	return read;
}

/* Returns advice; ends the trace. */
__attribute__((noinline, unused)) static char *device_trace_advise_as(struct device_trace *trace, enum ops_format format)
{
	struct ops_trace *read = device_trace_read(trace);
	struct ops_rank worker = {.trace = read, .name = "w"};
	char *text = NULL;
	size_t size;

	assert_int_equal(ops_advise(&worker, 1, format, &text, &size, NULL), OPS_OK);
	ops_trace_unref(read);
	return text;
}

__attribute__((noinline, unused)) static char *device_trace_advise(struct device_trace *trace)
{
	return device_trace_advise_as(trace, OPS_FORMAT_JSON);
}

/* Returns the predicted gain of a finding in milliseconds a step; -1 if there is none. Ids are also in the list of checked rules,
 * where no gain follows them. */
__attribute__((noinline, unused)) static double finding_ms(const char *json, const char *id)
{
	char quoted[128];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\"", id);
	at = strstr(json, quoted);
	at = at ? strstr(at, "predicted_gain_ms_per_step\"") : NULL;
	return at ? strtod(strpbrk(at, "0123456789"), NULL) : -1;
}

#endif
