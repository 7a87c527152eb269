/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/memory_*: blocks, their categories, the steps of the timeline, the peak.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/memory.h>

#include "../base/failing.h"
#include "base/json.h"
#include "scene.h"

enum { CPU = 0, CUDA = 1 };
enum { FUNCTION = 0, BACKWARD = 1 };

static const struct ops_memory_device cpu = {CPU, -1};

static struct ops_storage at(uint64_t address, uint64_t bytes, bool written)
{
	return (struct ops_storage){.address = address, .bytes = bytes, .written = written};
}

/* An operator that is given these storages. */
static void op_with(struct ops_builder *b, const char *name, int scope, int64_t start_ns, int64_t end_ns,
                    const struct ops_storage *storages, size_t count)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.scope = (uint8_t)scope;
	event.sequence_nr = 1;
	if (count)
		event.storages = ops_builder_string(b, (const char *)storages, count * sizeof(*storages));
	ops_builder_event(b, &event);
}
#define OP(b, name, scope, start_ns, end_ns, ...)                                                          \
	op_with(b, name, scope, start_ns, end_ns, (const struct ops_storage[]){__VA_ARGS__},                   \
	        sizeof((const struct ops_storage[]){__VA_ARGS__}) / sizeof(struct ops_storage))

static void report(struct ops_builder *b, int64_t time_ns, uint64_t address, int64_t bytes, uint8_t device)
{
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = time_ns, .address = address, .bytes = bytes,
	                                                  .device_type = device, .device_index = device == CPU ? -1 : 0});
}

static void role(struct ops_builder *b, int64_t time_ns, uint64_t address, uint64_t bytes, enum ops_role role)
{
	struct ops_storage storage = at(address, bytes, false);

	storage.role = role & 15u;
	ops_builder_role(b, &(struct ops_role_record){.time_ns = time_ns, .storage = storage});
}

static struct ops_memory_timeline *timeline_of(struct ops_builder *b)
{
	struct ops_trace *trace = scene_close(b);
	struct ops_memory_timeline *timeline;

	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_int_equal(ops_memory_timeline_new(trace, &timeline, NULL), OPS_OK);
	ops_trace_unref(trace);
	return timeline;
}

/* Returns the `nth` block (from 0) at an address. */
static const struct ops_memory_block *block(const struct ops_memory_timeline *timeline, uint64_t address, size_t nth)
{
	for (size_t i = 0; i < timeline->block_count; i++)
		if (timeline->blocks[i].address == address && nth-- == 0)
			return &timeline->blocks[i];
	fail_msg("no such block at %llu", (unsigned long long)address);
	return NULL;
}

static void assert_life(const struct ops_memory_timeline *timeline, uint64_t address, size_t nth, int64_t start_ns,
                        int64_t end_ns, int64_t bytes)
{
	const struct ops_memory_block *found = block(timeline, address, nth);

	assert_int_equal(found->start_ns, start_ns);
	assert_int_equal(found->end_ns, end_ns);
	assert_int_equal(found->bytes, bytes);
}

/* --- blocks --------------------------------------------------------------------------------------------------------- */

static void allocations_and_frees(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_memory_timeline *timeline;

	(void)state;
	scene_op(b, 0, "aten::outer", 10, 100);
	scene_op(b, 0, "aten::inner", 20, 30);
	report(b, 25, 0x1000, 64, CPU);
	report(b, 50, 0x1000, -64, CPU);
	report(b, 60, 0x1000, 32, CPU);   /* the same address again */
	report(b, 70, 0x2000, 8, CPU);
	report(b, 80, 0x2000, 16, CPU);   /* the free between was not reported */
	report(b, 90, 0x3000, -128, CPU); /* from before */
	report(b, 95, 0x3000, -128, CPU); /* twice */
	report(b, 120, 0x1000, 512, CUDA); /* another device's address */
	scene_out_of_memory(b, 0, 130, 1 << 20);
	timeline = timeline_of(b);
	assert_int_equal(timeline->block_count, 6);
	assert_life(timeline, 0x1000, 0, 25, 50, 64);
	assert_life(timeline, 0x1000, 1, 60, INT64_MAX, 32);
	assert_life(timeline, 0x2000, 0, 70, 79, 8);
	assert_life(timeline, 0x2000, 1, 80, INT64_MAX, 16);
	assert_life(timeline, 0x3000, 0, INT64_MIN, 90, 128);
	assert_life(timeline, 0x1000, 2, 120, INT64_MAX, 512);
	assert_int_equal(block(timeline, 0x1000, 2)->device_index, 0);
	assert_int_equal(block(timeline, 0x1000, 0)->row, scene_row(timeline->trace, "aten::inner"));
	assert_int_equal(block(timeline, 0x1000, 1)->row, scene_row(timeline->trace, "aten::outer"));
	assert_int_equal(block(timeline, 0x1000, 2)->row, OPS_NONE);
	assert_int_equal(timeline->gaps, OPS_MEMORY_NO_STORAGES | OPS_MEMORY_NO_ROLES);
	ops_memory_timeline_free(timeline);
}

