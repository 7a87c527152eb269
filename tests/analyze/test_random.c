/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze on random traces, compared with the simplest way of computing the same: which records are listed, whose memory is
 * whose, and the sum of each name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../trace/random.h"
#include "scene.h"

#define TRACKS 2

static struct ops_trace *random_trace(struct random *random)
{
	static const char *const names[] = {"a", "b", "c", "aten::is_leaf", "ProfilerStep#1", "ProfilerStep#2"};
	struct ops_builder *b = scene_open();
	uint32_t events = random_below(random, 40), records = random_below(random, 40);
	uint32_t span = 1 + random_below(random, 100);

	for (uint32_t i = 0; i < events; i++) {
		uint32_t start = random_below(random, span);
		struct ops_new_event event = scene_event(b, random_below(random, TRACKS), names[random_below(random, 6)], start,
		                                         start + random_below(random, span / 2 + 1));

		if (random_below(random, 8) == 0)
			event.end_track = 1 - event.track;
		event.kind = random_below(random, 3) ? OPS_EVENT_CPU_OP : OPS_EVENT_USER_ANNOTATION;
		ops_builder_event(b, &event);
	}
	for (uint32_t i = 0; i < records; i++) {
		if (random_below(random, 10) == 0)
			scene_out_of_memory(b, random_below(random, TRACKS), random_below(random, span), 1 << 20);
		else
			scene_memory(b, random_below(random, TRACKS), random_below(random, span),
			             (int64_t)random_below(random, 100) - 50, (uint8_t)random_below(random, 3));
	}
	return scene_close(b);
}

static bool visible(const struct ops_events *events, size_t row)
{
	return !(events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_FOLDED));
}

static bool holds(const struct ops_events *events, size_t row, const struct ops_memory_record *record)
{
	return events->track[row] == record->track && events->start_ns[row] <= record->time_ns &&
	       record->time_ns <= events->end_ns[row];
}

static bool alone(const struct ops_events *events, const struct ops_memory_record *record)
{
	for (size_t row = 0; row < events->count; row++)
		if (visible(events, row) && holds(events, row, record) && !record->out_of_memory)
			return false;
	return true;
}

static int64_t time_of(const struct ops_events *events, const struct ops_memory_record *memory, uint32_t ref, bool end)
{
	if (ref & OPS_MEMORY_REF)
		return memory[ref & ~OPS_MEMORY_REF].time_ns;
	return end ? events->end_ns[ref] : events->start_ns[ref];
}

/* Everything that is to be listed is, once, in order. */
static void check_list(const struct ops_trace *trace, const uint32_t *refs, size_t count)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count, expected = 0;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &memory_count);

	for (size_t row = 0; row < events->count; row++)
		expected += visible(events, row);
	for (size_t i = 0; i < memory_count; i++)
		expected += alone(events, &memory[i]);
	assert_int_equal(count, expected);
	for (size_t i = 0; i < count; i++) {
		if (refs[i] & OPS_MEMORY_REF)
			assert_true(alone(events, &memory[refs[i] & ~OPS_MEMORY_REF]));
		else
			assert_true(visible(events, refs[i]));
		if (i > 0) {
			int64_t before = time_of(events, memory, refs[i - 1], false);
			int64_t start = time_of(events, memory, refs[i], false);

			assert_true(before <= start);
			if (before == start)
				assert_true(time_of(events, memory, refs[i - 1], true) >= time_of(events, memory, refs[i], true));
			assert_int_not_equal(refs[i - 1], refs[i]);
		}
	}
}

static void memory_of(const struct ops_trace *trace, size_t row, int64_t *ret_cpu, int64_t *ret_device)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &count);

	*ret_cpu = *ret_device = 0;
	for (size_t i = 0; i < count; i++)
		if (holds(events, row, &memory[i]) && !memory[i].out_of_memory)
			*(memory[i].device_type == 1 ? ret_device : ret_cpu) += memory[i].bytes;
}

static void check_costs(const struct ops_trace *trace, const struct ops_event_costs *costs)
{
	const struct ops_events *events = ops_trace_events(trace);

	if (!costs->cpu_memory)
		return;
	for (size_t row = 0; row < events->count; row++) {
		int64_t cpu, device, child_cpu, child_device;

		memory_of(trace, row, &cpu, &device);
		assert_int_equal(costs->cpu_memory[row], cpu);
		assert_int_equal(costs->device_memory[row], device);
		if (!visible(events, row))
			continue;
		for (size_t child = 0; child < events->count; child++) {
			if (events->parent[child] != row || !visible(events, child))
				continue;
			memory_of(trace, child, &child_cpu, &child_device);
			cpu -= child_cpu;
			device -= child_device;
		}
		if (events->flags[row] & OPS_EVENT_ASYNC)
			cpu = device = 0;
		assert_int_equal(costs->self_cpu_memory[row], cpu);
		assert_int_equal(costs->self_device_memory[row], device);
	}
}

static bool same_group(const struct ops_trace *trace, const struct ops_average *a, const struct ops_average *b)
{
	struct ops_string x = ops_average_name(trace, a), y = ops_average_name(trace, b);

	return a->key == b->key && a->is_user_annotation == b->is_user_annotation && x.size == y.size &&
	       memcmp(x.bytes, y.bytes, x.size) == 0;
}

/* Every group is the sum of the rows of its events. */
static void check_averages(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
                           size_t count)
{
	const struct ops_averages_options options = {0};
	struct ops_average *rows;
	size_t row_count, events = 0;

	assert_int_equal(ops_averages(trace, costs, refs, count, &options, &rows, &row_count, NULL), OPS_OK);
	for (size_t i = 0; i < row_count; i++) {
		struct ops_average expected = rows[i], row;

		expected.cpu_time_total_ns = expected.self_cpu_time_total_ns = 0;
		expected.cpu_memory_usage = expected.self_cpu_memory_usage = 0;
		expected.device_memory_usage = expected.self_device_memory_usage = 0;
		expected.count = 0;
		for (size_t n = 0; n < count; n++) {
			ops_average_of_event(trace, costs, refs[n], &row);
			if (!same_group(trace, &row, &rows[i]))
				continue;
			if (expected.count++ == 0)
				assert_int_equal(rows[i].first, refs[n]);
			expected.cpu_time_total_ns += row.cpu_time_total_ns;
			expected.self_cpu_time_total_ns += row.self_cpu_time_total_ns;
			expected.cpu_memory_usage += row.cpu_memory_usage;
			expected.self_cpu_memory_usage += row.self_cpu_memory_usage;
			expected.device_memory_usage += row.device_memory_usage;
			expected.self_device_memory_usage += row.self_device_memory_usage;
		}
		assert_memory_equal(&rows[i], &expected, sizeof(expected));
		events += rows[i].count;
	}
	assert_int_equal(events, count);
	ops_free(rows);
}

static void agrees_with_the_plain_way(void **state)
{
	struct random random = {1};

	(void)state;
	for (int i = 0; i < 500; i++) {
		struct ops_trace *trace = random_trace(&random);
		struct ops_event_costs costs;
		uint32_t *refs;
		size_t count;

		assert_int_equal(ops_function_events(trace, &refs, &count, NULL), OPS_OK);
		assert_int_equal(ops_event_costs_init(&costs, trace, false, NULL), OPS_OK);
		check_list(trace, refs, count);
		check_costs(trace, &costs);
		check_averages(trace, &costs, refs, count);
		ops_event_costs_release(&costs);
		ops_free(refs);
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_plain_way)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
