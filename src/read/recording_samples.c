/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled stacks of a recording; see recording_samples.h.
 */
#include "read/recording_samples.h"

#include <string.h>

#include <opstrobe/internal/thread_states.h>
#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_writer.h"
#include "base/order.h"

#define VERSION 1

static struct ops_sample_frame sample_frame_at(const struct ops_slot *slot, const struct ops_block *block, size_t i)
{
	struct ops_sample_frame frame;

	memcpy(&frame, (const char *)block + slot->payload + i * sizeof(frame), sizeof(frame));
	return frame;
}

static size_t frame_count(const struct ops_slot *slot)
{
	return slot->payload_bytes / sizeof(struct ops_sample_frame);
}

bool recording_samples_is_valid(const struct ops_slot *slot, const struct ops_block *block, const struct ops_share *share)
{
	if (!slot->payload || !slot->payload_bytes || slot->payload_bytes % sizeof(struct ops_sample_frame) ||
	    frame_count(slot) > OPS_SAMPLE_FRAMES_MAX || (uint64_t)slot->payload + slot->payload_bytes > block->bytes || slot->scope > OPS_THREAD_STATES)
		return false;
	for (size_t i = 0; i < frame_count(slot); i++)
		if (sample_frame_at(slot, block, i).name - 1 >= share->names.count)
			return false;
	return true;
}

static uint32_t add_function(struct recording_samples *samples, const struct ops_share *share, uint32_t id)
{
	struct ops_name name = ops_share_name(share, id);
	struct ops_string function = ops_intern_text(&share->texts, name.first);

	samples->text.size = 0;
	if (name.second != OPS_INTERN_NONE) {
		struct ops_string file = ops_intern_text(&share->texts, name.second);

		ops_buffer_append(&samples->text, file.bytes, strnlen(file.bytes, file.size));
	}
	ops_buffer_append(&samples->text, "", 1);
	ops_buffer_append(&samples->text, function.bytes, function.size);
	if (samples->text.failed) {
		ops_buffer_release(&samples->text);
		return OPS_INTERN_NONE;
	}
	return ops_intern_add(&samples->functions, ops_buffer_text(&samples->text), samples->text.size);
}

bool recording_samples_add(struct recording_samples *samples, const struct ops_slot *slot, const struct ops_block *block,
                           const struct ops_share *share, int64_t time_ns)
{
	struct recording_stack stack;
	uint32_t number = OPS_NONE;

	for (size_t i = frame_count(slot); i-- > 0;) {
		struct ops_sample_frame frame = sample_frame_at(slot, block, i);

		stack = (struct recording_stack){number, add_function(samples, share, frame.name), frame.line};
		if (stack.function == OPS_INTERN_NONE)
			return false;
		number = ops_intern_add(&samples->stacks, &stack, sizeof(stack));
		if (number == OPS_INTERN_NONE)
			return false;
	}
	return OPS_ARRAY_APPEND(&samples->samples,
	                        (struct recording_sample){slot->sequence_nr, time_ns, slot->call_line, number, slot->scope});
}

static void describe_functions(const struct recording_samples *samples, struct ops_json_writer *json)
{
	ops_json_member_open(json, "functions", '[');
	for (uint32_t i = 0; i < samples->functions.count; i++) {
		struct ops_string text = ops_intern_text(&samples->functions, i);
		size_t file = strnlen(text.bytes, text.size);

		ops_json_open(json, '[');
		ops_json_text(json, text.bytes, file);
		ops_json_text(json, text.bytes + file + 1, text.size - file - 1);
		ops_json_close(json, ']');
	}
	ops_json_close(json, ']');
}

static void describe_stacks(const struct recording_samples *samples, struct ops_json_writer *json)
{
	ops_json_member_open(json, "stacks", '[');
	for (uint32_t i = 0; i < samples->stacks.count; i++) {
		struct recording_stack stack;

		memcpy(&stack, ops_intern_text(&samples->stacks, i).bytes, sizeof(stack));
		ops_json_integer(json, stack.caller == OPS_NONE ? -1 : (int64_t)stack.caller);
		ops_json_integer(json, stack.function);
		ops_json_integer(json, stack.line);
	}
	ops_json_close(json, ']');
}

OPS_ORDER(recording_samples_compare, struct recording_sample, OPS_UP(tid) OPS_UP(time_ns))

static void describe_sampled_threads(const struct recording_samples *samples, int64_t start_ns, struct ops_json_writer *json)
{
	ops_json_member_open(json, "threads", '[');
	for (size_t i = 0; i < samples->samples.count;) {
		int64_t tid = samples->samples.items[i].tid;

		ops_json_open(json, '{');
		ops_json_member(json, "tid", tid);
		ops_json_member_open(json, "samples", '[');
		for (; i < samples->samples.count && samples->samples.items[i].tid == tid; i++) {
			const struct recording_sample *sample = &samples->samples.items[i];

			ops_json_integer(json, (sample->time_ns - start_ns) / 1000);
			ops_json_integer(json, sample->weight_us);
			ops_json_integer(json, sample->stack);
			ops_json_integer(json, sample->state);
		}
		ops_json_close(json, ']');
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

enum ops_code recording_samples_describe(struct recording_samples *samples, struct ops_trace *trace, struct ops_error *error)
{
	static const char *const states[] = {OPS_THREAD_STATE_NAMES};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	int64_t start_ns = INT64_MAX;
	enum ops_code code;

	if (!samples->samples.count)
		return OPS_OK;
	for (size_t i = 0; i < samples->samples.count; i++)
		if (samples->samples.items[i].time_ns < start_ns)
			start_ns = samples->samples.items[i].time_ns;
	OPS_ARRAY_SORT(&samples->samples, recording_samples_compare);
	ops_json_open(&json, '{');
	ops_json_member(&json, "version", VERSION);
	ops_json_member(&json, "start_ns", start_ns);
	ops_json_member_open(&json, "states", '[');
	for (size_t i = 0; i < OPS_THREAD_STATES; i++)
		ops_json_word(&json, states[i]);
	ops_json_close(&json, ']');
	describe_functions(samples, &json);
	describe_stacks(samples, &json);
	describe_sampled_threads(samples, start_ns, &json);
	ops_json_close(&json, '}');
	code = out.failed ? ops_fault_memory(error)
	                  : ops_trace_set_metadata(trace, OPS_PYTHON_SAMPLES, strlen(OPS_PYTHON_SAMPLES), ops_buffer_text(&out), out.size, error);
	ops_buffer_release(&out);
	return code;
}

void recording_samples_release(struct recording_samples *samples)
{
	ops_intern_release(&samples->functions);
	ops_intern_release(&samples->stacks);
	OPS_ARRAY_RELEASE(&samples->samples);
	ops_buffer_release(&samples->text);
}