static void nothing_recorded(void **state)
{
	struct ops_memory_timeline *timeline = timeline_of(scene_open());
	struct ops_memory_peak peak;

	(void)state;
	assert_int_equal(timeline->step_count, 0);
	assert_true(timeline->gaps & OPS_MEMORY_NO_RECORDS);
	assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
	assert_int_equal(peak.bytes, 0);
	ops_memory_peak_release(&peak);
	ops_memory_timeline_free(timeline);
	ops_memory_timeline_free(NULL);
}

/* Memory that no allocator reports: allocated before the start, or by other libraries. */
static void unreported_storages(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_memory_timeline *timeline;

	(void)state;
	role(b, 1, 0x100, 40, OPS_ROLE_PARAMETER);
	role(b, 1, 0x200, 50, OPS_ROLE_GRADIENT);
	role(b, 2, 0, 0, OPS_ROLE_TENSOR);
	OP(b, "aten::first", FUNCTION, 10, 20, at(0x900, 7, false));
	OP(b, "aten::last", FUNCTION, 30, 40, at(0x900, 7, false));
	OP(b, "MulBackward0", BACKWARD, 50, 60, at(0x800, 9, false));
	role(b, 70, 0, 0, OPS_ROLE_NONE);
	role(b, 71, 0x100, 40, OPS_ROLE_PARAMETER);
	timeline = timeline_of(b);
	assert_life(timeline, 0x100, 0, INT64_MIN, INT64_MAX, 40);
	assert_life(timeline, 0x200, 0, INT64_MIN, 1, 50); /* not named at the end: gone with its last use */
	assert_life(timeline, 0x900, 0, 10, 40, 7);
	assert_life(timeline, 0x800, 0, INT64_MIN, 60, 9); /* saved for the backward pass before the start */
	ops_memory_timeline_free(timeline);
}

/* --- categories ------------------------------------------------------------------------------------------------------ */

enum { X = 0x10, W = 0x20, SCRATCH = 0x30, H = 0x40, L = 0x50, SEED = 0x60, G = 0x70, M = 0x80, T = 0x90, U = 0xa0, B = 0xb0 };

/* One step of training, whose every tensor is known. */
static struct ops_builder *training(void)
{
	struct ops_builder *b = scene_open();

	role(b, 1, W, 100, OPS_ROLE_PARAMETER);
	role(b, 1, B, 6, OPS_ROLE_BUFFER);
	role(b, 2, 0, 0, OPS_ROLE_TENSOR);
	scene_op(b, 0, "aten::randn", 10, 20);
	report(b, 15, X, 30, CPU);
	scene_op(b, 0, "aten::rand", 21, 24); /* nobody uses it */
	report(b, 22, U, 5, CPU);
	OP(b, "aten::linear", FUNCTION, 30, 50, at(X, 30, false), at(W, 100, false), at(B, 6, false));
	report(b, 32, SCRATCH, 8, CPU);
	report(b, 34, H, 40, CPU);
	report(b, 48, SCRATCH, -8, CPU);
	OP(b, "aten::relu_", FUNCTION, 52, 54, at(H, 40, true));
	OP(b, "aten::sum", FUNCTION, 56, 60, at(H, 40, false));
	report(b, 57, L, 4, CPU);
	scene_op(b, 0, "autograd::engine::evaluate_function: SumBackward0", 70, 80);
	OP(b, "SumBackward0", BACKWARD, 71, 79, at(L, 4, false));
	report(b, 72, SEED, 40, CPU);
	scene_op(b, 0, "autograd::engine::evaluate_function: AddmmBackward0", 82, 90);
	OP(b, "AddmmBackward0", BACKWARD, 83, 89, at(SEED, 40, false));
	report(b, 84, G, 100, CPU);
	scene_op(b, 0, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 92, 99);
	OP(b, "torch::autograd::AccumulateGrad", BACKWARD, 93, 98, at(G, 100, false));
	OP(b, "aten::detach", FUNCTION, 94, 95, at(G, 100, false));
	scene_range(b, 0, "Optimizer.step#SGD.step", 100, 150);
	OP(b, "aten::clone", FUNCTION, 102, 110, at(G, 100, false));
	report(b, 104, M, 100, CPU);
	OP(b, "aten::mul", FUNCTION, 112, 116, at(M, 100, false));
	report(b, 113, T, 100, CPU);
	OP(b, "aten::sub_", FUNCTION, 118, 120, at(W, 100, true), at(T, 100, false));
	report(b, 130, T, -100, CPU);
	return b;
}

