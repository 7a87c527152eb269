/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces with data flow for tests of advice: operators with their tensors, storages and allocations.
 */
#ifndef TESTS_ADVICE_FLOW_WRITER_H
#define TESTS_ADVICE_FLOW_WRITER_H

#include <math.h>

#include "../scene.h"
#include "device_trace.h"

#define STEPS 8
#define ROOF "{\"flops\": {\"float32\": 1e12}, \"bandwidth\": 1e11, \"call_us\": 1}"
#define MACHINE "{\"page_ns\": 10}"
#define STEP_NS 1000000
#define WEIGHT 0x100u
#define INPUT 0x200u
#define LARGE 0x10000u
#define SMALL 0x20000u
#define GRADIENT 0x30000u

/* Two-dimensional float32 tensors that start their storages. */
struct tensor {
	uint64_t address;
	int64_t rows, columns;
	int64_t bytes; /* of the storage; 0: those of the tensor */
	uint32_t kind; /* 1: written; TENSOR_NUMBER: a Python number; TENSOR_BY_COLUMNS: stored by columns; TENSOR_OF(type) */
};
#define TENSOR_NUMBER 2 /* its digest is in place of bytes */
#define TENSOR_BY_COLUMNS 4
#define TENSOR_OF(dtype) ((uint32_t)(dtype) << 8) /* c10::ScalarType; default: float32 */

struct writer {
	struct ops_builder *b;
	int64_t now_ns; /* in the present step */
	int64_t sequence; /* number of the node of the next operators in the graph; 0: 1 */
	uint32_t track;   /* of the next operators */
};

static inline void use(struct writer *w, const char *name, int64_t duration_ns, const struct tensor *tensors, size_t count, int64_t number)
{
	struct ops_new_event event = scene_event(w->b, w->track, name, w->now_ns, w->now_ns + duration_ns);
	struct ops_storage storages[3];
	struct list list;

	list_open(&list, (uint32_t)count + (number >= 0 ? 2 : 0));
	for (size_t i = 0; i < count; i++) {
		int64_t bytes = tensors[i].bytes ? tensors[i].bytes : 4 * tensors[i].rows * tensors[i].columns;

		bool by_columns = tensors[i].kind & TENSOR_BY_COLUMNS;

		put_tensor(&list, tensors[i].kind >> 8 ? (uint8_t)(tensors[i].kind >> 8) : 6, 2,
		           (const int64_t[]){tensors[i].rows, tensors[i].columns, by_columns ? 1 : tensors[i].columns, by_columns ? tensors[i].rows : 1});
		storages[i] = (struct ops_storage){.address = tensors[i].kind & TENSOR_NUMBER ? 0 : tensors[i].address, .bytes = (uint64_t)bytes,
		                                   .written = tensors[i].kind & 1};
	}
	if (number >= 0) {
		put_int(&list, 0);
		put_int(&list, number);
	}
	event.inputs = ops_builder_inputs(w->b, list.bytes, list.size);
	event.storages = ops_builder_string(w->b, (const char *)storages, count * sizeof(*storages));
	event.scope = strstr(name, "Backward") || strstr(name, "Accumulate") ? 1 : 0;
	event.sequence_nr = w->sequence ? w->sequence : 1;
	event.forward_thread = w->sequence && event.scope ? 1 : 0;
	ops_builder_event(w->b, &event);
	w->now_ns += duration_ns + 1000;
}
#define USE(w, name, duration_ns, number, ...)                                             \
	use(w, name, duration_ns, (const struct tensor[]){__VA_ARGS__},                    \
	    sizeof((const struct tensor[]){__VA_ARGS__}) / sizeof(struct tensor), number)

/* The operator that is written next allocates, or what was written last is released. */
static inline void allocate(struct writer *w, uint64_t address, int64_t bytes)
{
	ops_builder_memory(w->b, &(struct ops_memory_record){.time_ns = w->now_ns + (bytes > 0 ? 100 : 0), .address = address, .bytes = bytes,
	                                                     .device_index = -1});
}

/* The advice in JSON, where each step is what `write` writes; to be freed with ops_free(). */
__attribute__((noinline, unused)) static char *advice_of_long_steps(void (*write)(struct writer *w, bool cause), bool cause, int steps, int64_t step_ns)
{
	struct writer w = {.b = scene_open()};
	struct ops_rank worker = {.name = "w"};
	struct ops_trace *trace;
	char name[32], *text = NULL;
	size_t size;

	for (int step = 0; step < steps; step++) {
		snprintf(name, sizeof(name), "ProfilerStep#%d", step);
		scene_range(w.b, 0, name, step * step_ns + 1, (step + 1) * step_ns - 1);
		w.now_ns = step * step_ns + 1000;
		write(&w, cause);
	}
	worker.trace = trace = scene_close(w.b);
	assert_int_equal(ops_trace_set_metadata(trace, "roof", 4, ROOF, strlen(ROOF), NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "machine", 7, MACHINE, strlen(MACHINE), NULL), OPS_OK);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	ops_trace_unref(trace);
	return text;
}

static inline char *advice_of_steps(void (*write)(struct writer *w, bool cause), bool cause, int steps)
{
	return advice_of_long_steps(write, cause, steps, STEP_NS);
}

static inline char *advice_of(void (*write)(struct writer *w, bool cause), bool cause)
{
	return advice_of_steps(write, cause, STEPS);
}

/* The gain of a rule in milliseconds a step; -1 without a finding. */
static inline double gain_of(const char *rule, void (*write)(struct writer *w, bool cause), bool cause)
{
	char *text = advice_of(write, cause);
	double ms = finding_ms(text, rule);

	ops_free(text);
	return ms;
}

/* A rule and the cause that it finds, with the gain; 0: any. */
struct cause {
	const char *rule;
	void (*write)(struct writer *w, bool cause);
	double gain_ms;
};

/* Asserts that rules find their causes, and nothing in the counterparts. */
static inline void assert_causes(const struct cause *causes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct cause *cause = &causes[i];
		double ms = gain_of(cause->rule, cause->write, true), without_ms = gain_of(cause->rule, cause->write, false);

		if (cause->gain_ms ? fabs(ms - cause->gain_ms) > 0.001 : ms <= 0)
			fail_msg("cause %zu: %s gains %g ms, not %g", i, cause->rule, ms, cause->gain_ms);
		if (without_ms >= 0)
			fail_msg("cause %zu: %s gains %g ms without it", i, cause->rule, without_ms);
	}
}
#define ASSERT_CAUSES(causes) assert_causes(causes, sizeof(causes) / sizeof(*(causes)))

/* The severity of a finding; "" without one. */
static inline const char *severity_of(const char *rule, void (*write)(struct writer *w, bool cause), bool cause)
{
	static const char *const severities[] = {"high", "medium", "low", "info"};
	char *text = advice_of(write, cause), quoted[128];
	const char *at, *found = "";

	snprintf(quoted, sizeof(quoted), "\"id\":\"%s\"", rule);
	at = strstr(text, quoted);
	at = at ? strstr(at, "\"severity\":\"") : NULL;
	for (size_t i = 0; at && i < sizeof(severities) / sizeof(*severities); i++)
		if (strncmp(at + strlen("\"severity\":\""), severities[i], strlen(severities[i])) == 0)
			found = severities[i];
	ops_free(text);
	return found;
}

#endif