static void assert_category(const struct ops_memory_timeline *timeline, uint64_t address, enum ops_memory_category category)
{
	assert_string_equal(ops_memory_category_name(block(timeline, address, 0)->category),
	                    ops_memory_category_name(category));
}

static void categories_of_a_training_step(void **state)
{
	struct ops_memory_timeline *timeline = timeline_of(training());

	(void)state;
	assert_category(timeline, X, OPS_MEMORY_INPUT);
	assert_category(timeline, B, OPS_MEMORY_INPUT);
	assert_category(timeline, W, OPS_MEMORY_PARAMETER);
	assert_category(timeline, SCRATCH, OPS_MEMORY_TEMPORARY);
	assert_category(timeline, H, OPS_MEMORY_ACTIVATION);
	assert_category(timeline, L, OPS_MEMORY_ACTIVATION);
	assert_category(timeline, SEED, OPS_MEMORY_AUTOGRAD_DETAIL);
	assert_category(timeline, G, OPS_MEMORY_GRADIENT);
	assert_category(timeline, M, OPS_MEMORY_OPTIMIZER_STATE);
	assert_category(timeline, T, OPS_MEMORY_TEMPORARY); /* the scratch memory of an optimizer */
	assert_category(timeline, U, OPS_MEMORY_UNKNOWN);
	assert_int_equal(timeline->gaps, 0);
	ops_memory_timeline_free(timeline);
}

static void versions(void **state)
{
	struct ops_memory_timeline *timeline = timeline_of(training());
	size_t changed = 0;

	(void)state;
	for (size_t i = 0; i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];

		if (i)
			assert_true(step->time_ns >= step[-1].time_ns);
		if (step->action != OPS_MEMORY_INCREMENT_VERSION)
			continue;
		changed++;
		assert_int_equal(step->version, 0);
		assert_int_equal(step->time_ns, timeline->blocks[step->block].address == H ? 52 : 118);
		assert_int_equal(step->category, step->next_category);
	}
	assert_int_equal(changed, 2);
	ops_memory_timeline_free(timeline);
}

/* Without modules and optimizers, a parameter is what a gradient is written into. */
static void parameters_by_flow_of_data(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_memory_timeline *timeline;
	struct ops_new_event update;
	const struct ops_storage written[] = {at(W, 100, true), at(T, 100, false)};

	(void)state;
	OP(b, "aten::mm", FUNCTION, 10, 20, at(X, 30, false), at(W, 100, false));
	report(b, 12, H, 40, CPU);
	OP(b, "torch::autograd::AccumulateGrad", BACKWARD, 30, 40, at(G, 100, false));
	OP(b, "aten::detach", FUNCTION, 32, 33, at(G, 100, false));
	OP(b, "aten::mul", FUNCTION, 50, 55, at(G, 100, false));
	report(b, 51, T, 100, CPU);
	update = scene_event(b, 0, "aten::sub_", 60, 65);
	update.storages = ops_builder_string(b, (const char *)written, sizeof(written));
	ops_builder_event(b, &update);
	report(b, 70, T, -100, CPU);
	OP(b, "aten::mm", FUNCTION, 80, 90, at(X, 30, false), at(W, 100, false)); /* changed by a gradient, and no gradient */
	report(b, 82, U, 40, CPU);
	timeline = timeline_of(b);
	assert_category(timeline, W, OPS_MEMORY_PARAMETER);
	assert_category(timeline, X, OPS_MEMORY_INPUT);
	assert_category(timeline, H, OPS_MEMORY_ACTIVATION);
	assert_category(timeline, U, OPS_MEMORY_ACTIVATION);
	assert_category(timeline, G, OPS_MEMORY_GRADIENT);
	assert_category(timeline, T, OPS_MEMORY_TEMPORARY);
	ops_memory_timeline_free(timeline);
}

/* --- the peak ---------------------------------------------------------------------------------------------------------- */

static void peak_of_a_training_step(void **state)
{
	struct ops_memory_timeline *timeline = timeline_of(training());
	struct ops_memory_peak peak;
	int64_t sum = 0;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
	assert_int_equal(peak.bytes, 100 + 6 + 30 + 5 + 40 + 4 + 40 + 100 + 100 + 100);
	assert_int_equal(peak.time_ns, 113);
	assert_int_equal(peak.row, scene_row(timeline->trace, "aten::mul"));
	assert_int_equal(peak.by_category[OPS_MEMORY_PARAMETER], 100);
	assert_int_equal(peak.by_category[OPS_MEMORY_TEMPORARY], 100);
	assert_int_equal(peak.by_category[OPS_MEMORY_INPUT], 36);
	assert_int_equal(peak.block_count, 10);
	for (size_t i = 0; i < peak.operator_count; i++)
		sum += peak.operators[i].bytes;
	assert_int_equal(sum, peak.bytes);
	assert_int_equal(peak.module_count, 0);
	assert_int_equal(peak.line_count, 0);
	assert_int_equal(ops_memory_peak_json(timeline, &peak, 3, &text, &size, NULL), OPS_OK);
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	ops_free(text);
	ops_memory_peak_release(&peak);
	ops_memory_peak_release(&peak);
	ops_memory_timeline_free(timeline);
}

static void moments_of_a_training_step(void **state)
{
	struct ops_memory_timeline *timeline = timeline_of(training());
	struct ops_memory_peak peak, moment;

	(void)state;
	assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
	for (int64_t at_ns = peak.time_ns - 1; at_ns <= peak.time_ns; at_ns++) {
		int64_t sum = 0;

		assert_int_equal(ops_memory_peak_within(timeline, cpu, at_ns, at_ns, &moment, NULL), OPS_OK);
		assert_int_equal(moment.time_ns, at_ns);
		for (size_t i = 0; i < timeline->block_count; i++)
			if (timeline->blocks[i].start_ns <= at_ns && timeline->blocks[i].end_ns > at_ns)
				sum += timeline->blocks[i].bytes;
		assert_int_equal(moment.bytes, sum);
		assert_true(at_ns == peak.time_ns ? sum == peak.bytes : sum < peak.bytes);
		assert_true(moment.before_bytes > 0 && moment.before_bytes <= sum);
		ops_memory_peak_release(&moment);
	}
	/* The range ends before the peak, begins after it, and holds it. */
	assert_int_equal(ops_memory_peak_within(timeline, cpu, 0, peak.time_ns - 1, &moment, NULL), OPS_OK);
	assert_true(moment.bytes < peak.bytes && moment.time_ns < peak.time_ns);
	ops_memory_peak_release(&moment);
	assert_int_equal(ops_memory_peak_within(timeline, cpu, peak.time_ns + 100000, INT64_MAX, &moment, NULL), OPS_OK);
	assert_true(moment.bytes < peak.bytes);
	assert_int_equal(moment.time_ns, peak.time_ns + 100000);
	ops_memory_peak_release(&moment);
	assert_int_equal(ops_memory_peak_within(timeline, cpu, peak.time_ns - 1, peak.time_ns + 1, &moment, NULL), OPS_OK);
	assert_int_equal(moment.bytes, peak.bytes);
	assert_int_equal(moment.time_ns, peak.time_ns);
	ops_memory_peak_release(&moment);
	ops_memory_peak_release(&peak);
	ops_memory_timeline_free(timeline);
}

/* A block has the shape of the tensor that fills it, not that of a view of a part; the empty tensor has no storage. */
static void shapes_of_blocks(void **state)
{
	static const int64_t sizes[][2] = {{0, 0}, {2, 1}, {2, 3}};
	static const size_t first[] = {0, 2}, count[] = {2, 1};
	struct ops_builder *b = scene_open();
	struct ops_memory_timeline *timeline;
	struct ops_memory_peak peak;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct ops_storage storage = at(0x1000, 24, false);
		struct ops_new_event event = scene_event(b, 0, "aten::mul", 20 + 10 * (int64_t)i, 25 + 10 * (int64_t)i);
		struct list list;

		list_open(&list, count[i]);
		for (size_t k = first[i]; k < first[i] + count[i]; k++)
			put_tensor(&list, 6, 2, (const int64_t[]){sizes[k][0], sizes[k][1], sizes[k][1], 1});
		event.inputs = ops_builder_inputs(b, list.bytes, list.size);
		event.storages = ops_builder_string(b, (const char *)&storage, sizeof(storage));
		ops_builder_event(b, &event);
	}
	report(b, 10, 0x1000, 24, CPU);
	report(b, 11, 0x2000, 8, CPU);
	timeline = timeline_of(b);
	assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
	assert_int_equal(peak.shape_count, 2);
	assert_int_equal(peak.shapes[0].bytes, 24);
	assert_string_equal(peak.shapes[0].name.bytes, "[2, 3] float32");
	assert_int_equal(peak.shapes[1].name.size, 0);
	ops_memory_peak_release(&peak);
	ops_memory_timeline_free(timeline);
}

/* --- against a plain oracle ---------------------------------------------------------------------------------------------- */

#define SLOTS 16

/* Allocations and frees in random order, some of them untold: what is held after each, by adding up. */
static void random_sequences(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 200; seed++) {
		struct ops_builder *b = scene_open();
		int64_t held[SLOTS] = {0}, most = 0, total = 0;
		struct ops_memory_timeline *timeline;
		struct ops_memory_peak peak;

		srand(seed);
		for (int64_t time = 1; time <= 60; time++) {
			size_t slot = (size_t)rand() % SLOTS;
			int64_t bytes = held[slot] && rand() % 4 ? -held[slot] : rand() % 1000 + 1;

			report(b, time * 10, 0x1000 + slot * 0x1000, bytes, CPU);
			total += bytes > 0 ? bytes - held[slot] : bytes; /* again without a free, which was not reported */
			held[slot] = bytes > 0 ? bytes : 0;
			most = total > most ? total : most;
		}
		timeline = timeline_of(b);
		assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
		assert_int_equal(peak.bytes, most);
		for (size_t i = 0; i < timeline->step_count; i++) {
			const struct ops_memory_step *step = &timeline->steps[i];
			total -= (step->action == OPS_MEMORY_CREATE ? 1 : -1) * timeline->blocks[step->block].bytes;
		}
		assert_int_equal(total, 0);
		ops_memory_peak_release(&peak);
		ops_memory_timeline_free(timeline);
	}
}

/* --- no memory ------------------------------------------------------------------------------------------------------------ */

static void work_it_out(void *context)
{
	struct ops_trace *trace = context;
	struct ops_memory_timeline *timeline = NULL;
	struct ops_memory_peak peak;
	char *text;
	size_t size;
	enum ops_code code = ops_memory_timeline_new(trace, &timeline, NULL);

	if (!code)
		code = ops_memory_peak_of(timeline, cpu, &peak, NULL);
	if (!code) {
		code = ops_memory_peak_text(timeline, &peak, 0, 80, &text, &size, NULL);
		if (!code)
			ops_free(text);
		ops_memory_peak_release(&peak);
	}
	ops_memory_timeline_free(timeline);
	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
}

static void allocation_failures(void **state)
{
	struct ops_trace *trace = scene_close(training());

	(void)state;
	assert_true(fail_each(work_it_out, trace) > 15);
	ops_trace_unref(trace);
}

/* --- the curve ------------------------------------------------------------------------------------------------------ */

enum { RECORDS = 500 };

/* Reads the numbers of a member of the curve; null is -1. Returns their number. */
static size_t numbers(const char *text, const char *member, int64_t *values)
{
	const char *at = strstr(text, member);
	size_t count = 0;

	assert_non_null(at);
	for (at += strlen(member); *at != ']'; at += *at == ',') {
		char *end;

		assert_true(count < 2 * RECORDS);
		values[count++] = *at == 'n' ? -1 : strtoll(at, &end, 10);
		at = *at == 'n' ? at + 4 : end;
	}
	return count;
}

static void check_curve(const struct ops_memory_timeline *timeline, const struct ops_memory_record *records, size_t limit)
{
	struct ops_memory_window window = {.device = {CUDA, 0}, .to_ns = INT64_MAX, .limit = limit};
	static int64_t times[2 * RECORDS], values[2][2 * RECORDS];
	size_t count, size;
	char *text;

	assert_int_equal(ops_memory_curve_json(timeline, &window, &text, &size, NULL), OPS_OK);
	count = numbers(text, "\"time_ns\":[", times);
	assert_true(count <= limit + 2);
	assert_int_equal(numbers(text, "\"allocated\":[", values[0]), count);
	assert_int_equal(numbers(text, "\"reserved\":[", values[1]), count);
	for (int which = 0; which < 2; which++) {
		int64_t most = 0, shown = 0;

		for (size_t i = 0; i < RECORDS; i++) {
			int64_t value = (int64_t)(which ? records[i].total_reserved : records[i].total_allocated);

			most = value > most ? value : most;
			for (size_t at = 1; limit >= 100000 && at < count; at++) /* no two moments are one point */
				if (times[at] == records[i].time_ns)
					assert_int_equal(values[which][at], value);
		}
		for (size_t i = 0; i < count; i++)
			shown = values[which][i] > shown ? values[which][i] : shown;
		assert_int_equal(shown, most);
		assert_int_equal(values[which][count - 1], which ? records[RECORDS - 1].total_reserved : records[RECORDS - 1].total_allocated);
	}
	ops_free(text);
}

/* Peaks of what is reserved are elsewhere than those of what is held, and short; of few points none loses them. */
static void thinning_loses_no_peak(void **state)
{
	static struct ops_memory_record records[RECORDS];

	(void)state;
	for (unsigned seed = 1; seed <= 5; seed++) {
		struct ops_builder *b = scene_open();
		uint64_t allocated = 0;

		for (uint32_t i = 0; i < RECORDS; i++) {
			uint32_t draw = (seed * 7919u + i) * 2654435761u >> 8;
			int64_t bytes = i % 2 ? -records[i - 1].bytes : 1 + (int64_t)(draw % 1000);

			allocated += (uint64_t)bytes;
			records[i] = (struct ops_memory_record){
				.time_ns = 10 + 100 * (int64_t)i, .address = 64 + 64 * (i / 2), .bytes = bytes, .device_type = CUDA,
				.total_allocated = allocated, .total_reserved = 1000 + (draw >> 4) % 4096};
			ops_builder_memory(b, &records[i]);
		}
		struct ops_memory_timeline *timeline = timeline_of(b);

		check_curve(timeline, records, 3);
		check_curve(timeline, records, 40);
		check_curve(timeline, records, 100000);
		ops_memory_timeline_free(timeline);
	}
}

/* A device's allocator says what it holds in all: at its first report 216, 16 of it new. 30 of the 200 turn up later. */
static void memory_from_before_the_recording_counts(void **state)
{
	static const struct {
		int64_t time_ns, address, bytes, total, type;
	} records[] = {
		{10, 0x1000, 16, 216, CUDA}, {20, 0x1000, -16, 200, CUDA}, {30, 0x2000, -30, 170, CUDA},
		{40, 0x3000, 8, 500, CPU}, /* what a profiler saw, which may be gone */
	};
	const struct ops_memory_device cuda = {CUDA, 0};
	struct ops_builder *b = scene_open();
	struct ops_memory_timeline *timeline;
	struct ops_memory_peak peak;

	(void)state;
	scene_op(b, 0, "aten::empty", 5, 100);
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		ops_builder_memory(b, &(struct ops_memory_record){.time_ns = records[i].time_ns, .bytes = records[i].bytes,
		                                                  .address = (uint64_t)records[i].address,
		                                                  .total_allocated = (uint64_t)records[i].total,
		                                                  .device_type = (uint8_t)records[i].type,
		                                                  .device_index = records[i].type == CPU ? -1 : 0});
	timeline = timeline_of(b);
	assert_int_equal(ops_memory_peak_of(timeline, cuda, &peak, NULL), OPS_OK);
	assert_int_equal(peak.bytes, 216);
	assert_int_equal(peak.time_ns, 10);
	assert_int_equal(peak.block_count, 3);
	assert_int_equal(timeline->blocks[peak.blocks[0]].bytes, 170);
	assert_int_equal(timeline->blocks[peak.blocks[0]].start_ns, INT64_MIN);
	ops_memory_peak_release(&peak);
	assert_int_equal(ops_memory_peak_of(timeline, cpu, &peak, NULL), OPS_OK);
	assert_int_equal(peak.bytes, 8);
	ops_memory_peak_release(&peak);
	ops_memory_timeline_free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_and_frees),     cmocka_unit_test(nothing_recorded),
		cmocka_unit_test(unreported_storages),       cmocka_unit_test(categories_of_a_training_step),
		cmocka_unit_test(versions),                  cmocka_unit_test(parameters_by_flow_of_data),
		cmocka_unit_test(peak_of_a_training_step),   cmocka_unit_test(random_sequences),
		cmocka_unit_test(moments_of_a_training_step), cmocka_unit_test(shapes_of_blocks),
		cmocka_unit_test(memory_from_before_the_recording_counts),
		cmocka_unit_test(allocation_failures),       cmocka_unit_test(thinning_loses_no_peak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
